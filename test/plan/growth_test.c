// SPDX-License-Identifier: MIT
// How the time of compiling grows with the program, for the shapes of programs that make planning
// more than linear: a long chain, values that all live at once, values that live for a while, and
// bodies that share bodies. Compares a program with one eight times as large, on the target whose
// memory the host cannot touch: it plans with what every target shares.
#include <time.h>

#include "check.h"
#include "far/far.h"
#include "op/op.h"

enum { SMALL = 4000, FEW = 1250, FACTOR = 8, WINDOW = 50, NEST = 40 };
static const double MOST = 36; // 8 where linear, 64 where quadratic

typedef void builder(struct mgx_module *m, int n);

static struct mgx_ins *parameter(struct mgx_module *m)
{
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){2, 2});
    return mgx_add_parameter(m, "x", &s);
}

static struct mgx_ins *scan(struct mgx_module *m, struct mgx_ins *x)
{
    return mgx_emit(m, &mgx_op_prefix_scan_sum, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(x));
}

static struct mgx_ins *product(struct mgx_module *m, struct mgx_ins *a, struct mgx_ins *b)
{
    return mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(a, b));
}

static void give(struct mgx_module *m, struct mgx_ins *y)
{
    mgx_add_return(m, &y, 1);
}

// --- programs of n instructions ---

static void long_chain(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m);
    for (int i = 0; i < n; i++)
        x = scan(m, x);
    give(m, x);
}

// 2 x k numbers from x, which is 2 x 2, and back: values of many sizes.
static struct mgx_ins *resized(struct mgx_module *m, struct mgx_ins *x, int64_t k)
{
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){x->shape.lens[1], k});
    return product(m, x,
                   mgx_emit(m, &mgx_op_multibroadcast, MGX_ATTRS(mgx_ints("out_lens", s.lens, 2)),
                            MGX_IN(mgx_literal_double(m, MGX_FLOAT, 0.5))));
}

static void all_alive(struct mgx_module *m, int n)
{
    const int count = n / 4;
    struct mgx_ins **v = calloc((size_t)count, sizeof *v), *x = parameter(m);
    for (int i = 0; i < count; i++) {
        v[i] = resized(m, x, 2 + 64 * (i * 7 % 13));
        x = resized(m, v[i], 2);
    }
    for (int i = count; i-- > 0;)
        x = resized(m, product(m, x, v[i]), 2);
    give(m, x);
    free(v);
}

static void alive_for_a_while(struct mgx_module *m, int n)
{
    struct mgx_ins **v = calloc((size_t)n / 2 + 1, sizeof *v);
    v[0] = parameter(m);
    for (int i = 1; i <= n / 2; i++)
        v[i] = scan(m, i > WINDOW ? product(m, v[i - 1], v[i - WINDOW]) : v[i - 1]);
    give(m, v[n / 2]);
    free(v);
}

// --- measuring ---

// Processor time of compiling, in seconds; negative when it failed.
static double measure(builder *build, int n)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return -1;
    build(mgx_program_main(p), n);
    const struct mgx_compile_options options = {.threads = 1};
    const clock_t start = clock();
    const bool ok = mgx_program_compile(p, &far_target, &options, &diag) == MGX_OK;
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!ok)
        printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return ok ? seconds : -1;
}

static void check_growth(const char *name, builder *build, int n)
{
    const double small = fmin(measure(build, n), measure(build, n));
    const double large = measure(build, n * FACTOR);
    CHECK(small >= 0 && large >= 0);
    if (large > MOST * (small + 1e-3)) // a millisecond more or less says nothing
        CHECK_FAIL("%s: %.1f ms for %d, %.1f ms for %d", name, small * 1e3, n, large * 1e3,
                   n * FACTOR);
    printf("%-18s %7.1f ms for %d, %8.1f ms for %d\n", name, small * 1e3, n, large * 1e3,
           n * FACTOR);
}

#define GROWTH(name, n)                                                                            \
    CASE(grows_linearly_with_##name##_##n)                                                         \
    {                                                                                              \
        check_growth(#name, name, n);                                                              \
    }
GROWTH(long_chain, SMALL)
GROWTH(all_alive, FEW) // few enough for a search of the best order
GROWTH(all_alive, SMALL)
GROWTH(alive_for_a_while, SMALL)

// Both branches of every `if` are the same module, so that walking each anew takes 2^NEST steps.
CASE(shared_bodies_are_looked_at_once)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_program_create(&p, &mgx_ops, &diag), diag);
    struct mgx_module *m = mgx_program_main(p), *inner = NULL;
    struct mgx_ins *x = parameter(m);
    const struct mgx_shape truth = mgx_shape_make(MGX_BOOL, 1, (int64_t[]){1});
    struct mgx_ins *choice = mgx_add_parameter(m, "choice", &truth);
    for (int i = 0; i <= NEST; i++) {
        char name[16];
        snprintf(name, sizeof name, "body%d", i);
        struct mgx_module *body = i < NEST ? mgx_program_add_module(p, name) : m;
        struct mgx_module *both[] = {inner, inner};
        struct mgx_ins *y =
            inner ? mgx_insert(body, NULL, &mgx_op_if, NULL, &choice, 1, both, 2) : scan(body, x);
        if (inner)
            y = mgx_emit(body, &mgx_op_get_tuple_elem, MGX_ATTRS(mgx_int("index", 0)), MGX_IN(y));
        give(body, y);
        inner = body;
    }
    const struct mgx_compile_options options = {.threads = 1};
    const clock_t start = clock();
    CHECK_OK(mgx_program_compile(p, &far_target, &options, &diag), diag);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(shared_bodies_are_looked_at_once) ROW(grows_linearly_with_long_chain_SMALL)
              ROW(grows_linearly_with_all_alive_FEW) ROW(grows_linearly_with_all_alive_SMALL)
                  ROW(grows_linearly_with_alive_for_a_while_SMALL))
