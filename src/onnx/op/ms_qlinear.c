// SPDX-License-Identifier: MIT
// Quantized operators of com.microsoft. The QLinear operators become dequantize, operator,
// quantize, which is what the quantization passes take up again; products of integers with a float
// result stay exact in integers (quantize.c, integer.c).
#include <string.h>

#include "onnx/build.h"
#include "onnx/quantize.h"

// The inputs `from` .. are there, but for those in `optional`, a set of bits.
static enum mgx_status need(struct mgx_node *n, int least, int most, unsigned optional)
{
    if (n->in_count < least || n->in_count > most)
        return mgx_node_invalid(n, "%d inputs, not %d to %d", n->in_count, least, most);
    for (int i = 0; i < least; i++)
        if (!n->in[i] && !(optional >> i & 1))
            return mgx_node_invalid(n, "input %d is required", i);
    return MGX_OK;
}

// A standard operator's rule on other operands, with the attributes of this node.
static enum mgx_status borrow(struct mgx_node *n, const struct mgx_onnx_op *rule,
                              struct mgx_ins *const *in, int in_count, struct mgx_ins **out,
                              int out_count)
{
    struct mgx_node plain = *n;
    plain.in = in;
    plain.in_count = in_count;
    plain.out = out;
    plain.out_count = out_count;
    plain.domain = "";
    plain.opset = 13;
    plain.rule = rule;
    for (int i = 0; i < in_count; i++)
        if (!in[i])
            return mgx_node_status(n);
    return rule->import(&plain);
}

// --- QLinearAdd, QLinearMul ---

static enum mgx_status binary(struct mgx_node *n, const struct mgx_op *op)
{
    TRY(need(n, 7, 8, 1u << 2 | 1u << 5));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *a = mgx_quantize_from(n, n->in[0], 1, 0);
    struct mgx_ins *b = mgx_quantize_from(n, n->in[3], 4, 0);
    n->out[0] = mgx_quantize_to(n, mgx_build_binary(n, op, a, b), 6, 0);
    return mgx_node_status(n);
}

