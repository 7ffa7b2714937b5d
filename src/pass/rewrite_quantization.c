// SPDX-License-Identifier: MIT
// Quantizing and dequantizing in operators that every target has.
//
//     quantizelinear(x, s, z)    =>  convert[t](clip(nearbyint(x / s) + z, lowest t, highest t)),
//                                    of a NaN the lowest
//     dequantizelinear(x, s, z)  =>  (convert[u](x) - convert[u](z)) s       u: the type of s
//     quant_dot(a, b, p, q)      =>  dot(convert[y](a) - p, convert[y](b) - q)      y: int32, or float
//     quant_convolution(...)     =>  likewise
//
// Of integers of 16 bits and less, floats of 8 and 4 bits, and scales that are floats. x and scales
// of 16 bits are computed in float. There every step is exact but the division and the product,
// which are rounded as before. A quotient of 16 bits is rounded to those in float, by plain
// operators too: with f = 2^k + 1 and k the bits that go, q f - (q f - q) is q without them. z may
// be absent.
//
// A target that multiplies fp8 keeps its products.
//
// A target that multiplies bytes keeps what its kernels take: products of bytes without zero
// points, or of attention that it takes as a whole, and what quantizes and dequantizes floats of 32
// bits and bytes, or sums of 32 bits.
//
// The GPU target runs it; others when a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/byte_attention.h"
#include "pass/engine/emit.h"
#include "pass/engine/product.h"
#include "pass/engine/rewrite.h"

static bool is_narrow(enum mgx_type t)
{
    const bool wide = mgx_type_size(t) > 2 || mgx_type_is_half_or_bf16(t);
    return mgx_type_is_number(t) && !wide && t != MGX_BOOL && t != MGX_FP8E8M0 && t != MGX_FP4X2;
}

static bool is_scale(enum mgx_type t)
{
    return t == MGX_FLOAT || t == MGX_DOUBLE || mgx_type_is_half_or_bf16(t);
}

static enum mgx_type work_type(enum mgx_type t)
{
    return t == MGX_DOUBLE ? MGX_DOUBLE : MGX_FLOAT;
}

static struct mgx_ins *clip(struct mgx_ins *at, struct mgx_ins *x, double low, double high)
{
    const struct mgx_shape like = x->shape;
    return mgx_emit_before(
        at, &mgx_op_clip, NULL,
        MGX_IN(x, mgx_emit_splat(at, &like, low), mgx_emit_splat(at, &like, high)));
}

// What is no number becomes the lowest integer.
static struct mgx_ins *lowest_for_nan(struct mgx_ins *at, struct mgx_ins *x, double low)
{
    const struct mgx_shape like = x->shape;
    struct mgx_ins *least = mgx_emit_splat(at, &like, low);
    struct mgx_ins *above = mgx_emit_binary(at, &mgx_op_greater, x, least);
    return mgx_emit_before(at, &mgx_op_where, NULL, MGX_IN(above, x, least));
}

// A float rounded to the digits of a narrower type; what is far beyond integers of 16 bits is cut.
static struct mgx_ins *round_to(struct mgx_ins *at, struct mgx_ins *q, enum mgx_type type)
{
    if (!mgx_type_is_half_or_bf16(type))
        return q;
    q = clip(at, q, -0x1p40, 0x1p40);
    const struct mgx_shape like = q->shape;
    const double factor = type == MGX_HALF ? 0x1p13 + 1 : 0x1p16 + 1;
    struct mgx_ins *high = mgx_emit_binary(at, &mgx_op_mul, q, mgx_emit_splat(at, &like, factor));
    high = high ? clip(at, high, -0x1p80, 0x1p80) : NULL; // so that no compiler fuses q f - q
    return mgx_emit_binary(at, &mgx_op_sub, high, mgx_emit_binary(at, &mgx_op_sub, high, q));
}

// What a target that multiplies bytes has kernels for.
static bool is_kept(const struct mgx_rewriter *r, const struct mgx_ins *ins, enum mgx_type narrow,
                    enum mgx_type wide)
{
    const bool byte =
        mgx_type_is_byte(narrow) || (narrow == MGX_INT32 && ins->op == &mgx_op_dequantizelinear);
    return r->call->options->target.multiplies_bytes && byte && wide == MGX_FLOAT &&
           ins->in[1]->shape.type == MGX_FLOAT;
}

// Depthwise, by bytes less a zero point (bare_products)?
static bool is_shifted_depthwise(const struct mgx_ins *ins)
{
    const int64_t group = ins->op == &mgx_op_quant_convolution ? mgx_ins_int(ins, "group") : 1;
    struct mgx_range range;
    return group > 1 && ins->in[0]->shape.lens[1] == group && ins->in[1]->shape.type == MGX_INT16 &&
           mgx_constant_range(ins->in[1], &range) && range.low >= -255 && range.high <= 255;
}

static bool is_bare(const struct mgx_rewriter *r, const struct mgx_ins *ins)
{
    const struct mgx_pass_target *target = &r->call->options->target;
    const enum mgx_type a = ins->in[0]->shape.type, b = ins->in[1]->shape.type;
    return ins->in_count == 2 &&
           ((target->multiplies_bytes && mgx_type_is_byte(a) &&
             (mgx_type_is_byte(b) || is_shifted_depthwise(ins))) ||
            (target->multiplies_fp8 && mgx_type_is_fp8(a) && mgx_type_is_fp8(b)));
}

