// SPDX-License-Identifier: MIT
// Arithmetic whose operator depends on an attribute or on types: Pow, Mod, BitShift, IsInf, Det,
// BitCast.
#include <string.h>

#include "onnx/build.h"

// Base and exponent may differ in type; the result has the base's. A float of either is the type to
// compute in, the base's first.
static enum mgx_status power(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *base = n->in[0], *exponent = n->in[1];
    const enum mgx_type type = base->shape.type, other = exponent->shape.type;
    TRY(mgx_onnx_align(n, &exponent));
    const bool by_exponent = !mgx_type_is_float(type) && mgx_type_is_float(other);
    const enum mgx_type compute = by_exponent ? other : type;
    struct mgx_ins *y = mgx_build_pow(n, mgx_build_convert(n, base, compute),
                                      mgx_build_convert(n, exponent, compute));
    n->out[0] = mgx_build_convert(n, y, type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_pow = {.name = "Pow", .import = power};

static enum mgx_status mod(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *v[2] = {n->in[0], n->in[1]};
    mgx_build_unify(n, v, 2);
    n->out[0] =
        mgx_onnx_int(n, "fmod", 0) ? mgx_build_fmod(n, v[0], v[1]) : mgx_build_mod(n, v[0], v[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_mod = {.name = "Mod", .import = mod};

static enum mgx_status bit_shift(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const char *direction = mgx_onnx_text(n, "direction", "");
    const bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return mgx_node_invalid(n, "direction \"%s\" is neither LEFT nor RIGHT", direction);
    n->out[0] = mgx_build_binary(n, left ? &mgx_op_bit_shift_left : &mgx_op_bit_shift_right,
                                 n->in[0], n->in[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_bit_shift = {.name = "BitShift", .import = bit_shift};

static enum mgx_status is_inf(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0], *zero = mgx_build_like(n, x, 0);
    const bool negative = mgx_onnx_int(n, "detect_negative", 1) != 0;
    const bool positive = mgx_onnx_int(n, "detect_positive", 1) != 0;
    struct mgx_ins *y = mgx_build_convert(n, mgx_build_unary(n, &mgx_op_isinf, x), MGX_BOOL);
    if (!negative || !positive) { // x < 0 and x > 0 at once is never
        if (mgx_build_rank(x) < 0)
            return mgx_onnx_defer(n);
        if (!negative)
            y = mgx_build_logical_and(n, y, mgx_build_greater(n, x, zero));
        if (!positive)
            y = mgx_build_logical_and(n, y, mgx_build_less(n, x, zero));
    }
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_is_inf = {.name = "IsInf", .import = is_inf, .result = "b"};

static enum mgx_status bit_cast(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    enum mgx_type type = MGX_FLOAT;
    TRY(mgx_onnx_type(n, mgx_onnx_int(n, "to", 0), &type));
    n->out[0] = mgx_build_emit(n, &mgx_op_bit_cast, MGX_ATTRS(mgx_int("target_type", type)),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_bit_cast = {.name = "BitCast",
                                              .import = bit_cast,
                                              .takes = MGX_ONNX_COMPLEX,
                                              .result = "@0",
                                              .result_attribute = "to"};
