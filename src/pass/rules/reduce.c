// SPDX-License-Identifier: MIT
// Reductions that can be fewer.
//
//     reduce[a](reduce[b](x))          =>  reduce[a + b](x)     of one kind: sum, max, min, all,
//                                                               any; mean in floats
//     reduce[axes of length 1](x)      =>  x
#include "pass/rules/rules.h"

static bool read_axes(const struct mgx_ins *ins, bool *flags)
{
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    const int rank = ins->in[0]->shape.rank;
    if (ins->in_count != 1)
        return false;
    for (int i = 0; i < rank; i++)
        flags[i] |= axes.count == 0;
    for (int i = 0; i < axes.count; i++) {
        const int axis = mgx_wrap_axis(axes.v[i], rank);
        if (axis < 0 || axis >= rank)
            return false;
        flags[axis] = true;
    }
    return true;
}

static struct mgx_ins *merge(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *inner = mgx_var(m, 'y');
    bool flags[MGX_MAX_RANK] = {false};
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    if (inner->op != ins->op || !read_axes(ins, flags) || !read_axes(inner, flags) ||
        (mgx_is(ins, &mgx_op_reduce_mean) && !mgx_type_is_float(ins->shape.type)))
        return NULL;
    for (int i = 0; i < ins->shape.rank; i++)
        if (flags[i])
            axes[count++] = i;
    return mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_ints("axes", axes, count)),
                           MGX_IN(inner->in[0]));
}

static bool reduces_nothing(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    bool flags[MGX_MAX_RANK] = {false};
    if (!read_axes(ins, flags) || !mgx_shape_is_static(&ins->in[0]->shape))
        return false;
    for (int i = 0; i < ins->shape.rank; i++)
        if (flags[i] && ins->in[0]->shape.lens[i] != 1)
            return false;
    return true;
}

static const struct mgx_rule rules[] = {
    {"reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_all|reduce_any"
     "(y:reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_all|reduce_any!) => reduce[all axes]",
     .rewrite = merge},
    {"reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_prod(x) => x", MGX_IF_STATIC,
     .guard = reduces_nothing},
};

const struct mgx_rules mgx_rules_reduce = {rules, MGX_COUNT(rules)};
