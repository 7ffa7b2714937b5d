// SPDX-License-Identifier: MIT
// Products of dequantized values are products of integers.
//
//     dot(dequantizelinear(a, s), dequantizelinear(b, t))
//         =>  dequantizelinear(quant_dot(a, b), s t)                     convolution likewise
//     dequantizelinear(quantizelinear(x, s, z), s, z)  =>  x             with fast math
//
// a and b are int8, s and t one number each (a splat), zero points absent or 0. The sums are then
// exact in int32 instead of rounded in float, as long as they fit: 2^17 products of the largest
// values do. The pair at the end only loses digits; it is what quantized training leaves behind.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { MOST_PRODUCTS = 1 << 17 };

// The value an int8 number is dequantized by; false if it is no plain splat.
static bool scale_of(const struct mgx_ins *ins, double *scale)
{
    double zero = 0;
    return ins->op == &mgx_op_dequantizelinear && ins->in[0]->shape.type == MGX_INT8 &&
           mgx_splat_value(ins->in[1], scale) &&
           (ins->in_count == 2 || (mgx_splat_value(ins->in[2], &zero) && zero == 0));
}

static bool are_scaled(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    double a, b;
    (void)r, (void)m;
    return ins->shape.type == MGX_FLOAT && scale_of(ins->in[0], &a) && scale_of(ins->in[1], &b);
}

static struct mgx_ins *scaled(struct mgx_ins *at, struct mgx_ins *sums)
{
    double a, b;
    if (!sums || !scale_of(at->in[0], &a) || !scale_of(at->in[1], &b))
        return NULL;
    return mgx_emit_binary(at, &mgx_op_dequantizelinear, sums,
                           mgx_emit_splat(at, &at->shape, (double)(float)a * (double)(float)b));
}

static struct mgx_ins *quant_dot(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    struct mgx_ins *a = ins->in[0]->in[0], *b = ins->in[1]->in[0];
    (void)r, (void)m;
    if (a->shape.lens[a->shape.rank - 1] > MOST_PRODUCTS)
        return NULL;
    return scaled(ins, mgx_emit_binary(ins, &mgx_op_quant_dot, a, b));
}

static struct mgx_ins *quant_convolution(struct mgx_rewriter *r, struct mgx_ins *ins,
                                         const struct mgx_match *m)
{
    struct mgx_ins *x = ins->in[0]->in[0], *w = ins->in[1]->in[0];
    (void)r, (void)m;
    if (mgx_shape_elements(&w->shape) > MOST_PRODUCTS * w->shape.lens[0])
        return NULL;
    return scaled(
        ins, mgx_emit_before(ins, &mgx_op_quant_convolution,
                             MGX_ATTRS(mgx_ints("padding", mgx_ins_ints(ins, "padding").v,
                                                mgx_ins_ints(ins, "padding").count),
                                       mgx_ints("stride", mgx_ins_ints(ins, "stride").v,
                                                mgx_ins_ints(ins, "stride").count),
                                       mgx_ints("dilation", mgx_ins_ints(ins, "dilation").v,
                                                mgx_ins_ints(ins, "dilation").count),
                                       mgx_int("padding_mode", mgx_ins_int(ins, "padding_mode")),
                                       mgx_int("group", mgx_ins_int(ins, "group"))),
                             MGX_IN(x, w)));
}

// Is it what quantized it, undone?
static struct mgx_ins *undone(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    const struct mgx_ins *q = ins->in[0];
    double there, back;
    (void)r, (void)m;
    if (q->op != &mgx_op_quantizelinear || q->in_count != ins->in_count ||
        q->in[0]->shape.type != ins->shape.type || !mgx_splat_value(q->in[1], &there) ||
        !mgx_splat_value(ins->in[1], &back) || there != back)
        return NULL;
    if (q->in_count == 3 && (!mgx_splat_value(q->in[2], &there) ||
                             !mgx_splat_value(ins->in[2], &back) || there != back))
        return NULL;
    return q->in[0];
}

static const struct mgx_rule rules[] = {
    {"dot => dequantizelinear(quant_dot(a, b), s t)", MGX_IF_STATIC, are_scaled, quant_dot},
    {"convolution => dequantizelinear(quant_convolution(x, w), s t)", MGX_IF_STATIC, are_scaled,
     quant_convolution},
    {"dequantizelinear => x, of quantizelinear(x)", MGX_IF_FAST | MGX_IF_STATIC, .rewrite = undone},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_simplify_qdq = {
    .name = "simplify_qdq",
    .meaning = "multiplies quantized values as integers",
    .module = run,
};