static enum mgx_status qlinear_add(struct mgx_node *n)
{
    return binary(n, &mgx_op_add);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_add = {
    .name = "QLinearAdd", .domain = "com.microsoft", .import = qlinear_add};

static enum mgx_status qlinear_mul(struct mgx_node *n)
{
    return binary(n, &mgx_op_mul);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_mul = {
    .name = "QLinearMul", .domain = "com.microsoft", .import = qlinear_mul};

// --- of one operand: X, its scale and zero point, Y's ---

static enum mgx_status unary(struct mgx_node *n, const struct mgx_onnx_op *rule)
{
    TRY(need(n, 4, 5, 1u << 2));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = mgx_quantize_from(n, n->in[0], 1, 0), *y = NULL;
    TRY(borrow(n, rule, &x, 1, &y, 1));
    n->out[0] = mgx_quantize_to(n, y, 3, 0);
    return mgx_node_status(n);
}

static enum mgx_status qlinear_leaky_relu(struct mgx_node *n)
{
    return unary(n, &mgx_onnx_leaky_relu);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_leaky_relu = {
    .name = "QLinearLeakyRelu", .domain = "com.microsoft", .import = qlinear_leaky_relu};

static enum mgx_status qlinear_sigmoid(struct mgx_node *n)
{
    TRY(need(n, 4, 5, 1u << 2));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *y = mgx_build_sigmoid(n, mgx_quantize_from(n, n->in[0], 1, 0));
    n->out[0] = mgx_quantize_to(n, y, 3, 0);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_sigmoid = {
    .name = "QLinearSigmoid", .domain = "com.microsoft", .import = qlinear_sigmoid};

// Before opset 13 of the standard operator the axes from `axis` on are one.
static enum mgx_status qlinear_softmax(struct mgx_node *n)
{
    TRY(need(n, 4, 5, 1u << 2));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const struct mgx_shape s = n->in[0]->shape;
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), s.rank, &axis));
    struct mgx_ins *y = mgx_quantize_from(n, n->in[0], 1, 0);
    const bool flat = mgx_onnx_int(n, "opset", 13) < 13;
    struct mgx_shape folded = s;
    for (int i = axis + 1; flat && i < s.rank; i++)
        folded.lens[axis] *= s.lens[i];
    folded.rank = flat ? axis + 1 : s.rank;
    y = flat ? mgx_build_reshape_like(n, y, &folded) : y;
    y = mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(y));
    y = flat ? mgx_build_reshape_like(n, y, &s) : y;
    n->out[0] = mgx_quantize_to(n, y, 3, 0);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_softmax = {
    .name = "QLinearSoftmax", .domain = "com.microsoft", .import = qlinear_softmax};

// The last axis moved to be the second, or back.
static struct mgx_ins *move_channels(struct mgx_node *n, struct mgx_ins *x, bool back)
{
    int64_t perm[MGX_MAX_RANK] = {0};
    const int rank = x ? x->shape.rank : 0;
    for (int i = 1; i < rank; i++)
        perm[i] = back ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    return rank > 2 ? mgx_build_transpose(n, x, perm, rank) : x;
}

static enum mgx_status pool(struct mgx_node *n, const struct mgx_onnx_op *rule)
{
    TRY(need(n, 4, 5, 1u << 2));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const bool last = mgx_onnx_int(n, "channels_last", 0) != 0;
    struct mgx_ins *x = mgx_quantize_from(n, n->in[0], 1, 0), *y = NULL;
    x = last ? move_channels(n, x, false) : x;
    TRY(borrow(n, rule, &x, 1, &y, 1));
    n->out[0] = mgx_quantize_to(n, last ? move_channels(n, y, true) : y, 3, 0);
    return mgx_node_status(n);
}

static enum mgx_status qlinear_average_pool(struct mgx_node *n)
{
    return pool(n, &mgx_onnx_average_pool);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_average_pool = {
    .name = "QLinearAveragePool", .domain = "com.microsoft", .import = qlinear_average_pool};

static enum mgx_status qlinear_global_average_pool(struct mgx_node *n)
{
    return pool(n, &mgx_onnx_global_average_pool);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_global_average_pool = {
    .name = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .import = qlinear_global_average_pool};

// Bytes keep their meaning.
static enum mgx_status nhwc_max_pool(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_ins *x = move_channels(n, n->in[0], false), *y = NULL;
    TRY(borrow(n, &mgx_onnx_max_pool, &x, 1, &y, 1));
    n->out[0] = move_channels(n, y, true);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_nhwc_max_pool = {
    .name = "NhwcMaxPool", .domain = "com.microsoft", .import = nhwc_max_pool};

// --- QLinearWhere: a condition, X and Y with scale and zero point each, Z's ---

static enum mgx_status qlinear_where(struct mgx_node *n)
{
    TRY(need(n, 8, 9, 1u << 3 | 1u << 6));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = mgx_quantize_from(n, n->in[1], 2, 0);
    struct mgx_ins *y = mgx_quantize_from(n, n->in[4], 5, 0);
    n->out[0] = mgx_quantize_to(n, mgx_build_where(n, n->in[0], x, y), 7, 0);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_where = {
    .name = "QLinearWhere", .domain = "com.microsoft", .import = qlinear_where, .result = "1"};

// --- QLinearConcat: Y's scale and zero point, then (X, scale, zero point) of every part ---

static enum mgx_status qlinear_concat(struct mgx_node *n)
{
    if (n->in_count < 5 || n->in_count % 3 != 2)
        return mgx_node_invalid(n, "%d inputs, not 2 and three for every part", n->in_count);
    for (int i = 0; i < n->in_count; i++)
        if (!n->in[i])
            return mgx_node_invalid(n, "input %d is required", i);
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const int parts = n->in_count / 3;
    struct mgx_ins **v = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, parts);
    int axis = 0;
    if (!v)
        return mgx_fail_memory(n->diag);
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), n->in[2]->shape.rank, &axis));
    for (int i = 0; i < parts; i++)
        v[i] = mgx_quantize_from(n, n->in[2 + 3 * i], 3 + 3 * i, 0);
    for (int i = 0; i < parts; i++)
        if (!v[i])
            return mgx_node_status(n);
    n->out[0] = mgx_quantize_to(n, mgx_build_concat(n, axis, v, parts), 0, 0);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qlinear_concat = {
    .name = "QLinearConcat", .domain = "com.microsoft", .import = qlinear_concat, .result = "1"};

// --- QGemm: A, B with scale and zero point each, C in units of alpha * both scales, Y's ---

static enum mgx_status qgemm(struct mgx_node *n)
{
    TRY(need(n, 6, 9, 0));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const double alpha = mgx_onnx_real(n, "alpha", 1);
    const bool turned = mgx_onnx_int(n, "transB", 0) != 0;
    struct mgx_ins *a = mgx_quantize_from(n, n->in[0], 1, 0);
    struct mgx_ins *b = mgx_quantize_from(n, n->in[3], 4, turned ? 0 : 1);
    struct mgx_ins *in[2] = {a, b}, *y = NULL, *c = mgx_node_in(n, 6);
    TRY(borrow(n, &mgx_onnx_gemm, in, 2, &y, 1));
    if (c) {
        struct mgx_ins *unit = mgx_build_mul(n, mgx_build_convert(n, n->in[1], MGX_FLOAT),
                                             mgx_build_convert(n, n->in[4], MGX_FLOAT));
        c = mgx_build_mul(n, mgx_build_convert(n, c, MGX_FLOAT), unit);
        y = mgx_build_add(n, y, alpha != 1 ? mgx_build_with(n, &mgx_op_mul, c, alpha) : c);
    }
    n->out[0] = mgx_node_in(n, 7) ? mgx_quantize_to(n, y, 7, 1)
                                  : mgx_build_convert(n, y, n->in[1]->shape.type);
    return mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qgemm = {
    .name = "QGemm", .domain = "com.microsoft", .import = qgemm, .result = "8"};

// --- products of integers with a float result ---

// (A - p)(B - q) * scales + bias; p and q are NULL where absent.
static enum mgx_status integer_product(struct mgx_node *n, struct mgx_ins *const v[4],
                                       struct mgx_ins *scales, struct mgx_ins *bias)
{
    struct mgx_node plain = *n;
    struct mgx_ins *y = NULL;
    plain.in = v;
    plain.in_count = 4;
    plain.out = &y;
    plain.out_count = 1;
    if (!v[0] || !v[1] || !scales)
        return mgx_node_status(n);
    TRY(mgx_onnx_matmul_integer.import(&plain));
    y = mgx_build_mul(n, mgx_build_convert(n, y, scales->shape.type), scales);
    n->out[0] = bias ? mgx_build_add(n, y, bias) : y;
    return mgx_node_status(n);
}

// A scale for every column of A does not come out of the sum over columns: the operands are
// dequantized first.
static enum mgx_status scaled_columns(struct mgx_node *n)
{
    struct mgx_ins *bias = mgx_node_in(n, 6);
    struct mgx_ins *a = mgx_quantize_undo(n, n->in[0], n->in[2], mgx_node_in(n, 4), -1);
    struct mgx_ins *b = mgx_quantize_undo(n, n->in[1], n->in[3], mgx_node_in(n, 5), -1);
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_dot, a, b);
    n->out[0] = bias ? mgx_build_add(n, y, bias) : y;
    return mgx_node_status(n);
}

static bool is_single(const struct mgx_ins *v)
{
    return !v || mgx_shape_elements(&v->shape) == 1;
}

static enum mgx_status matmul_integer_to_float(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 4, 7));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    if (!is_single(n->in[2]) || !is_single(mgx_node_in(n, 4)))
        return scaled_columns(n);
    struct mgx_ins *const v[4] = {n->in[0], n->in[1], mgx_node_in(n, 4), mgx_node_in(n, 5)};
    return integer_product(n, v, mgx_build_mul(n, n->in[2], n->in[3]), mgx_node_in(n, 6));
}
const struct mgx_onnx_op mgx_onnx_ms_matmul_integer_to_float = {.name = "MatMulIntegerToFloat",
                                                                .domain = "com.microsoft",
                                                                .import = matmul_integer_to_float,
                                                                .result = "2"};

