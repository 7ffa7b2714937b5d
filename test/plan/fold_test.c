// SPDX-License-Identifier: MIT
// Constants that the target's kernels fold: weights standardised filter by filter, as NFNet does,
// against the formula in double; the literal lies row-major whatever lay in before; bounds hold as
// ever.
#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { OUT = 64, IN = 40, TAPS = 9, COUNT = OUT * IN * TAPS };

static float weights[COUNT]; // in order of memory

// (w - mean) / sqrt(mean((w - mean)^2) + 0.001), over all but axis 0. `turned`: the axes of w lie
// in memory the other way round.
static struct mgx_program *build(bool turned)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    const int64_t lens[] = {OUT, IN, 3, 3}, axes[] = {1, 2, 3};
    struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 4, lens);
    const int64_t strides[] = {1, OUT, OUT * IN, OUT * IN * 3};
    if (turned)
        memcpy(shape.strides, strides, sizeof strides);
    for (int i = 0; i < COUNT; i++)
        weights[i] = (float)((i * 7919) % 1009) / 500 - 0.5F;
    const struct mgx_tensor w = mgx_tensor_borrow(&shape, weights);
    const float small = 0.001F;
    const struct mgx_shape one = mgx_shape_vector(MGX_FLOAT, 1);
    const struct mgx_tensor eps = mgx_tensor_borrow(&one, &small);
    struct mgx_tensor own[2];
    if (mgx_tensor_clone(&own[0], &eps, &diag) != MGX_OK ||
        mgx_tensor_create(&own[1], &shape, &diag) != MGX_OK)
        return NULL;
    memcpy(own[1].data, w.data, sizeof weights);
    struct mgx_ins *e = mgx_add_literal(m, &own[0]), *x = mgx_add_literal(m, &own[1]);
    for (int i = 0; i < 2; i++)
        mgx_tensor_release(&own[i]);
#define ALONG MGX_ATTRS(mgx_ints("axes", axes, 3))
#define WIDE MGX_ATTRS(mgx_ints("out_lens", lens, 4))
    struct mgx_ins *mean = mgx_emit(m, &mgx_op_reduce_mean, ALONG, MGX_IN(x));
    mean = mgx_emit(m, &mgx_op_multibroadcast, WIDE, MGX_IN(mean));
    struct mgx_ins *centred = mgx_emit(m, &mgx_op_sub, NULL, MGX_IN(x, mean));
    struct mgx_ins *square = mgx_emit(m, &mgx_op_mul, NULL, MGX_IN(centred, centred));
    struct mgx_ins *variance = mgx_emit(m, &mgx_op_reduce_mean, ALONG, MGX_IN(square));
    variance = mgx_emit(m, &mgx_op_multibroadcast, WIDE, MGX_IN(variance));
    e = mgx_emit(m, &mgx_op_multibroadcast, WIDE, MGX_IN(e));
    struct mgx_ins *scale = mgx_emit(m, &mgx_op_add, NULL, MGX_IN(variance, e));
    scale = mgx_emit(m, &mgx_op_rsqrt, NULL, MGX_IN(scale));
    struct mgx_ins *out = mgx_emit(m, &mgx_op_mul, NULL, MGX_IN(centred, scale));
    mgx_add_return(m, &out, 1);
    return p;
}

static double weight(bool turned, int o, int i)
{
    const int c = i / TAPS, t = i % TAPS;
    return turned ? weights[o + OUT * (c + IN * (t / 3 + 3 * (t % 3)))]
                  : weights[o * IN * TAPS + i];
}

// The largest difference from the formula; results are of the size of 1.
static double error_of(const struct mgx_tensor *t, bool turned)
{
    double worst = 0;
    for (int o = 0; o < OUT; o++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < IN * TAPS; i++)
            mean += weight(turned, o, i) / (IN * TAPS);
        for (int i = 0; i < IN * TAPS; i++)
            variance += pow(weight(turned, o, i) - mean, 2) / (IN * TAPS);
        for (int i = 0; i < IN * TAPS; i++) {
            const double want = (weight(turned, o, i) - mean) / sqrt(variance + (double)0.001F);
            worst = fmax(worst, fabs((double)((const float *)t->data)[o * IN * TAPS + i] - want));
        }
    }
    return worst;
}

static const struct mgx_ins *result(const struct mgx_program *p)
{
    return mgx_module_result(mgx_program_main(p), 0);
}

