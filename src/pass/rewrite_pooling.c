// SPDX-License-Identifier: MIT
// Poolings that see everything at once are reductions.
//
//     pooling[average, lengths = the image](x)   =>  reduce_mean[spatial axes](x)
//     pooling[max, lengths = the image](x)       =>  reduce_max[spatial axes](x)
//     pooling[dyn_global](x)                     =>  the same, whatever the image is
//
// Holds: no padding, one window, no dilation. lpnorm stays. An integer average stays too: it is
// rounded as the pooling says.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "op/reference/pool.h"
#include "pass/engine/rewrite.h"

enum { AVERAGE = 0, MAXIMUM = 1 };

static struct mgx_ins *reduce(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)r;
    int64_t axes[MGX_MAX_RANK];
    const int64_t mode = mgx_ins_int(ins, "mode");
    if (!mgx_pool_sees_all(ins) || mode > MAXIMUM ||
        (mode == AVERAGE && !mgx_type_is_float(ins->shape.type)))
        return NULL;
    for (int d = 2; d < ins->shape.rank; d++)
        axes[d - 2] = d;
    return mgx_emit_before(ins, mode == AVERAGE ? &mgx_op_reduce_mean : &mgx_op_reduce_max,
                           MGX_ATTRS(mgx_ints("axes", axes, ins->shape.rank - 2)),
                           MGX_IN(mgx_var(m, 'x')));
}

static const struct mgx_rule rules[] = {
    {"pooling(x) ~> reduce(x), of one window", .rewrite = reduce},
};

const struct mgx_pass mgx_pass_rewrite_pooling = {
    .name = "rewrite_pooling",
    .meaning = "makes global poolings reductions",
    .rules = {rules, MGX_COUNT(rules)},
};