static enum mgx_status dynamic_quantize_matmul(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 5));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *a[3] = {NULL}; // numbers, scale, zero point
    TRY(borrow(n, &mgx_onnx_dynamic_quantize_linear, n->in, 1, a, 3));
    struct mgx_ins *const v[4] = {a[0], n->in[1], a[2], mgx_node_in(n, 3)};
    return integer_product(n, v, mgx_build_mul(n, a[1], n->in[2]), mgx_node_in(n, 4));
}
const struct mgx_onnx_op mgx_onnx_ms_dynamic_quantize_matmul = {
    .name = "DynamicQuantizeMatMul", .domain = "com.microsoft", .import = dynamic_quantize_matmul};

// --- DynamicQuantizeLSTM: an LSTM whose weights {directions, in, gates} are quantized ---

enum { LSTM_INPUTS = 12, W_SCALE = 8, R_ZERO = 11 };

// A scale or zero points of weights x: one for each direction, or one for each of its gates' rows.
static enum mgx_status spread(struct mgx_node *n, const struct mgx_ins *x, int i,
                              struct mgx_ins **v)
{
    const struct mgx_shape *s = &n->in[i]->shape;
    const int64_t each = s->rank == 2 ? s->lens[1] : 1;
    if (s->rank < 1 || s->rank > 2 || s->lens[0] != x->shape.lens[0] ||
        (s->rank == 2 && each != x->shape.lens[2]))
        return mgx_node_invalid(n, "%s of rank %d do not fit %lld directions of %lld",
                                i % 2 ? "zero points" : "scales", s->rank,
                                (long long)x->shape.lens[0], (long long)x->shape.lens[2]);
    *v = mgx_build_reshape(n, n->in[i], (int64_t[]){s->lens[0], each}, 2);
    return mgx_node_status(n);
}