CASE(large_constants_are_folded_by_kernels)
{
    for (int turned = 0; turned < 2; turned++) {
        struct mgx_diag diag = {0};
        struct mgx_program *p = build(turned);
        CHECK(p);
        CHECK_OK(mgx_program_compile(p, mgx_target_find("cpu"), NULL, &diag), diag);
        const struct mgx_tensor *t = result(p)->literal;
        CHECK(t);
        CHECK(mgx_shape_is_standard(&t->shape));
        CHECK(error_of(t, turned) < 1e-5); // some hundred sums of float
        mgx_program_destroy(p);
    }
}

// The bound counts what is added: here the literal beside the one that the reductions read too.
CASE(bounds_hold_for_kernels_too)
{
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.pass.fold_limit_bytes = sizeof weights / 2};
    struct mgx_program *p = build(false);
    CHECK(p);
    CHECK_OK(mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag), diag);
    CHECK(!result(p)->literal);
    mgx_program_destroy(p);
}

enum { ROWS = 12, DEPTH = 512, COLUMNS = 2048 };

static float row_value(int row, int k)
{
    return (float)((row * 31 + k * 17) % 101) / 50 - 1;
}

static float matrix_value(int k, int column)
{
    return (float)((k * 13 + column * 7) % 97) / 48 - 1;
}

static struct mgx_ins *filled(struct mgx_module *m, int rows, int columns, int row)
{
    struct mgx_diag diag = {0};
    const int64_t lens[] = {rows, columns};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, lens);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, &diag) != MGX_OK)
        return NULL;
    for (int i = 0; i < rows * columns; i++)
        ((float *)t.data)[i] =
            rows == 1 ? row_value(row, i) : matrix_value(i / columns, i % columns);
    struct mgx_ins *literal = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return literal;
}

// What is left of a normalisation's shift behind a product: a row by a matrix, once a layer. Each is
// as much work as the matrix has elements, and the bound on work has room for all layers.
CASE(rows_by_matrices_are_folded)
{
    struct mgx_diag diag = {0};
    struct mgx_program *p;
    struct mgx_ins *out[ROWS];
    CHECK_OK(mgx_program_create(&p, &mgx_ops, &diag), diag);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *matrix = filled(m, DEPTH, COLUMNS, 0);
    for (int i = 0; i < ROWS; i++)
        out[i] = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(filled(m, 1, DEPTH, i), matrix));
    mgx_add_return(m, out, ROWS);
    CHECK_OK(mgx_program_compile(p, mgx_target_find("cpu"), NULL, &diag), diag);
    for (int i = 0; i < ROWS; i++) {
        const struct mgx_tensor *t = mgx_module_result(m, i)->literal;
        CHECK(t);
        for (int column = 0; column < COLUMNS; column += 501) {
            double want = 0;
            for (int k = 0; k < DEPTH; k++)
                want += (double)row_value(i, k) * matrix_value(k, column);
            CHECK(fabs(((const float *)t->data)[column] - want) < 1e-4); // 512 sums of about 20
        }
    }
    mgx_program_destroy(p);
}

// Positions by weights, as DeBERTa has them: a product of constants, by kernels, whatever lies how.
CASE(products_are_folded_by_kernels)
{
    enum { SIDE = 256 };
    static const int64_t swap[] = {1, 0};
    for (int turned = 0; turned < 2; turned++) {
        struct mgx_diag diag = {0};
        struct mgx_program *p;
        CHECK_OK(mgx_program_create(&p, &mgx_ops, &diag), diag);
        struct mgx_module *m = mgx_program_main(p);
        struct mgx_ins *a = filled(m, SIDE, DEPTH, 0),
                       *b = turned ? filled(m, SIDE, DEPTH, 0) : filled(m, DEPTH, SIDE, 0);
        if (turned)
            b = mgx_emit(m, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", swap, 2)),
                         MGX_IN(b));
        struct mgx_ins *out = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(a, b));
        mgx_add_return(m, &out, 1);
        CHECK_OK(mgx_program_compile(p, mgx_target_find("cpu"), NULL, &diag), diag);
        const struct mgx_tensor *t = result(p)->literal;
        CHECK(t && mgx_shape_is_standard(&t->shape));
        for (int i = 0; i < SIDE; i += 51)
            for (int k = 0; k < SIDE; k += 51) {
                double want = 0;
                for (int j = 0; j < DEPTH; j++)
                    want += (double)matrix_value(i, j) *
                            (turned ? matrix_value(k, j) : matrix_value(j, k));
                CHECK(fabs(((const float *)t->data)[i * SIDE + k] - want) < 1e-3);
            }
        mgx_program_destroy(p);
    }
}

TEST_MAIN(ROW(large_constants_are_folded_by_kernels) ROW(bounds_hold_for_kernels_too)
              ROW(rows_by_matrices_are_folded) ROW(products_are_folded_by_kernels))
