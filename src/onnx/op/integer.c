// SPDX-License-Identifier: MIT
// MatMulInteger and ConvInteger: products of quantized integers in int32, exact.
//
// The narrow operands go into one quant_dot or quant_convolution as they are, with their zero
// points where these are one value, or of the right operand one for every column. Others are taken
// out of the product afterwards,
//
//     sum (a - p)(b - q) = sum a b - p sum b - q sum a + p q count
//
// where a sum over one operand is small and, of constant weights, folded.
#include <assert.h>
#include <string.h>

#include "onnx/build.h"
#include "onnx/window.h"

// Operands are of eight bits, and each zero point is of its operand's type.
static enum mgx_status check_types(struct mgx_node *n)
{
    for (int i = 0; i < 2; i++) {
        const enum mgx_type type = n->in[i]->shape.type;
        const struct mgx_ins *zero = mgx_node_in(n, 2 + i);
        if (!mgx_type_is_integral(type) || mgx_type_size(type) != 1)
            return mgx_node_invalid(n, "input %d is of type %s, not of integers of 8 bits", i,
                                    mgx_type_name(type));
        if (zero && zero->shape.type != type)
            return mgx_node_invalid(n, "input %d is of type %s, its zero point %s", i,
                                    mgx_type_name(type), mgx_type_name(zero->shape.type));
    }
    return MGX_OK;
}

// A zero point, NULL when absent or constant zero.
static struct mgx_ins *zero_point(struct mgx_node *n, int i)
{
    assert(i >= 0);
    struct mgx_ints v = {0};
    bool any = true;
    if (!mgx_node_in(n, i))
        return NULL;
    if (mgx_node_constant_ints(n, i, &v)) {
        any = false;
        for (int k = 0; k < v.count; k++)
            any |= v.v[k] != 0;
    }
    return any ? n->in[i] : NULL;
}

static bool is_vector(const struct mgx_ins *v)
{
    return v->shape.rank == 1 && !(mgx_build_is_static(v) && v->shape.lens[0] == 1);
}

// --- MatMulInteger ---

static struct mgx_ins *sum_along(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    assert(!x || (axis >= 0 && axis < x->shape.rank));
    return mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_convert(n, x, MGX_INT32),
                            (int64_t[]){axis}, 1, true);
}

// Does the zero point vary along the axis that is summed? It cannot be taken out of the sum then.
static bool varies(const struct mgx_ins *zero, int from_end)
{
    const int axis = zero ? zero->shape.rank - from_end : -1;
    return zero && zero->shape.rank >= 2 &&
           !(mgx_build_fixed_dim(zero, axis) && mgx_shape_dim(&zero->shape, axis).min == 1);
}

// Does a product take this zero point: one value, or of the right operand a vector?
static bool taken(const struct mgx_ins *zero, bool vector)
{
    return !zero || (mgx_build_is_static(zero) &&
                     (mgx_shape_elements(&zero->shape) == 1 || (vector && zero->shape.rank == 1)));
}

// The inputs of a product with these zero points; returns how many.
static int with_zeros(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b, struct mgx_ins *p,
                      struct mgx_ins *q, struct mgx_ins *v[4])
{
    v[0] = a;
    v[1] = b;
    v[2] = p || !q ? p : mgx_build_scalar(n, a->shape.type, 0);
    v[3] = q;
    return q ? 4 : p ? 3 : 2;
}

// An operand without its zero point, which differs from element to element.
static struct mgx_ins *shift(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *zero)
{
    x = mgx_build_convert(n, x, MGX_INT32);
    return zero ? mgx_build_sub(n, x, zero) : x;
}

static struct mgx_ins *as_int(struct mgx_node *n, struct mgx_ins *zero)
{
    return zero ? mgx_build_convert(n, zero, MGX_INT32) : NULL;
}