static enum mgx_status dynamic_quantize_lstm(struct mgx_node *n)
{
    TRY(need(n, 11, 12, 0xAF8));
    for (int i = 1; i < n->in_count; i++)
        if (n->in[i] && (i < 3 || i >= W_SCALE) && !mgx_build_is_static(n->in[i]))
            return mgx_onnx_defer(n);
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_ins *in[LSTM_INPUTS] = {NULL};
    for (int i = 0; i < n->in_count; i++)
        in[i] = n->in[i];
    for (int i = 1; i < 3; i++) {
        if (in[i]->shape.rank != 3)
            return mgx_node_invalid(n, "weights have rank %d, not 3", in[i]->shape.rank);
        in[i] = mgx_build_transpose(n, in[i], (int64_t[]){0, 2, 1}, 3);
    }
    for (int i = W_SCALE; i <= R_ZERO; i++)
        if (in[i])
            TRY(spread(n, n->in[i < 10 ? 1 : 2], i, &in[i]));
    struct mgx_node plain = *n;
    plain.in = in;
    plain.in_count = LSTM_INPUTS;
    plain.opset = 14;
    return mgx_onnx_lstm.import(&plain);
}
const struct mgx_onnx_op mgx_onnx_ms_dynamic_quantize_lstm = {.name = "DynamicQuantizeLSTM",
                                                              .domain = "com.microsoft",
                                                              .import = dynamic_quantize_lstm,
                                                              .op = &mgx_op_quant_lstm};
