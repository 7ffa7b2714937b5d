// SPDX-License-Identifier: MIT
// Reductions that can be fewer.
//
//     reduce[a](reduce[b](x))          =>  reduce[a + b](x)     of one kind: sum, max, min, all,
//                                                               any; mean in floats
//     reduce[axes of length 1](x)      =>  x
//
// and those that need nothing moved for them:
//
//     reduce[all axes](view(x))        =>  reduce[all axes](x)  max, min, all, any; a view of all of x
//                                                               in another order or other lengths
#include "pass/engine/emit.h"
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

static bool reduces_all(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    const struct mgx_ins *view = mgx_var(m, 'v');
    bool flags[MGX_MAX_RANK] = {false};
    (void)r;
    if (!read_axes(ins, flags) || view->in_count != 1 || view->in[0]->shape.rank == 0 ||
        !mgx_shape_is_static(&view->in[0]->shape))
        return false;
    for (int i = 0; i < ins->shape.rank; i++)
        if (!flags[i] && ins->in[0]->shape.lens[i] != 1)
            return false;
    return true;
}

static struct mgx_ins *reduce_in_front(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'v')->in[0];
    int64_t axes[MGX_MAX_RANK];
    for (int i = 0; i < x->shape.rank; i++)
        axes[i] = i;
    struct mgx_ins *all =
        mgx_emit_before(ins, ins->op, MGX_ATTRS(mgx_ints("axes", axes, x->shape.rank)), MGX_IN(x));
    return mgx_emit_reshape(ins, all, ins->shape.lens, ins->shape.rank);
}

static const struct mgx_rule rules[] = {
    {"reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_all|reduce_any"
     "(y:reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_all|reduce_any!) ~> reduce[all axes]",
     .rewrite = merge},
    {"reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_prod(x) => x", MGX_IF_STATIC,
     .guard = reduces_nothing},
    {"reduce_max|reduce_min|reduce_all|reduce_any(v:transpose|reshape|squeeze|unsqueeze|contiguous)"
     " ~> reshape(reduce[all axes])",
     MGX_IF_STATIC, .guard = reduces_all, .rewrite = reduce_in_front},
};

const struct mgx_rules mgx_rules_reduce = {rules, MGX_COUNT(rules)};
