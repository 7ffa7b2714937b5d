// SPDX-License-Identifier: MIT
// Padding that differs at both ends becomes a pad of its own, for kernels that pad both ends alike:
// eliminate_pad the other way round.
//
//     conv[padding={b.., a..}](x, w)   =>  conv[padding={0..}](pad[{b.., a..}](x), w)    b != a
//     pooling likewise; a maximum is padded with what never wins
//
// Holds: an average that does not count its padding stays, since a pad's zeros would count.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include <assert.h>
#include <math.h>
#include <string.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { MAXIMUM = 1, AVERAGE = 0 };

static bool is_uneven(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_ints padding = mgx_ins_ints(ins, "padding");
    const int spatial = ins->shape.rank - 2;
    if (padding.count != 2 * spatial || mgx_ins_int(ins, "padding_mode") != 0)
        return false;
    if (mgx_is(ins, &mgx_op_pooling) &&
        (mgx_ins_int(ins, "ceil_mode") || mgx_ins_int(ins, "dyn_global") ||
         (mgx_ins_int(ins, "mode") == AVERAGE && !mgx_ins_int(ins, "count_include_pad"))))
        return false;
    return memcmp(padding.v, padding.v + spatial, (size_t)spatial * sizeof *padding.v) != 0;
}

static double pad_value(const struct mgx_ins *ins)
{
    assert(ins->in_count > 0);
    const enum mgx_type type = ins->shape.type;
    if (!mgx_is(ins, &mgx_op_pooling) || mgx_ins_int(ins, "mode") != MAXIMUM)
        return 0;
    return mgx_type_is_float(type) ? -INFINITY : mgx_type_lowest(type);
}

static struct mgx_ins *pad_first(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)m;
    struct mgx_program *p = r->call->program;
    static const int64_t zeros[MGX_MAX_RANK];
    const struct mgx_ints padding = mgx_ins_ints(ins, "padding");
    const int rank = ins->shape.rank, spatial = rank - 2;
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    for (int d = 0; d < spatial; d++) {
        pads[d + 2] = padding.v[d];
        pads[d + 2 + rank] = padding.v[d + spatial];
    }
    void *attr = mgx_edit_attr(p, ins);
    if (!mgx_edit_ints(p, ins->op, attr, "padding", zeros, spatial))
        return NULL;
    struct mgx_ins *x = mgx_emit_before(
        ins, &mgx_op_pad,
        MGX_ATTRS(mgx_ints("pads", pads, 2 * rank), mgx_real("value", pad_value(ins))),
        MGX_IN(ins->in[0]));
    struct mgx_ins *in[2] = {x, ins->in_count > 1 ? ins->in[1] : NULL};
    return mgx_emit_edited(ins, ins->op, attr, in, ins->in_count);
}

static const struct mgx_rule rules[] = {
    {"convolution|quant_convolution|im2col|pooling ~> op[padding=0](pad(x))", MGX_IF_STATIC,
     .guard = is_uneven, .rewrite = pad_first},
};

const struct mgx_pass mgx_pass_insert_pad = {
    .name = "insert_pad",
    .meaning = "makes uneven padding an instruction of its own",
    .rules = {rules, MGX_COUNT(rules)},
};
