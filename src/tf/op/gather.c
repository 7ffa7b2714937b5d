// SPDX-License-Identifier: MIT
// Picking and placing by indices: Gather, GatherV2, GatherNd, ScatterNd, TensorScatter*, OneHot.
#include <string.h>

#include "base/size.h"
#include "tf/node.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_COMPLEX)

// Batch axes b come first in both: y[b.., x.., i.., x..] = x[b.., x.., indices[b.., i..], x..].
// Positions of all batch axes are put in front of the index, and axes moved out of the way.
static enum mgx_status gather_batches(struct mgx_node *n, int axis, int batches)
{
    struct mgx_ins *x = n->in[0], *indices = n->in[1];
    int64_t permutation[MGX_MAX_RANK], back[MGX_MAX_RANK];
    const int rank = x->shape.rank, others = indices->shape.rank - batches;
    TRY(mgx_tf_need_static(n));
    int count = 0; // x with the axis right behind the batch axes
    for (int i = 0; i < rank; i++)
        if (i < batches)
            permutation[count++] = i;
    permutation[count++] = axis;
    for (int i = batches; i < rank; i++)
        if (i != axis)
            permutation[count++] = i;
    struct mgx_ins *last = mgx_build_unsqueeze(n, indices, (int64_t[]){indices->shape.rank}, 1);
    struct mgx_ins *y =
        mgx_build_emit(n, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", batches)),
                       MGX_IN(mgx_build_transpose(n, x, permutation, rank),
                              mgx_build_convert(n, last, MGX_INT64)));
    // {b.., i.., before.., after..} to {b.., before.., i.., after..}
    const int total = rank - 1 + others, before = axis - batches;
    if (total > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "the result has more than %d axes", MGX_MAX_RANK);
    for (int i = 0; i < total; i++)
        back[i] = i < batches                     ? i
                  : i < batches + before          ? i + others
                  : i < batches + before + others ? i - before
                                                  : i;
    n->out[0] = total ? mgx_build_transpose(n, y, back, total) : y;
    return MGX_OK;
}

// How many axes are the batch; a negative number counts from the rank of the indices.
static enum mgx_status batch_axes(struct mgx_node *n, int axis, int *out)
{
    const int64_t given = mgx_tf_int(n, "batch_dims", 0), rank = n->in[1]->shape.rank;
    if (given < -rank || given > rank)
        return mgx_node_invalid(n, "batch_dims %lld for indices of rank %lld", (long long)given,
                                (long long)rank);
    *out = (int)(given < 0 ? given + rank : given);
    return *out <= axis ? MGX_OK
                        : mgx_node_invalid(n, "batch_dims %d is above axis %d", *out, axis);
}

static enum mgx_status gather(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0, batches = 0;
    TRY(mgx_node_need(n, 2, 3));
    if (n->in_count > 2)
        TRY(mgx_tf_need_int(n, 2, "axis", &given));
    if (!mgx_build_ranked(n))
        return mgx_node_unsupported(n, "a rank is known at run time only");
    TRY(mgx_build_axis(n, given, n->in[0]->shape.rank, &axis));
    TRY(batch_axes(n, axis, &batches));
    if (batches)
        return gather_batches(n, axis, batches);
    n->out[0] = mgx_build_gather(n, n->in[0], n->in[1], axis);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_gather = {.name = "Gather", .import = gather, .takes = ANY};
const struct mgx_tf_op mgx_tf_gather_v2 = {.name = "GatherV2", .import = gather, .takes = ANY};

static enum mgx_status gather_nd(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *indices = mgx_build_convert(n, n->in[1], MGX_INT64);
    n->out[0] = mgx_build_emit(n, &mgx_op_gathernd,
                               MGX_ATTRS(mgx_int("batch_dims", mgx_tf_int(n, "batch_dims", 0))),
                               MGX_IN(n->in[0], indices));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_gather_nd = {.name = "GatherNd", .import = gather_nd, .takes = ANY};

// --- placing ---

// Updates of equal indices add up.
static enum mgx_status scatter_nd(struct mgx_node *n)
{
    struct mgx_ints dims;
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_tf_need_ints(n, 2, "shape", &dims));
    if (dims.count > MGX_MAX_RANK)
        return mgx_node_invalid(n, "rank %d is above %d", dims.count, MGX_MAX_RANK);
    struct mgx_shape shape = mgx_shape_make(n->in[1]->shape.type, dims.count, dims.v);
    TRY(mgx_shape_check(&shape, n->diag));
    struct mgx_ins *zeros = mgx_build_filled(n, shape.type, shape.rank, shape.lens, 0);
    n->out[0] = mgx_build_emit(n, &mgx_op_scatternd_add, NULL,
                               MGX_IN(zeros, mgx_build_convert(n, n->in[0], MGX_INT64), n->in[1]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_scatter_nd = {.name = "ScatterNd", .import = scatter_nd};

static enum mgx_status tensor_scatter(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ins *indices = mgx_build_convert(n, n->in[1], MGX_INT64);
    n->out[0] = mgx_build_emit(n, n->tf_rule->op, NULL, MGX_IN(n->in[0], indices, n->in[2]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_scatter_add = {
    .name = "TensorScatterAdd", .import = tensor_scatter, .op = &mgx_op_scatternd_add};
const struct mgx_tf_op mgx_tf_tensor_scatter_max = {
    .name = "TensorScatterMax", .import = tensor_scatter, .op = &mgx_op_scatternd_max};
const struct mgx_tf_op mgx_tf_tensor_scatter_min = {
    .name = "TensorScatterMin", .import = tensor_scatter, .op = &mgx_op_scatternd_min};
const struct mgx_tf_op mgx_tf_tensor_scatter_update = {
    .name = "TensorScatterUpdate", .import = tensor_scatter, .op = &mgx_op_scatternd_none};

// --- one-hot ---

// An index outside the depth sets nothing: the IR counts negative ones from the end, so they are
// sent beyond it.
static enum mgx_status one_hot(struct mgx_node *n)
{
    int64_t depth = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 4, 4));
    TRY(mgx_tf_need_int(n, 1, "depth", &depth));
    if (mgx_build_rank(n->in[0]) < 0 || depth < 0 || depth > MGX_DIM_ANY)
        return mgx_node_invalid(n, "depth %lld", (long long)depth);
    TRY(mgx_build_axis(n, mgx_tf_int(n, "axis", -1), n->in[0]->shape.rank + 1, &axis));
    struct mgx_ins *indices = mgx_build_convert(n, n->in[0], MGX_INT64);
    struct mgx_ins *below = mgx_build_less(n, indices, mgx_build_scalar(n, MGX_INT64, 0));
    indices = mgx_build_where(n, below, mgx_build_scalar(n, MGX_INT64, (double)depth), indices);
    struct mgx_ins *parts[2];
    for (int i = 0; i < 2; i++)
        parts[i] = mgx_build_reshape(n, n->in[3 - i], (int64_t[]){1}, 1);
    n->out[0] =
        mgx_build_emit(n, &mgx_op_onehot, MGX_ATTRS(mgx_int("axis", axis), mgx_int("depth", depth)),
                       MGX_IN(indices, mgx_build_concat(n, 0, parts, 2)));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_one_hot = {.name = "OneHot", .import = one_hot};
