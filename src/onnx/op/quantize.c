// SPDX-License-Identifier: MIT
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearConv, QLinearMatMul.
//
// Scales and zero points are broadcast to the operand here: one value, one per index of `axis`, or
// one per block of `block_size` along it (opset 21). The QLinear operators become dequantize,
// operator, quantize, which is what the quantization passes take up again.
#include <string.h>

#include "onnx/build.h"
#include "onnx/quantize.h"

// One value per block of `axis` to one per element.
static struct mgx_ins *spread_blocks(struct mgx_node *n, struct mgx_ins *v,
                                     const struct mgx_shape *like, int axis, int64_t block)
{
    const int rank = like->rank;
    int64_t wide[MGX_MAX_RANK];
    struct mgx_shape merged = v->shape;
    if (block == 1)
        return v;
    memcpy(wide, v->shape.lens, (size_t)(axis + 1) * sizeof *wide);
    wide[axis + 1] = block;
    memcpy(wide + axis + 2, v->shape.lens + axis + 1, (size_t)(rank - axis - 1) * sizeof *wide);
    merged.lens[axis] *= block;
    struct mgx_ins *y = mgx_build_unsqueeze(n, v, (int64_t[]){axis + 1}, 1);
    y = mgx_build_expand(n, y, rank + 1, wide);
    y = mgx_build_reshape_like(n, y, &merged);
    return merged.lens[axis] > like->lens[axis] ? mgx_build_slice(n, y, axis, 0, like->lens[axis])
                                                : y;
}

static enum mgx_status blocked(struct mgx_node *n, const struct mgx_ins *x, int axis, int64_t block,
                               struct mgx_ins **v)
{
    const struct mgx_shape *s = &(*v)->shape, *like = &x->shape;
    const int64_t parts = s->lens[axis], length = like->lens[axis];
    if (block < 0 || block > INT32_MAX || parts < 1)
        return mgx_node_invalid(n, "block_size %lld with %lld scales", (long long)block,
                                (long long)parts);
    if (block == 0)
        block = (length + parts - 1) / parts;
    if ((length + block - 1) / (block ? block : 1) != parts)
        return mgx_node_invalid(n, "%lld blocks of %lld do not make %lld", (long long)parts,
                                (long long)block, (long long)length);
    *v = spread_blocks(n, *v, like, axis, block);
    return MGX_OK;
}

enum mgx_status mgx_quantize_spread(struct mgx_node *n, const struct mgx_ins *x, int64_t axis,
                                    int64_t block, struct mgx_ins **v)
{
    const int rank = x->shape.rank, own = (*v)->shape.rank;
    if (own == 0 || (own == 1 && (*v)->shape.lens[0] == 1 && mgx_build_is_static(*v)))
        return MGX_OK; // one value
    if (own > 1 && own != rank)
        return mgx_node_invalid(n, "scale has rank %d, the input %d", own, rank);
    int at = 0;
    TRY(mgx_build_axis(n, axis, rank, &at));
    if (own > 1)
        return blocked(n, x, at, block, v);
    if (rank == 1 && block > 0)
        return blocked(n, x, 0, block, v);
    *v = mgx_build_per_axis(n, *v, at, rank);
    return MGX_OK;
}

// `op` of x, scale and zero point (NULL: none), all of one shape.
static struct mgx_ins *apply(struct mgx_node *n, const struct mgx_op *op,
                             const struct mgx_attr *attrs, struct mgx_ins *x, struct mgx_ins *scale,
                             struct mgx_ins *zero)
{
    struct mgx_ins *v[3] = {x, scale, zero};
    const int count = zero ? 3 : 2;
    if (!x || !scale || mgx_build_broadcast(n, v, count) != MGX_OK)
        return NULL;
    return mgx_build_emit_n(n, op, attrs, v, count);
}

// --- QuantizeLinear ---

// Is enough known of the lengths?
static bool can_spread(const struct mgx_ins *x, const struct mgx_ins *v)
{
    return mgx_build_rank(x) >= 0 && mgx_build_is_static(v) &&
           (mgx_build_rank(v) <= 1 || mgx_build_is_static(x));
}

