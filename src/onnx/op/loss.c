// SPDX-License-Identifier: MIT
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
//
// The entry of the target class is picked by comparing every class with the target, which works for
// any shape. Targets go through a gather first, whose check refuses classes that there are not; as
// in numpy, -1 is the last class.
#include <string.h>

#include "onnx/build.h"

struct loss {
    struct mgx_ins *log_p, *target, *weight; // (N, C, ...), (N, ...), (C) or NULL
    bool ignores;
    int64_t ignored;
};

// sum over classes of v where the class is the target's, without the class axis.
static struct mgx_ins *pick(struct mgx_node *n, struct mgx_ins *hit, struct mgx_ins *v)
{
    struct mgx_ins *kept = mgx_build_where(n, hit, v, mgx_build_like(n, v, 0));
    return mgx_build_reduce(n, &mgx_op_reduce_sum, kept, (int64_t[]){1}, 1, false);
}

static struct mgx_ins *sum_all(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x)
{
    int64_t axes[MGX_MAX_RANK];
    for (int i = 0; x && i < x->shape.rank; i++)
        axes[i] = i;
    return x ? mgx_build_reduce(n, op, x, axes, x->shape.rank, false) : NULL;
}

// Which targets count; an ignored one becomes class 0. NULL: all do.
static struct mgx_ins *leave_out(struct mgx_node *n, const struct loss *l, struct mgx_ins **target)
{
    if (!l->ignores)
        return NULL;
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_INT64);
    struct mgx_ins *ignored = mgx_build_ints(n, &scalar, &l->ignored);
    struct mgx_ins *counts = mgx_build_not(n, mgx_build_equal(n, *target, ignored));
    *target = mgx_build_where(n, counts, *target, mgx_build_like(n, *target, 0));
    return counts;
}

// Where the class is the target's, and that counts.
static struct mgx_ins *hits(struct mgx_node *n, struct mgx_ins *class, struct mgx_ins *target,
                            struct mgx_ins *counts, int rank)
{
    target = mgx_build_gather(n, class, target, 0);
    class = class && rank > 2 ? mgx_build_per_axis(n, class, 1, rank) : class;
    target = mgx_build_unsqueeze(n, target, (int64_t[]){1}, 1);
    struct mgx_ins *hit = mgx_build_equal(n, class, target);
    return counts ? mgx_build_logical_and(n, hit, mgx_build_unsqueeze(n, counts, (int64_t[]){1}, 1))
                  : hit;
}

// `share` of each target in a mean; NULL: 1.
static enum mgx_status reduce(struct mgx_node *n, struct mgx_ins *loss, struct mgx_ins *share)
{
    const char *reduction = mgx_onnx_text(n, "reduction", "mean");
    if (strcmp(reduction, "none") == 0)
        n->out[0] = loss;
    else if (strcmp(reduction, "sum") == 0)
        n->out[0] = sum_all(n, &mgx_op_reduce_sum, loss);
    else if (strcmp(reduction, "mean") != 0)
        return mgx_node_invalid(n, "reduction \"%s\" is not one of none, sum, mean", reduction);
    else if (!share)
        n->out[0] = sum_all(n, &mgx_op_reduce_mean, loss);
    else
        n->out[0] = mgx_build_div(n, sum_all(n, &mgx_op_reduce_sum, loss),
                                  sum_all(n, &mgx_op_reduce_sum, share));
    return MGX_OK;
}

static enum mgx_status emit(struct mgx_node *n, struct loss *l)
{
    const int rank = mgx_build_rank(l->log_p);
    struct mgx_ins *target = mgx_build_convert(n, l->target, MGX_INT64);
    struct mgx_ins *class = mgx_build_iota(n, MGX_INT64, l->log_p->shape.lens[1]);
    struct mgx_ins *counts = leave_out(n, l, &target);
    struct mgx_ins *hit = hits(n, class, target, counts, rank);
    struct mgx_ins *share = counts ? mgx_build_convert(n, counts, l->log_p->shape.type) : NULL;
    struct mgx_ins *loss = mgx_build_neg(n, pick(n, hit, l->log_p));
    if (l->weight) {
        struct mgx_ins *w = l->weight;
        share = pick(n, hit, rank > 2 ? mgx_build_per_axis(n, w, 1, rank) : w);
        loss = mgx_build_mul(n, loss, share);
    }
    return reduce(n, loss, share);
}

// Scores have their classes in axis 1: labels have the other axes, weights that one.
static enum mgx_status check_axes(struct mgx_node *n, const struct loss *l)
{
    bool agree = mgx_build_rank(l->target) == mgx_build_rank(l->log_p) - 1;
    for (int i = 0; agree && i < mgx_build_rank(l->target); i++)
        agree = mgx_build_may_agree(l->target, i, l->log_p, i ? i + 1 : 0);
    if (!agree)
        return mgx_build_misfit(n, "labels", l->target, "scores", l->log_p);
    if (l->weight &&
        (mgx_build_rank(l->weight) != 1 || !mgx_build_may_agree(l->weight, 0, l->log_p, 1)))
        return mgx_build_misfit(n, "weights", l->weight, "scores", l->log_p);
    return MGX_OK;
}

static enum mgx_status read(struct mgx_node *n, struct loss *l, bool *later)
{
    TRY(mgx_node_need(n, 2, 3));
    *later = !mgx_build_ranked(n) || !mgx_build_fixed_dim(n->in[0], 1);
    const int rank = mgx_build_rank(n->in[0]);
    if (rank >= 0 && rank < 2)
        return mgx_node_invalid(n, "scores have rank %d, below 2", rank);
    *l = (struct loss){.log_p = n->in[0],
                       .target = n->in[1],
                       .weight = mgx_node_in(n, 2),
                       .ignores = mgx_onnx_has(n, "ignore_index"),
                       .ignored = mgx_onnx_int(n, "ignore_index", 0)};
    return *later ? MGX_OK : check_axes(n, l);
}

static enum mgx_status negative_log_likelihood(struct mgx_node *n)
{
    struct loss l;
    bool later = false;
    TRY(read(n, &l, &later));
    return later ? mgx_onnx_defer(n) : emit(n, &l);
}
const struct mgx_onnx_op mgx_onnx_negative_log_likelihood = {.name = "NegativeLogLikelihoodLoss",
                                                             .import = negative_log_likelihood};

static enum mgx_status softmax_cross_entropy(struct mgx_node *n)
{
    struct loss l;
    bool later = false;
    TRY(read(n, &l, &later));
    if (later)
        return mgx_onnx_defer(n);
    l.log_p = mgx_build_emit(n, &mgx_op_logsoftmax, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(l.log_p));
    if (!l.log_p)
        return MGX_OK;
    if (n->out_count > 1)
        n->out[1] = l.log_p;
    return emit(n, &l);
}
const struct mgx_onnx_op mgx_onnx_softmax_cross_entropy = {.name = "SoftmaxCrossEntropyLoss",
                                                           .import = softmax_cross_entropy};