static struct mgx_ins *quantize(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    struct mgx_ins *x = ins->in[0], *scale = ins->in[1];
    const enum mgx_type to = ins->shape.type, type = work_type(x->shape.type);
    (void)m;
    if (is_kept(r, ins, to, x->shape.type) || !is_narrow(to) || !is_scale(x->shape.type) ||
        work_type(scale->shape.type) != type)
        return NULL;
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_div, mgx_emit_convert(ins, x, type),
                                        mgx_emit_convert(ins, scale, type));
    y = y ? round_to(ins, y, x->shape.type) : NULL;
    if (mgx_type_is_integral(to))
        y = mgx_emit_unary(ins, &mgx_op_nearbyint, y);
    if (ins->in_count == 3)
        y = mgx_emit_binary(ins, &mgx_op_add, y, mgx_emit_convert(ins, ins->in[2], type));
    if (y && mgx_type_is_integral(to))
        y = lowest_for_nan(ins, y, mgx_type_lowest(to));
    y = y ? clip(ins, y, mgx_type_lowest(to), mgx_type_highest(to)) : NULL;
    return mgx_emit_convert(ins, y, to);
}

static struct mgx_ins *dequantize(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *scale = ins->in[1];
    const enum mgx_type type = work_type(scale->shape.type);
    (void)m;
    if (is_kept(r, ins, ins->in[0]->shape.type, ins->shape.type) ||
        !is_narrow(ins->in[0]->shape.type) || !is_scale(scale->shape.type))
        return NULL;
    struct mgx_ins *y = mgx_emit_convert(ins, ins->in[0], type);
    if (ins->in_count == 3)
        y = mgx_emit_binary(ins, &mgx_op_sub, y, mgx_emit_convert(ins, ins->in[2], type));
    y = mgx_emit_binary(ins, &mgx_op_mul, y, mgx_emit_convert(ins, scale, type));
    return mgx_emit_convert(ins, y, ins->shape.type);
}

static struct mgx_ins *widen(struct mgx_ins *ins, int input, int axis)
{
    struct mgx_ins *zero = input + 2 < ins->in_count ? ins->in[input + 2] : NULL;
    return mgx_emit_shifted(ins, ins->in[input], zero, axis, ins->shape.type);
}

static struct mgx_ins *dot(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    if (is_bare(r, ins) || mgx_in_byte_attention(r->call->options, ins) ||
        mgx_keeps_zeros(r->call->options, ins))
        return NULL;
    struct mgx_ins *a = widen(ins, 0, 0), *b = widen(ins, 1, ins->shape.rank - 1);
    return mgx_emit_before(ins, &mgx_op_dot, NULL, MGX_IN(a, b));
}

static struct mgx_ins *convolution(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)m;
    if (is_bare(r, ins))
        return NULL;
    struct mgx_ins *x = widen(ins, 0, 1), *w = widen(ins, 1, 0);
    return mgx_insert(ins->owner, ins, &mgx_op_convolution, ins->attr, // the same attributes
                      (struct mgx_ins *[]){x, w}, 2, NULL, 0);
}

// In floats, which hold sums of up to 24 bits: kernels have no other transposed ones.
static struct mgx_ins *backwards(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)m;
    if (!r->call->options->target.multiplies_bytes)
        return NULL;
    struct mgx_ins *x =
        mgx_emit_shifted(ins, ins->in[0], ins->in_count > 2 ? ins->in[2] : NULL, 1, MGX_FLOAT);
    struct mgx_ins *w =
        mgx_emit_shifted(ins, ins->in[1], ins->in_count > 3 ? ins->in[3] : NULL, 1, MGX_FLOAT);
    return mgx_emit_convert(ins,
                            mgx_insert(ins->owner, ins, &mgx_op_convolution_backwards, ins->attr,
                                       (struct mgx_ins *[]){x, w}, 2, NULL, 0),
                            ins->shape.type);
}

static const struct mgx_rule rules[] = {
    {"quantizelinear ~> convert(clip(nearbyint(x / s) + z))", MGX_IF_STATIC, .rewrite = quantize},
    {"dequantizelinear ~> (convert(x) - convert(z)) s", MGX_IF_STATIC, .rewrite = dequantize},
    {"quant_dot ~> dot(convert(a) - p, convert(b) - q)", MGX_IF_STATIC, .rewrite = dot},
    {"quant_convolution ~> convolution(convert(x) - p, convert(w) - q)", MGX_IF_STATIC,
     .rewrite = convolution},
    {"quant_convolution_backwards ~> convert(convolution_backwards(convert(x) - p, convert(w) - "
     "q))",
     MGX_IF_STATIC, .rewrite = backwards},
};

const struct mgx_pass mgx_pass_rewrite_quantization = {
    .name = "rewrite_quantization",
    .meaning = "spells quantizing and dequantizing out in plain operators",
    .rules = {rules, MGX_COUNT(rules)},
};
