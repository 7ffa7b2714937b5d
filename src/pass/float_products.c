// SPDX-License-Identifier: MIT
// Products of bytes that no kernel of bytes takes are computed in float.
//
//     convert[float](quant_dot(a, b, p, q))  =>  dot(convert(a) - p, convert(b) - q)
//
// where the target says so (takes_bytes): on the CPU a zero point of b that is known only in the
// run, or one of a when b is no constant either: scores and values of attention in a dynamically
// quantized model. Sums of up to 258 products are exact;
// of more they are rounded as sums of floats are. Runs before constants are folded, so that they
// and the attention are seen.
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static bool is_known(struct mgx_rewriter *r, struct mgx_ins *ins)
{
    return ins->owner == r->module && mgx_is_constant(r->module, ins);
}

static bool is_untaken(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    const struct mgx_ins *dot = ins->in[0];
    (void)m;
    if (ins->shape.type != MGX_FLOAT || dot->owner != r->module)
        return false;
    const struct mgx_pass_target *target = &r->call->options->target;
    const struct mgx_bytes_known known = {.left_zero = is_known(r, dot->in[2]),
                                          .right = is_known(r, dot->in[1]),
                                          .right_zero =
                                              dot->in_count < 4 || is_known(r, dot->in[3])};
    return target->takes_bytes && !target->takes_bytes(known);
}

static struct mgx_ins *in_float(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    const struct mgx_ins *dot = ins->in[0];
    (void)r, (void)m;
    struct mgx_ins *a = mgx_emit_shifted(ins, dot->in[0], dot->in[2], 0, MGX_FLOAT);
    struct mgx_ins *b = mgx_emit_shifted(ins, dot->in[1], dot->in_count > 3 ? dot->in[3] : NULL,
                                         dot->shape.rank - 1, MGX_FLOAT);
    return a && b ? mgx_emit_before(ins, &mgx_op_dot, NULL, MGX_IN(a, b)) : NULL;
}

static const struct mgx_rule rules[] = {
    {"convert(quant_dot(a, b, p, q)) ~> dot(convert(a) - p, convert(b) - q)", MGX_IF_STATIC,
     is_untaken, in_float},
    {"convert(quant_dot(a, b, p)) ~> dot(convert(a) - p, convert(b))", MGX_IF_STATIC, is_untaken,
     in_float},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_mark_constants(m);
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_float_products = {
    .name = "float_products",
    .meaning = "products of bytes that no kernel of bytes takes are computed in float",
    .module = run,
};
