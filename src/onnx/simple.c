// SPDX-License-Identifier: MIT
// ONNX operators that map to one IR operator: a row each. What differs over the versions of such
// operators is broadcasting (before opset 7 an attribute pair, `broadcast` and `axis`, aligns the
// second operand) and the types allowed, which the IR operators check.
#include <string.h>

#include "onnx/build.h"

static enum mgx_status unary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, n->rule->op, n->in[0]);
    return MGX_OK;
}

// Unary predicates: bool results.
static enum mgx_status predicate(struct mgx_node *n)
{
    TRY(unary(n));
    n->out[0] = mgx_build_convert(n, n->out[0], MGX_BOOL);
    return MGX_OK;
}

// The rules below build on these two; a deferred node is finished, so they ask before.
static enum mgx_status emit_binary(struct mgx_node *n)
{
    struct mgx_ins *v[2] = {n->in[0], n->in[1]};
    TRY(mgx_onnx_align(n, &v[1]));
    mgx_build_unify(n, v, 2);
    n->out[0] = mgx_build_binary(n, n->rule->op, v[0], v[1]);
    return MGX_OK;
}

static enum mgx_status binary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    return mgx_build_ranked(n) ? emit_binary(n) : mgx_onnx_defer(n);
}

static enum mgx_status compare(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(emit_binary(n));
    n->out[0] = mgx_build_convert(n, n->out[0], MGX_BOOL);
    return MGX_OK;
}

// a >= b as (a > b) or (a == b): unlike not (a < b) it is false for NaN.
static enum mgx_status compare_or_equal(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(emit_binary(n));
    struct mgx_ins *strict = mgx_build_convert(n, n->out[0], MGX_BOOL);
    struct mgx_ins *v[2] = {n->in[0], n->in[1]};
    mgx_build_unify(n, v, 2);
    n->out[0] = mgx_build_logical_or(n, strict, mgx_build_equal(n, v[0], v[1]));
    return MGX_OK;
}

// One to any number of operands, folded from the left.
static struct mgx_ins *fold(struct mgx_node *n)
{
    struct mgx_ins **v = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    if (!v) {
        mgx_fail_memory(n->diag);
        return NULL;
    }
    memcpy(v, n->in, (size_t)n->in_count * sizeof *v);
    mgx_build_unify(n, v, n->in_count);
    struct mgx_ins *y = v[0];
    for (int i = 1; i < n->in_count; i++)
        y = mgx_build_binary(n, n->rule->op, y, v[i]);
    return y;
}

static enum mgx_status variadic(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    n->out[0] = fold(n);
    return MGX_OK;
}

static enum mgx_status mean(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *sum = fold(n);
    n->out[0] = n->in_count > 1 ? mgx_build_with(n, &mgx_op_div, sum, n->in_count) : sum;
    return MGX_OK;
}

// Values that are not tensors (sequences, optionals) pass through as they are, and so does an
// optional input that is absent.
static enum mgx_status identity(struct mgx_node *n)
{
    if (n->in_count == 1 && !n->in[0]) {
        n->out[0] = mgx_build_undefined(n);
        return MGX_OK;
    }
    TRY(mgx_node_need(n, 1, 1));
    const enum mgx_type type = n->in[0]->shape.type;
    n->out[0] = type == MGX_SEQUENCE || type == MGX_TUPLE
                    ? n->in[0]
                    : mgx_build_unary(n, &mgx_op_identity, n->in[0]);
    return MGX_OK;
}

static enum mgx_status where(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *v[2] = {n->in[1], n->in[2]};
    mgx_build_unify(n, v, 2);
    n->out[0] = mgx_build_where(n, n->in[0], v[0], v[1]);
    return MGX_OK;
}

