// SPDX-License-Identifier: MIT
// How the time of the pipeline grows with the program: about linearly, for the shapes of programs
// that make passes quadratic. Doubles a program three times: a linear pass takes twice as long each
// time, or once much longer, where the program outgrows a cache; a quadratic one four times. So the
// steepest of the doublings says nothing, and the other two together are looked at.
#include <time.h>

#include "check.h"
#include "pass/pass.h"

enum { SMALL = 1000, SIZES = 4, RUNS = 2, TRIES = 5 };
static const double MOST = 11; // of two doublings: 4 and somewhat more, or 16

typedef void builder(struct mgx_module *m, int n);

static struct mgx_ins *parameter(struct mgx_module *m, int64_t rows, int64_t columns)
{
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){rows, columns});
    return mgx_add_parameter(m, "x", &s);
}

static struct mgx_ins *number(struct mgx_module *m, const struct mgx_ins *like, double value)
{
    return mgx_emit(m, &mgx_op_multibroadcast,
                    MGX_ATTRS(mgx_ints("out_lens", like->shape.lens, like->shape.rank)),
                    MGX_IN(mgx_literal_double(m, MGX_FLOAT, value)));
}

static struct mgx_ins *unary(struct mgx_module *m, const struct mgx_op *op, struct mgx_ins *x)
{
    return mgx_emit(m, op, NULL, MGX_IN(x));
}

static struct mgx_ins *slice(struct mgx_module *m, struct mgx_ins *x, int64_t at)
{
    const int64_t axis = 0, end = at + 1;
    return mgx_emit(m, &mgx_op_slice,
                    MGX_ATTRS(mgx_ints("axes", &axis, 1), mgx_ints("starts", &at, 1),
                              mgx_ints("ends", &end, 1)),
                    MGX_IN(x));
}

static void give(struct mgx_module *m, struct mgx_ins *y)
{
    mgx_add_return(m, &y, 1);
}

static void join(struct mgx_module *m, struct mgx_ins *const *in, int n)
{
    give(m,
         mgx_emit(m, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", 0)), (struct mgx_ins_list){in, n}));
}

// --- programs ---

static void long_chain(struct mgx_module *m, int n)
{
    static const int64_t swap[] = {1, 0};
    struct mgx_ins *x = parameter(m, 4, 4);
    for (int i = 0; i < n; i++) {
        if (i % 5 == 0)
            x = mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", swap, 2)),
                         MGX_IN(x));
        else if (i % 5 == 1)
            x = mgx_emit(m, &mgx_op_add, NULL, MGX_IN(x, number(m, x, i)));
        else
            x = unary(m, i % 5 == 2 ? &mgx_op_tanh : &mgx_op_sin, x);
    }
    give(m, x);
}

static void identities(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 4, 4);
    for (int i = 0; i < n; i++)
        x = unary(m, i % 2 ? &mgx_op_identity : &mgx_op_neg, x);
    give(m, x);
}

static void split_and_joined(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, n, 2), **in = calloc((size_t)n, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = unary(m, &mgx_op_exp, slice(m, x, i));
    join(m, in, n);
    free(in);
}

