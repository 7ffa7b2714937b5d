// SPDX-License-Identifier: MIT
// Quantizing and dequantizing in operators that every target has.
//
//     quantizelinear(x, s, z)    =>  convert[t](clip(nearbyint(x / s) + z, lowest t, highest t))
//     dequantizelinear(x, s, z)  =>  (convert[u](x) - convert[u](z)) s       u: the type of s
//
// Of 8- and 16-bit integers and scales of float or double: there every step is exact but the
// division and the product, which are rounded as before. z may be absent.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static bool is_small_integer(enum mgx_type t)
{
    return t == MGX_INT8 || t == MGX_UINT8 || t == MGX_INT16 || t == MGX_UINT16;
}

static bool is_wide_float(enum mgx_type t)
{
    return t == MGX_FLOAT || t == MGX_DOUBLE;
}

static struct mgx_ins *quantize(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    struct mgx_ins *x = ins->in[0], *scale = ins->in[1];
    const enum mgx_type to = ins->shape.type, type = x->shape.type;
    (void)r, (void)m;
    if (!is_small_integer(to) || !is_wide_float(type) || scale->shape.type != type)
        return NULL;
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_div, x, scale);
    const struct mgx_shape like = x->shape;
    y = mgx_emit_unary(ins, &mgx_op_nearbyint, y);
    if (ins->in_count == 3)
        y = mgx_emit_binary(ins, &mgx_op_add, y, mgx_emit_convert(ins, ins->in[2], type));
    y = mgx_emit_before(ins, &mgx_op_clip, NULL,
                        MGX_IN(y, mgx_emit_splat(ins, &like, mgx_type_lowest(to)),
                               mgx_emit_splat(ins, &like, mgx_type_highest(to))));
    return mgx_emit_convert(ins, y, to);
}

static struct mgx_ins *dequantize(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *scale = ins->in[1];
    const enum mgx_type type = scale->shape.type;
    (void)r, (void)m;
    if (!is_small_integer(ins->in[0]->shape.type) || !is_wide_float(type))
        return NULL;
    struct mgx_ins *y = mgx_emit_convert(ins, ins->in[0], type);
    if (ins->in_count == 3)
        y = mgx_emit_binary(ins, &mgx_op_sub, y, mgx_emit_convert(ins, ins->in[2], type));
    return mgx_emit_binary(ins, &mgx_op_mul, y, scale);
}

static const struct mgx_rule rules[] = {
    {"quantizelinear => convert(clip(nearbyint(x / s) + z))", MGX_IF_STATIC, .rewrite = quantize},
    {"dequantizelinear => (convert(x) - convert(z)) s", MGX_IF_STATIC, .rewrite = dequantize},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_rewrite_quantization = {
    .name = "rewrite_quantization",
    .meaning = "spells quantizing and dequantizing out in plain operators",
    .module = run,
};
