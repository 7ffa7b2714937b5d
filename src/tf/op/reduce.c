// SPDX-License-Identifier: MIT
// Reductions over axes given as a constant input; places of extremes; running sums; softmax.
#include <string.h>

#include "tf/node.h"

struct axes {
    int64_t v[MGX_MAX_RANK];
    int count;
    bool keep;
};

static enum mgx_status read_axes(struct mgx_node *n, struct axes *out)
{
    struct mgx_ints list;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 1, "axes", &list));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_node_unsupported(n, "the input's rank is known at run time only");
    TRY(mgx_build_axes(n, list, n->in[0]->shape.rank, out->v));
    out->count = list.count;
    out->keep = mgx_tf_flag(n, mgx_tf_has(n, "keep_dims") ? "keep_dims" : "keepdims", false);
    return MGX_OK;
}

static struct mgx_ins *reduce(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                              const struct axes *a)
{
    return a->count ? mgx_build_reduce(n, op, x, a->v, a->count, a->keep) : x;
}

static enum mgx_status plain(struct mgx_node *n)
{
    struct axes a = {0};
    TRY(read_axes(n, &a));
    n->out[0] = reduce(n, n->tf_rule->op, n->in[0], &a);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_max = {.name = "Max", .import = plain, .op = &mgx_op_reduce_max};
const struct mgx_tf_op mgx_tf_mean = {.name = "Mean", .import = plain, .op = &mgx_op_reduce_mean};
const struct mgx_tf_op mgx_tf_min = {.name = "Min", .import = plain, .op = &mgx_op_reduce_min};
const struct mgx_tf_op mgx_tf_prod = {.name = "Prod", .import = plain, .op = &mgx_op_reduce_prod};
const struct mgx_tf_op mgx_tf_sum = {.name = "Sum", .import = plain, .op = &mgx_op_reduce_sum};

// Of bools, as the least or the largest of 0 and 1; of none, where that is the end of the type, its
// sign says it.
static enum mgx_status logical(struct mgx_node *n)
{
    struct axes a = {0};
    TRY(read_axes(n, &a));
    struct mgx_ins *x = mgx_build_convert(n, n->in[0], MGX_INT32);
    struct mgx_ins *y = reduce(n, n->tf_rule->op, x, &a);
    n->out[0] = mgx_build_greater(n, y, mgx_build_scalar(n, MGX_INT32, 0));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_all = {.name = "All", .import = logical, .op = &mgx_op_reduce_min};
const struct mgx_tf_op mgx_tf_any = {.name = "Any", .import = logical, .op = &mgx_op_reduce_max};

static enum mgx_status norm(struct mgx_node *n)
{
    struct axes a = {0};
    TRY(read_axes(n, &a));
    struct mgx_ins *square = mgx_build_mul(n, n->in[0], n->in[0]);
    n->out[0] = mgx_build_sqrt(n, reduce(n, &mgx_op_reduce_sum, square, &a));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_euclidean_norm = {.name = "EuclideanNorm", .import = norm};

// --- places ---

static enum mgx_status place(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_int(n, 1, "dimension", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(n->in[0]), &axis));
    struct mgx_ins *y =
        mgx_build_emit(n, n->tf_rule->op, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(n->in[0]));
    y = mgx_build_squeeze(n, y, (int64_t[]){axis}, 1);
    n->out[0] = mgx_build_convert(n, y, mgx_tf_type(n, "output_type", MGX_INT64));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_arg_max = {.name = "ArgMax", .import = place, .op = &mgx_op_argmax};
const struct mgx_tf_op mgx_tf_arg_min = {.name = "ArgMin", .import = place, .op = &mgx_op_argmin};

// --- running sums ---

static enum mgx_status scan(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_int(n, 1, "axis", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(n->in[0]), &axis));
    n->out[0] = mgx_build_emit(n, n->tf_rule->op,
                               MGX_ATTRS(mgx_int("axis", axis),
                                         mgx_int("exclusive", mgx_tf_flag(n, "exclusive", false)),
                                         mgx_int("reverse", mgx_tf_flag(n, "reverse", false))),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_cumprod = {
    .name = "Cumprod", .import = scan, .op = &mgx_op_prefix_scan_prod};
const struct mgx_tf_op mgx_tf_cumsum = {
    .name = "Cumsum", .import = scan, .op = &mgx_op_prefix_scan_sum};

// --- softmax over the last axis ---

static enum mgx_status softmax(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 1)
        return mgx_node_invalid(n, "logits have rank %d, below 1", rank);
    n->out[0] =
        mgx_build_emit(n, n->tf_rule->op, MGX_ATTRS(mgx_int("axis", rank - 1)), MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_log_softmax = {
    .name = "LogSoftmax", .import = softmax, .op = &mgx_op_logsoftmax};
const struct mgx_tf_op mgx_tf_softmax = {
    .name = "Softmax", .import = softmax, .op = &mgx_op_softmax};