static enum mgx_status output_type(struct mgx_node *n, const struct mgx_ins *zero,
                                   enum mgx_type *out)
{
    *out = zero ? zero->shape.type : MGX_UINT8;
    const int64_t number = mgx_onnx_int(n, "output_dtype", 0);
    enum mgx_type asked = *out;
    if (number)
        TRY(mgx_onnx_type(n, number, &asked));
    if (zero && asked != *out)
        return mgx_node_invalid(n, "output_dtype is %s, the zero point %s", mgx_type_name(asked),
                                mgx_type_name(*out));
    *out = asked;
    return MGX_OK;
}

static enum mgx_status quantize(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    struct mgx_ins *x = n->in[0], *scale = n->in[1], *zero = mgx_node_in(n, 2);
    if (!can_spread(x, scale) || (zero && !can_spread(x, zero)))
        return mgx_onnx_defer(n);
    const int64_t axis = mgx_onnx_int(n, "axis", 1), block = mgx_onnx_int(n, "block_size", 0);
    enum mgx_type type = MGX_UINT8, precise = scale->shape.type;
    TRY(output_type(n, zero, &type));
    if (mgx_onnx_int(n, "precision", 0))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "precision", 1), &precise));
    if (!mgx_type_is_float(precise) || precise == MGX_FP8E8M0)
        precise = MGX_FLOAT;
    TRY(mgx_quantize_spread(n, x, axis, block, &scale));
    if (zero)
        TRY(mgx_quantize_spread(n, x, axis, block, &zero));
    x = mgx_build_convert(n, x, precise);
    scale = mgx_build_convert(n, scale, precise);
    if (mgx_type_is_fp8(type) && !mgx_onnx_int(n, "saturate", 1)) // infinities and NaN pass through
        n->out[0] = mgx_build_convert(n, mgx_build_div(n, x, scale), type);
    else
        n->out[0] =
            apply(n, &mgx_op_quantizelinear, MGX_ATTRS(mgx_int("out_type", type)), x, scale, zero);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_quantize_linear = {.name = "QuantizeLinear",
                                                     .import = quantize,
                                                     .result = "@2?u",
                                                     .result_attribute = "output_dtype"};
// Quantizers write it where the operator set has no types of 16 and 4 bits yet.
const struct mgx_onnx_op mgx_onnx_ms_quantize_linear = {
    .name = "QuantizeLinear", .domain = "com.microsoft", .import = quantize, .result = "2?u"};