// clang-format off
const struct mgx_onnx_op mgx_onnx_abs = {.name = "Abs", .import = unary, .op = &mgx_op_abs};
const struct mgx_onnx_op mgx_onnx_acos = {.name = "Acos", .import = unary, .op = &mgx_op_acos};
const struct mgx_onnx_op mgx_onnx_acosh = {.name = "Acosh", .import = unary, .op = &mgx_op_acosh};
const struct mgx_onnx_op mgx_onnx_add = {.name = "Add", .import = binary, .op = &mgx_op_add};
const struct mgx_onnx_op mgx_onnx_and = {.name = "And", .import = compare, .op = &mgx_op_logical_and, .result = "b"};
const struct mgx_onnx_op mgx_onnx_asin = {.name = "Asin", .import = unary, .op = &mgx_op_asin};
const struct mgx_onnx_op mgx_onnx_asinh = {.name = "Asinh", .import = unary, .op = &mgx_op_asinh};
const struct mgx_onnx_op mgx_onnx_atan = {.name = "Atan", .import = unary, .op = &mgx_op_atan};
const struct mgx_onnx_op mgx_onnx_atanh = {.name = "Atanh", .import = unary, .op = &mgx_op_atanh};
const struct mgx_onnx_op mgx_onnx_bitwise_and = {.name = "BitwiseAnd", .import = binary, .op = &mgx_op_bitwise_and};
const struct mgx_onnx_op mgx_onnx_bitwise_not = {.name = "BitwiseNot", .import = unary, .op = &mgx_op_bitwise_not};
const struct mgx_onnx_op mgx_onnx_bitwise_or = {.name = "BitwiseOr", .import = binary, .op = &mgx_op_bitwise_or};
const struct mgx_onnx_op mgx_onnx_bitwise_xor = {.name = "BitwiseXor", .import = binary, .op = &mgx_op_bitwise_xor};
const struct mgx_onnx_op mgx_onnx_ceil = {.name = "Ceil", .import = unary, .op = &mgx_op_ceil};
const struct mgx_onnx_op mgx_onnx_cos = {.name = "Cos", .import = unary, .op = &mgx_op_cos};
const struct mgx_onnx_op mgx_onnx_cosh = {.name = "Cosh", .import = unary, .op = &mgx_op_cosh};
const struct mgx_onnx_op mgx_onnx_div = {.name = "Div", .import = binary, .op = &mgx_op_div};
const struct mgx_onnx_op mgx_onnx_equal = {.name = "Equal", .import = compare, .op = &mgx_op_equal, .takes = MGX_ONNX_TEXT, .result = "b"};
const struct mgx_onnx_op mgx_onnx_erf = {.name = "Erf", .import = unary, .op = &mgx_op_erf};
const struct mgx_onnx_op mgx_onnx_exp = {.name = "Exp", .import = unary, .op = &mgx_op_exp};
const struct mgx_onnx_op mgx_onnx_floor = {.name = "Floor", .import = unary, .op = &mgx_op_floor};
const struct mgx_onnx_op mgx_onnx_greater = {.name = "Greater", .import = compare, .op = &mgx_op_greater, .result = "b"};
const struct mgx_onnx_op mgx_onnx_greater_or_equal = {.name = "GreaterOrEqual", .import = compare_or_equal, .op = &mgx_op_greater, .result = "b"};
const struct mgx_onnx_op mgx_onnx_identity = {.name = "Identity", .import = identity, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX | MGX_ONNX_SEQUENCE | MGX_ONNX_OPTIONAL};
const struct mgx_onnx_op mgx_onnx_is_nan = {.name = "IsNaN", .import = predicate, .op = &mgx_op_isnan, .result = "b"};
const struct mgx_onnx_op mgx_onnx_less = {.name = "Less", .import = compare, .op = &mgx_op_less, .result = "b"};
const struct mgx_onnx_op mgx_onnx_less_or_equal = {.name = "LessOrEqual", .import = compare_or_equal, .op = &mgx_op_less, .result = "b"};
const struct mgx_onnx_op mgx_onnx_log = {.name = "Log", .import = unary, .op = &mgx_op_log};
const struct mgx_onnx_op mgx_onnx_max = {.name = "Max", .import = variadic, .op = &mgx_op_max};
const struct mgx_onnx_op mgx_onnx_mean = {.name = "Mean", .import = mean, .op = &mgx_op_add};
const struct mgx_onnx_op mgx_onnx_min = {.name = "Min", .import = variadic, .op = &mgx_op_min};
const struct mgx_onnx_op mgx_onnx_mul = {.name = "Mul", .import = binary, .op = &mgx_op_mul};
const struct mgx_onnx_op mgx_onnx_neg = {.name = "Neg", .import = unary, .op = &mgx_op_neg};
const struct mgx_onnx_op mgx_onnx_not = {.name = "Not", .import = predicate, .op = &mgx_op_not, .result = "b"};
const struct mgx_onnx_op mgx_onnx_or = {.name = "Or", .import = compare, .op = &mgx_op_logical_or, .result = "b"};
const struct mgx_onnx_op mgx_onnx_reciprocal = {.name = "Reciprocal", .import = unary, .op = &mgx_op_recip};
const struct mgx_onnx_op mgx_onnx_relu = {.name = "Relu", .import = unary, .op = &mgx_op_relu};
const struct mgx_onnx_op mgx_onnx_round = {.name = "Round", .import = unary, .op = &mgx_op_nearbyint};
const struct mgx_onnx_op mgx_onnx_sigmoid = {.name = "Sigmoid", .import = unary, .op = &mgx_op_sigmoid};
const struct mgx_onnx_op mgx_onnx_sign = {.name = "Sign", .import = unary, .op = &mgx_op_sign};
const struct mgx_onnx_op mgx_onnx_sin = {.name = "Sin", .import = unary, .op = &mgx_op_sin};
const struct mgx_onnx_op mgx_onnx_sinh = {.name = "Sinh", .import = unary, .op = &mgx_op_sinh};
const struct mgx_onnx_op mgx_onnx_sqrt = {.name = "Sqrt", .import = unary, .op = &mgx_op_sqrt};
const struct mgx_onnx_op mgx_onnx_sub = {.name = "Sub", .import = binary, .op = &mgx_op_sub};
const struct mgx_onnx_op mgx_onnx_sum = {.name = "Sum", .import = variadic, .op = &mgx_op_add};
const struct mgx_onnx_op mgx_onnx_tan = {.name = "Tan", .import = unary, .op = &mgx_op_tan};
const struct mgx_onnx_op mgx_onnx_tanh = {.name = "Tanh", .import = unary, .op = &mgx_op_tanh};
const struct mgx_onnx_op mgx_onnx_where = {.name = "Where", .import = where, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX, .result = "1"};
const struct mgx_onnx_op mgx_onnx_xor = {.name = "Xor", .import = compare, .op = &mgx_op_logical_xor, .result = "b"};
// clang-format on
