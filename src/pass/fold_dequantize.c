// SPDX-License-Identifier: MIT
// What is left to dequantize of constants is dequantized when the program is compiled.
//
//     dequantizelinear(c#, s#, z#)  =>  (convert(c) - convert(z)) s
//
// Folding keeps dequantizelinear as it is, for the sake of products that read the narrow weights.
// Behind simplify_qdq nobody does any more: biases, tables that are gathered from, weights of
// operators without integers.
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static bool is_constant(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_is_constant(r->module, ins->in[i]) || ins->in[i]->owner != r->module)
            return false;
    return ins->shape.type == MGX_FLOAT && mgx_type_is_integral(ins->in[0]->shape.type);
}

static struct mgx_ins *spell_out(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)r, (void)m;
    struct mgx_ins *y = mgx_emit_convert(ins, ins->in[0], ins->shape.type);
    if (ins->in_count == 3)
        y = mgx_emit_binary(ins, &mgx_op_sub, y,
                            mgx_emit_convert(ins, ins->in[2], ins->shape.type));
    return mgx_emit_binary(ins, &mgx_op_mul, y, ins->in[1]);
}

static const struct mgx_rule rules[] = {
    {"dequantizelinear => (convert(c) - convert(z)) s", MGX_IF_STATIC, is_constant, spell_out},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_mark_constants(m);
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_fold_dequantize = {
    .name = "fold_dequantize",
    .meaning = "spells the dequantization of constants out, so that it folds",
    .module = run,
};