// The product of matrices whose zero points quant_dot does not take.
static struct mgx_ins *corrected(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b,
                                 struct mgx_ins *p, struct mgx_ins *q)
{
    const int inner = a->shape.rank - 1;
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_quant_dot, a, b);
    p = as_int(n, p);
    q = as_int(n, q);
    if (p && is_vector(p)) // one per row
        p = mgx_build_unsqueeze(n, p, (int64_t[]){1}, 1);
    if (p)
        y = mgx_build_sub(n, y, mgx_build_mul(n, p, sum_along(n, b, b->shape.rank - 2)));
    if (q)
        y = mgx_build_sub(n, y, mgx_build_mul(n, sum_along(n, a, inner), q));
    if (p && q)
        y = mgx_build_add(
            n, y,
            mgx_build_with(n, &mgx_op_mul, mgx_build_mul(n, p, q), (double)a->shape.lens[inner]));
    return y;
}

static enum mgx_status product(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b,
                               struct mgx_ins **y)
{
    struct mgx_ins *p = zero_point(n, 2), *q = zero_point(n, 3), *v[4];
    if (taken(p, false) && taken(q, true)) {
        const int count = with_zeros(n, a, b, p, q, v);
        *y = mgx_build_matmul_of(n, &mgx_op_quant_dot, v, count);
    } else if (varies(p, 1) || varies(q, 2)) {
        p = p && is_vector(p) ? mgx_build_unsqueeze(n, p, (int64_t[]){1}, 1) : p;
        a = shift(n, a, as_int(n, p));
        b = shift(n, b, as_int(n, q));
        *y = mgx_build_matmul(n, &mgx_op_quant_dot, a, b);
    } else {
        if (p && q && !mgx_build_fixed_dim(a, a->shape.rank - 1))
            return mgx_onnx_defer(n);
        *y = corrected(n, a, b, p, q);
    }
    return MGX_OK;
}

static enum mgx_status matmul_integer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 4));
    TRY(check_types(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *a = n->in[0], *b = n->in[1], *y = NULL;
    if (!a->shape.rank || !b->shape.rank)
        return mgx_node_invalid(n, "input %d is a scalar, not a matrix", a->shape.rank ? 1 : 0);
    const bool row = a->shape.rank == 1, column = b->shape.rank == 1;
    if (row)
        a = mgx_build_unsqueeze(n, a, (int64_t[]){0}, 1);
    if (column)
        b = mgx_build_unsqueeze(n, b, (int64_t[]){1}, 1);
    if (!a || !b)
        return MGX_OK;
    TRY(product(n, a, b, &y));
    if (!y) // it waits for its sizes
        return MGX_OK;
    const int64_t last = y->shape.rank - 1, axes[2] = {last - 1, last};
    if (row || column)
        y = mgx_build_squeeze(n, y, row ? axes : axes + 1, row && column ? 2 : 1);
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_matmul_integer = {
    .name = "MatMulInteger", .import = matmul_integer, .result = "i"};

// --- ConvInteger ---

struct conv {
    struct mgx_import_window w;
    int64_t group;
    const struct mgx_shape *x, *weights;
};

static enum mgx_status conv_integer(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 4));
    TRY(check_types(n));
    struct conv c = {.group = mgx_onnx_int(n, "group", 1)};
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    c.x = &n->in[0]->shape;
    c.weights = &n->in[1]->shape;
    if (c.x->rank != c.weights->rank || c.group < 1)
        return mgx_node_invalid(n, "input of rank %d, weights of rank %d, %lld groups", c.x->rank,
                                c.weights->rank, (long long)c.group);
    TRY(mgx_onnx_window_read(n, n->in[0], c.weights->lens + 2, &c.w));
    struct mgx_ins *p = zero_point(n, 2), *q = zero_point(n, 3), *v[4];
    if (!taken(p, false) || !taken(q, true))
        return mgx_node_invalid(n, "a zero point is neither one value nor one for every channel");
    const int count = with_zeros(n, n->in[0], n->in[1], p, q, v);
    n->out[0] = mgx_build_emit_n(n, &mgx_op_quant_convolution,
                                 MGX_ATTRS(mgx_ints("padding", c.w.pads, 2 * c.w.spatial),
                                           mgx_ints("stride", c.w.strides, c.w.spatial),
                                           mgx_ints("dilation", c.w.dilations, c.w.spatial),
                                           mgx_int("padding_mode", c.w.padding_mode),
                                           mgx_int("group", c.group)),
                                 v, count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_conv_integer = {
    .name = "ConvInteger", .import = conv_integer, .result = "i"};