static void joined_and_split(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 1, 2), **in = calloc((size_t)n, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = mgx_emit(m, &mgx_op_add, NULL, MGX_IN(x, number(m, x, i)));
    struct mgx_ins *all =
        mgx_emit(m, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", 0)), (struct mgx_ins_list){in, n});
    for (int i = 0; i < n; i++)
        in[i] = unary(m, &mgx_op_exp, slice(m, all, n - 1 - i));
    join(m, in, n);
    free(in);
}

static void many_readers(struct mgx_module *m, int n)
{
    struct mgx_ins *x = unary(m, &mgx_op_exp, parameter(m, 1, 2)),
                   **in = calloc((size_t)n, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = mgx_emit(m, i % 2 ? &mgx_op_mul : &mgx_op_add, NULL,
                         MGX_IN(x, number(m, x, i % 3 ? i : 0)));
    join(m, in, n);
    free(in);
}

static void equal_things(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 1, 2), **in = calloc((size_t)n, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = unary(m, &mgx_op_exp, unary(m, &mgx_op_sin, x));
    join(m, in, n);
    free(in);
}

static void nested_joins(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 1, 2), *y = x;
    for (int i = 0; i < n; i++) {
        struct mgx_ins *next = unary(m, i % 2 ? &mgx_op_exp : &mgx_op_sin, slice(m, y, i / 2));
        y = mgx_emit(m, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", 0)), MGX_IN(y, next));
    }
    give(m, y);
}

static void constants(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 1, 2), *a = number(m, x, 1);
    for (int i = 0; i < n; i++)
        a = i % 2 ? unary(m, &mgx_op_sin, a)
                  : mgx_emit(m, &mgx_op_add, NULL, MGX_IN(a, number(m, x, i)));
    give(m, mgx_emit(m, &mgx_op_add, NULL, MGX_IN(x, a)));
}

static void products_of_one_input(struct mgx_module *m, int n)
{
    struct mgx_ins *x = parameter(m, 1, 2), **in = calloc((size_t)n, sizeof *in);
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){2, 2});
    for (int i = 0; i < n; i++) {
        struct mgx_diag diag = {0};
        struct mgx_tensor t = {0};
        if (mgx_tensor_create(&t, &s, &diag) != MGX_OK)
            break;
        mgx_tensor_generate(&t, (uint64_t)i);
        in[i] = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(x, mgx_add_literal(m, &t)));
        mgx_tensor_release(&t);
    }
    join(m, in, n);
    free(in);
}

// --- measuring ---

// Processor time of the pipeline and of fusion, in seconds; negative when something failed.
static double measure(builder *build, int n)
{
    static const struct mgx_pass *const fusion[] = {&mgx_pass_fuse_pointwise_reduce, NULL};
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return -1;
    build(mgx_program_main(p), n);
    const clock_t start = clock();
    const bool ok = mgx_program_status(p, &diag) == MGX_OK &&
                    mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag) == MGX_OK &&
                    mgx_run_passes(p, fusion, NULL, &diag) == MGX_OK;
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!ok)
        printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return ok ? seconds : -1;
}

static double least(builder *build, int n)
{
    double best = INFINITY;
    for (int i = 0; i < RUNS; i++)
        best = fmin(best, measure(build, n));
    return best;
}

// A millisecond more or less says nothing.
static bool too_steep(const double *seconds)
{
    double all = 1, steepest = 0;
    for (int i = 1; i < SIZES; i++) {
        const double ratio = seconds[i] / (seconds[i - 1] + 1e-3);
        all *= ratio;
        steepest = fmax(steepest, ratio);
    }
    return all > MOST * steepest;
}

// Other work on the machine slows some runs, so what looks steep is measured again: the least times
// of a quadratic pass are steep too.
static void check_growth(const char *name, builder *build)
{
    double seconds[SIZES] = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (int i = 0; i == 0 || (i < TRIES && too_steep(seconds)); i++)
        for (int k = 0; k < SIZES; k++)
            seconds[k] = fmin(seconds[k], least(build, SMALL << k));
    for (int k = 0; k < SIZES; k++)
        CHECK(seconds[k] >= 0);
    if (too_steep(seconds))
        CHECK_FAIL("%s: %.1f ms for %d, then, doubled each time, %.1f, %.1f, %.1f", name,
                   seconds[0] * 1e3, SMALL, seconds[1] * 1e3, seconds[2] * 1e3, seconds[3] * 1e3);
}

#define GROWTH(name)                                                                               \
    CASE(grows_linearly_with_##name)                                                               \
    {                                                                                              \
        check_growth(#name, name);                                                                 \
    }
GROWTH(long_chain)
GROWTH(identities)
GROWTH(split_and_joined)
GROWTH(joined_and_split)
GROWTH(many_readers)
GROWTH(equal_things)
GROWTH(nested_joins)
GROWTH(constants)
GROWTH(products_of_one_input)

TEST_MAIN(ROW(grows_linearly_with_long_chain) ROW(grows_linearly_with_identities)
              ROW(grows_linearly_with_split_and_joined) ROW(grows_linearly_with_joined_and_split)
                  ROW(grows_linearly_with_many_readers) ROW(grows_linearly_with_equal_things)
                      ROW(grows_linearly_with_nested_joins) ROW(grows_linearly_with_constants)
                          ROW(grows_linearly_with_products_of_one_input))