static enum mgx_status dequantize(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    struct mgx_ins *x = n->in[0], *scale = n->in[1], *zero = mgx_node_in(n, 2);
    if (!can_spread(x, scale) || (zero && !can_spread(x, zero)))
        return mgx_onnx_defer(n);
    const int64_t axis = mgx_onnx_int(n, "axis", 1), block = mgx_onnx_int(n, "block_size", 0);
    enum mgx_type type = scale->shape.type;
    if (mgx_onnx_int(n, "output_dtype", 0))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "output_dtype", 1), &type));
    TRY(mgx_quantize_spread(n, x, axis, block, &scale));
    if (zero)
        TRY(mgx_quantize_spread(n, x, axis, block, &zero));
    if (scale && scale->shape.type == MGX_FP8E8M0)
        scale = mgx_build_convert(n, scale, MGX_FLOAT);
    n->out[0] =
        mgx_build_convert(n, apply(n, &mgx_op_dequantizelinear, NULL, x, scale, zero), type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_dequantize_linear = {.name = "DequantizeLinear",
                                                       .import = dequantize,
                                                       .result = "@1",
                                                       .result_attribute = "output_dtype"};
const struct mgx_onnx_op mgx_onnx_ms_dequantize_linear = {
    .name = "DequantizeLinear", .domain = "com.microsoft", .import = dequantize, .result = "1"};

// --- DynamicQuantizeLinear ---

// min(x, 0) or max(x, 0) over everything, a scalar.
static struct mgx_ins *extreme(struct mgx_node *n, const struct mgx_op *reduce,
                               const struct mgx_op *with_zero)
{
    int64_t axes[MGX_MAX_RANK];
    const int rank = mgx_build_rank(n->in[0]);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    struct mgx_ins *y = rank ? mgx_build_reduce(n, reduce, n->in[0], axes, rank, false) : n->in[0];
    return mgx_build_with(n, with_zero, y, 0);
}

static enum mgx_status dynamic_quantize(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_ins *low = extreme(n, &mgx_op_reduce_min, &mgx_op_min);
    struct mgx_ins *high = extreme(n, &mgx_op_reduce_max, &mgx_op_max);
    struct mgx_ins *scale = mgx_build_with(n, &mgx_op_div, mgx_build_sub(n, high, low), 255);
    // All zeros: any scale will do, but it must not be 0.
    struct mgx_ins *is_zero = mgx_build_equal(n, scale, mgx_build_like(n, scale, 0));
    scale = mgx_build_where(n, is_zero, mgx_build_like(n, scale, 1), scale);
    struct mgx_ins *zero = mgx_build_nearbyint(n, mgx_build_div(n, mgx_build_neg(n, low), scale));
    zero = mgx_build_convert(n, mgx_build_clamp(n, zero, 0, 255), MGX_UINT8);
    n->out[0] = apply(n, &mgx_op_quantizelinear, MGX_ATTRS(mgx_int("out_type", MGX_UINT8)),
                      n->in[0], scale, zero);
    if (n->out_count > 1)
        n->out[1] = scale;
    if (n->out_count > 2)
        n->out[2] = zero;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_dynamic_quantize_linear = {
    .name = "DynamicQuantizeLinear", .import = dynamic_quantize, .result = "ufu"};

// --- QLinearConv, QLinearMatMul ---

struct mgx_ins *mgx_quantize_undo(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *scale,
                                  struct mgx_ins *zero, int axis)
{
    if (mgx_quantize_spread(n, x, axis, 0, &scale) != MGX_OK ||
        (zero && mgx_quantize_spread(n, x, axis, 0, &zero) != MGX_OK))
        return NULL;
    return apply(n, &mgx_op_dequantizelinear, NULL, x, scale, zero);
}

// A scale may be a half; what is computed in between is no result, and need not be rounded to it.
struct mgx_ins *mgx_quantize_from(struct mgx_node *n, struct mgx_ins *x, int i, int axis)
{
    struct mgx_ins *scale = mgx_build_convert(n, n->in[i], MGX_FLOAT);
    return scale ? mgx_quantize_undo(n, x, scale, mgx_node_in(n, i + 1), axis) : NULL;
}

struct mgx_ins *mgx_quantize_to(struct mgx_node *n, struct mgx_ins *x, int i, int axis)
{
    struct mgx_ins *scale = n->in[i], *zero = mgx_node_in(n, i + 1);
    if (!x || mgx_quantize_spread(n, x, axis, 0, &scale) != MGX_OK ||
        (zero && mgx_quantize_spread(n, x, axis, 0, &zero) != MGX_OK))
        return NULL;
    const enum mgx_type type = zero ? zero->shape.type : MGX_UINT8;
    return apply(n, &mgx_op_quantizelinear, MGX_ATTRS(mgx_int("out_type", type)), x,
                 mgx_build_convert(n, scale, x->shape.type), zero);
}

// A scale per row of the left operand, a vector, lies along its next to last axis.
static enum mgx_status qlinear_matmul(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 8, 8));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *a = n->in[0], *b = n->in[3];
    struct mgx_ins *x = mgx_quantize_from(n, a, 1, a->shape.rank > 1 ? -2 : -1);
    struct mgx_ins *w = mgx_quantize_from(n, b, 4, -1);
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_dot, x, w);
    n->out[0] = mgx_quantize_to(n, y, 6, y && y->shape.rank > 1 ? -2 : -1);
    return n->diag->status;
}
const struct mgx_onnx_op mgx_onnx_qlinear_matmul = {
    .name = "QLinearMatMul", .import = qlinear_matmul, .result = "7"};
