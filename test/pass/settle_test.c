// SPDX-License-Identifier: MIT
// Rewrites come to rest: no two rules undo each other. Such a pair ends only by the bounds that the
// engine sets (rewrite.h: rewrites by instruction; optimize_module: rounds), which cost a hundred
// times what the program costs, and leaves whichever form came last. So the rounds are counted in
// which views still changed, of made-up programs and of random ones.
#include <string.h>

#include "check.h"
#include "pass/pass.h"
#include "random_program.h"
#include "rounds.h"

enum { MOST_ROUNDS = 7, SEEDS = 300 }; // optimize_module gives up after 8

struct rounds {
    int now, most; // in a row, of one run of optimize_module
};

static void count(void *user, const char *pass, const struct mgx_program *p, bool changed,
                  double microseconds)
{
    (void)p, (void)microseconds;
    struct rounds *r = user;
    if (strcmp(pass, "optimize_module") == 0 ||
        (strcmp(pass, "simplify_reshapes") == 0 && !changed))
        r->now = 0;
    else
        r->now += strcmp(pass, "simplify_reshapes") == 0;
    r->most = r->now > r->most ? r->now : r->most;
}

// -1: it failed.
static int rounds_of(struct mgx_program *p)
{
    struct rounds r = {0};
    const struct mgx_pass_options options = {.fast_math = true, .trace = count, .trace_user = &r};
    struct mgx_diag diag = {0};
    if (mgx_run_passes(p, mgx_pipeline_simplify, &options, &diag) == MGX_OK)
        return r.most;
    printf("%s\n", diag.text);
    return -1;
}

// x is cut along an axis, and the piece reshaped.
static struct mgx_program *cut_and_reshaped(const int64_t *lens, int64_t axis, int64_t start,
                                            int64_t end, const int64_t *dims, int rank)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 4, lens);
    struct mgx_ins *y =
        mgx_emit(m, &mgx_op_slice,
                 MGX_ATTRS(mgx_ints("axes", &axis, 1), mgx_ints("starts", &start, 1),
                           mgx_ints("ends", &end, 1)),
                 MGX_IN(mgx_add_parameter(m, "x", &s)));
    y = mgx_emit(m, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", dims, rank)), MGX_IN(y));
    mgx_add_return(m, &y, 1);
    return p;
}

#define DIMS(...)                                                                                  \
    (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define CUT(axis, start, end, ...)                                                                 \
    do {                                                                                           \
        struct mgx_program *p = cut_and_reshaped(lens, axis, start, end, DIMS(__VA_ARGS__));       \
        CHECK(p);                                                                                  \
        const int rounds = rounds_of(p);                                                           \
        if (rounds < 0 || rounds > 2)                                                              \
            CHECK_FAIL("a cut of axis %d, from %d to %d: %d rounds", axis, start, end, rounds);    \
        mgx_program_destroy(p);                                                                    \
    } while (0)

// The first is how images of batch 1 come apart into what attention reads (single heads).
CASE(a_cut_and_a_reshape_settle)
{
    static const int64_t lens[] = {1, 48, 7, 6};
    CUT(1, 0, 16, 1, 16, 42);
    CUT(1, 16, 48, 1, 32, 42);
    CUT(1, 16, 48, 32, 6, 7);
    CUT(1, 16, 48, 4, 8, 42);
    CUT(2, 1, 3, 48, 12);
    CUT(3, 1, 3, 48, 7, 2);
}

CASE(so_they_do_in_a_batch)
{
    static const int64_t lens[] = {2, 48, 7, 6};
    CUT(0, 0, 1, 16, 126);
    CUT(1, 0, 16, 2, 16, 42);
    CUT(1, 16, 48, 2, 4, 8, 42);
    CUT(2, 1, 3, 96, 12);
}

CASE(random_programs_settle)
{
    for (uint64_t seed = 0; seed < (uint64_t)check_rounds(SEEDS); seed++) {
        struct random_program r;
        struct mgx_diag diag = {0};
        CHECK(random_program_make(&r, seed, NULL, &diag) == MGX_OK);
        struct mgx_program *p = NULL;
        CHECK(mgx_program_clone(&p, r.program, &diag) == MGX_OK);
        const int rounds = rounds_of(p);
        if (rounds < 0 || rounds > MOST_ROUNDS)
            CHECK_FAIL("seed %llu: %d rounds", (unsigned long long)seed, rounds);
        mgx_program_destroy(p);
        random_program_free(&r);
    }
}

TEST_MAIN(ROW(a_cut_and_a_reshape_settle) ROW(so_they_do_in_a_batch) ROW(random_programs_settle))
