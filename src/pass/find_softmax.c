// SPDX-License-Identifier: MIT
// Softmax and its logarithm, written out by exporters, become the operators again, which one kernel
// computes row by row.
//
//     exp(x - max x) / sum exp(x - max x)      =>  softmax[axis](x)
//     x - max x - log(sum exp(x - max x))      =>  logsoftmax[axis](x)
//
// The forms without the maximum overflow where the operators do not, and the logarithm of a softmax
// that has become 0 is minus infinity: those change with fast_math only.
#include "op/op.h"

#include <assert.h>

#include "pass/engine/rewrite.h"

// The only axis that is reduced, or -1.
static int64_t axis_of(const struct mgx_ins *reduce)
{
    assert(reduce->op->flags & MGX_OP_REDUCE);
    const struct mgx_ints axes = mgx_ins_ints(reduce, "axes");
    const int rank = reduce->in[0]->shape.rank;
    return axes.count != 1 ? -1 : axes.v[0] < 0 ? axes.v[0] + rank : axes.v[0];
}

static bool along_one_axis(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    const struct mgx_ins *most = mgx_var(m, 'm');
    const int64_t axis = axis_of(mgx_var(m, 's'));
    return axis >= 0 && (!most || axis_of(most) == axis) &&
           mgx_shape_same_lens(&mgx_var(m, 'x')->shape, &ins->shape);
}

static struct mgx_ins *softmax(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r;
    return mgx_emit_before(ins, &mgx_op_softmax,
                           MGX_ATTRS(mgx_int("axis", axis_of(mgx_var(m, 's')))),
                           MGX_IN(mgx_var(m, 'x')));
}

static struct mgx_ins *logsoftmax(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r;
    return mgx_emit_before(ins, &mgx_op_logsoftmax,
                           MGX_ATTRS(mgx_int("axis", axis_of(mgx_var(m, 's')))),
                           MGX_IN(mgx_var(m, 'x')));
}

static struct mgx_ins *log_of_softmax(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)r;
    return mgx_emit_before(ins, &mgx_op_logsoftmax,
                           MGX_ATTRS(mgx_int("axis", mgx_ins_int(mgx_var(m, 'f'), "axis"))),
                           MGX_IN(mgx_var(m, 'x')));
}

#define MAX_OF_X "multibroadcast(m:reduce_max(x))"

static const struct mgx_rule rules[] = {
    {"div(e:exp(sub(x, " MAX_OF_X ")), multibroadcast(s:reduce_sum(e))) ~> softmax(x)",
     MGX_IF_FLOAT | MGX_IF_STATIC, .guard = along_one_axis, .rewrite = softmax},
    {"mul(e:exp(sub(x, " MAX_OF_X ")), multibroadcast(recip(s:reduce_sum(e)))) ~> softmax(x)",
     MGX_IF_FLOAT | MGX_IF_STATIC, .guard = along_one_axis, .rewrite = softmax},
    {"sub(d:sub(x, " MAX_OF_X "), multibroadcast(log(s:reduce_sum(exp(d))))) ~> logsoftmax(x)",
     MGX_IF_FLOAT | MGX_IF_STATIC, .guard = along_one_axis, .rewrite = logsoftmax},
    {"div(e:exp(x), multibroadcast(s:reduce_sum(e))) ~> softmax(x)",
     MGX_IF_FLOAT | MGX_IF_STATIC | MGX_IF_FAST, .guard = along_one_axis, .rewrite = softmax},
    {"sub(x, multibroadcast(log(s:reduce_sum(exp(x))))) ~> logsoftmax(x)",
     MGX_IF_FLOAT | MGX_IF_STATIC | MGX_IF_FAST, .guard = along_one_axis, .rewrite = logsoftmax},
    {"log(f:softmax(x)) ~> logsoftmax(x)", MGX_IF_FLOAT | MGX_IF_STATIC | MGX_IF_FAST,
     .rewrite = log_of_softmax},
};

const struct mgx_pass mgx_pass_find_softmax = {
    .name = "find_softmax",
    .meaning = "softmax written out becomes the operator",
    .rules = {rules, MGX_COUNT(rules)},
};
