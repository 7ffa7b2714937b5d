// SPDX-License-Identifier: MIT
// Softmax and means in terms of plain reductions, for targets that fuse those with what is around.
//
//     softmax[a](x)       =>  e / sum(e),   e = exp(x - max(x))           along axis a
//     logsoftmax[a](x)    =>  d - log(sum(exp(d))),   d = x - max(x)
//     reduce_mean[a](x)   =>  reduce_sum[a](x / n)        half and narrower: the sum stays in range
//     reduce_mean[a](x)   =>  reduce_sum[a](x) / n        float and double
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/emit.h"

#include <assert.h>

#include "pass/rules/rules.h"

static struct mgx_ins *reduce(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                              int64_t axis)
{
    return mgx_emit_before(at, op, MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(x));
}

static struct mgx_ins *widen(struct mgx_ins *at, struct mgx_ins *x)
{
    return mgx_emit_multibroadcast(at, x, at->shape.lens, at->shape.rank);
}

static int64_t axis_of(const struct mgx_ins *ins)
{
    assert(ins->shape.rank >= 0);
    const int64_t axis = mgx_ins_int(ins, "axis");
    return mgx_wrap_axis(axis, ins->shape.rank);
}

static bool is_float_in(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return mgx_shape_is_static(&ins->in[0]->shape) && mgx_type_is_float(ins->in[0]->shape.type);
}

static struct mgx_ins *softmax(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r;
    const int64_t axis = axis_of(ins);
    struct mgx_ins *x = mgx_var(m, 'x');
    struct mgx_ins *most = widen(ins, reduce(ins, &mgx_op_reduce_max, x, axis));
    struct mgx_ins *d = mgx_emit_binary(ins, &mgx_op_sub, x, most);
    struct mgx_ins *e = mgx_emit_unary(ins, &mgx_op_exp, d);
    struct mgx_ins *sum = reduce(ins, &mgx_op_reduce_sum, e, axis);
    if (mgx_is(ins, &mgx_op_softmax))
        return mgx_emit_binary(ins, &mgx_op_div, e, widen(ins, sum));
    return mgx_emit_binary(ins, &mgx_op_sub, d, widen(ins, mgx_emit_unary(ins, &mgx_op_log, sum)));
}

static struct mgx_ins *mean(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x');
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    const double n =
        (double)mgx_shape_elements(&x->shape) / (double)mgx_shape_elements(&ins->shape);
    const bool wide = mgx_type_size(x->shape.type) >= 4;
    if (n > mgx_type_highest(x->shape.type))
        return NULL;
    if (!wide)
        x = mgx_emit_binary(ins, &mgx_op_div, x, mgx_emit_splat(ins, &x->shape, n));
    struct mgx_ins *sum = mgx_emit_before(
        ins, &mgx_op_reduce_sum, MGX_ATTRS(mgx_ints("axes", axes.v, axes.count)), MGX_IN(x));
    return wide ? mgx_emit_binary(ins, &mgx_op_div, sum, mgx_emit_splat(ins, &ins->shape, n)) : sum;
}

static const struct mgx_rule rules[] = {
    {"softmax|logsoftmax(x) ~> exp(x - max(x)) / sum(exp(x - max(x)))", MGX_IF_STATIC,
     .guard = is_float_in, .rewrite = softmax},
    {"reduce_mean(x) ~> reduce_sum(x) / n", MGX_IF_STATIC, .guard = is_float_in, .rewrite = mean},
};

const struct mgx_pass mgx_pass_rewrite_reduce = {
    .name = "rewrite_reduce",
    .meaning = "softmax and means as plain reductions",
    .rules = {rules, MGX_COUNT(rules)},
    .by_size = true,
};
