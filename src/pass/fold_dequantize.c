// SPDX-License-Identifier: MIT
// What is left to dequantize of constants is dequantized when the program is compiled.
//
//     dequantizelinear(c#, s#, z#)  =>  (convert(c) - convert(z)) s
//     gather(dequantizelinear(c#, s#, z#), i)  =>  dequantizelinear(gather(c, i), gather(s, i), ...)
//
// A table that rows are gathered from stays narrow: an embedding of 30,522 words would be too large
// to fold and be dequantized in every run. A scale of one value is not gathered but spread.
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
    const enum mgx_type type = ins->in[0]->shape.type;
    return ins->shape.type == MGX_FLOAT && (mgx_type_is_integral(type) || mgx_type_size(type) == 1);
}

static struct mgx_ins *spell_out(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)r, (void)m;
    const bool shifts = ins->in_count == 3 && !mgx_is_splat(ins->in[2], 0);
    struct mgx_ins *y =
        shifts ? NULL : mgx_emit_known_product(ins, &ins->shape, ins->in[0], ins->in[1]);
    if (y) // a bias, as a rule
        return y;
    y = mgx_emit_convert(ins, ins->in[0], ins->shape.type);
    if (shifts)
        y = mgx_emit_binary(ins, &mgx_op_sub, y,
                            mgx_emit_convert(ins, ins->in[2], ins->shape.type));
    return mgx_emit_binary(ins, &mgx_op_mul, y, ins->in[1]);
}

// What the rows of an operand become that has the table's shape.
static struct mgx_ins *rows_of(struct mgx_ins *ins, struct mgx_ins *x, struct mgx_ins *indices)
{
    if (mgx_shape_space(&x->shape) == 1 && x->in_count == 1 &&
        (x->op == &mgx_op_multibroadcast || x->op == &mgx_op_broadcast))
        return mgx_emit_multibroadcast(ins, x->in[0], ins->shape.lens, ins->shape.rank);
    struct mgx_ins *in[] = {x, indices};
    return mgx_emit_again(ins, ins, in, 2);
}

static bool is_narrow_table(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    const struct mgx_ins *table = ins->in[0];
    return table->op == &mgx_op_dequantizelinear && is_constant(r, ins->in[0], m) &&
           mgx_shape_same_lens(&table->in[0]->shape, &table->shape);
}

static struct mgx_ins *gather_narrow(struct mgx_rewriter *r, struct mgx_ins *ins,
                                     const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_ins *table = ins->in[0];
    struct mgx_ins *in[3];
    for (int i = 0; i < table->in_count; i++)
        in[i] = rows_of(ins, table->in[i], ins->in[1]);
    return mgx_emit_again(ins, table, in, table->in_count);
}

static const struct mgx_rule gathers[] = {
    {"gather(x, i) ~> dequantizelinear(gather(c, i), s, z)", MGX_IF_STATIC, is_narrow_table,
     gather_narrow},
};

static const struct mgx_rule rules[] = {
    {"dequantizelinear ~> (convert(c) - convert(z)) s", MGX_IF_STATIC, is_constant, spell_out},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_mark_constants(m);
    TRY(mgx_apply_rules(c, m, gathers, MGX_COUNT(gathers)));
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_fold_dequantize = {
    .name = "fold_dequantize",
    .meaning = "spells the dequantization of constants out, so that it folds",
    .module = run,
};
