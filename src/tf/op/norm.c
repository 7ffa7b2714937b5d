// SPDX-License-Identifier: MIT
// FusedBatchNorm in its three versions, LRN, L2Loss.
#include "tf/node.h"

struct batch {
    struct mgx_ins *x, *scale, *offset, *mean, *variance;
    int axis; // of the channels
};

// Mean and variance of this batch over all axes but the channels.
static void measure(struct mgx_node *n, struct batch *b)
{
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    for (int i = 0; i < b->x->shape.rank; i++)
        if (i != b->axis)
            axes[count++] = i;
    struct mgx_ins *mean = mgx_build_reduce(n, &mgx_op_reduce_mean, b->x, axes, count, true);
    struct mgx_ins *distance = mgx_build_sqdiff(n, b->x, mean);
    b->variance = mgx_build_reduce(n, &mgx_op_reduce_mean, distance, axes, count, false);
    b->mean = mgx_build_squeeze(n, mean, axes, count);
}

// The running statistics get the variance of a sample, not of the whole.
static struct mgx_ins *sample_variance(struct mgx_node *n, const struct batch *b)
{
    const int64_t all = mgx_shape_elements(&b->x->shape), each = b->x->shape.lens[b->axis];
    const double count = each ? (double)(all / each) : 1;
    return mgx_build_with(n, &mgx_op_mul, b->variance, count / (count > 1 ? count - 1 : 1));
}

// What the running statistics become: a part of this batch's, the rest of what they were.
static struct mgx_ins *blend(struct mgx_node *n, struct mgx_ins *measured, struct mgx_ins *before)
{
    const double part = mgx_tf_real(n, "exponential_avg_factor", 1);
    if (part == 1)
        return measured;
    return mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, measured, part),
                         mgx_build_with(n, &mgx_op_mul, before, 1 - part));
}

static enum mgx_status check(struct mgx_node *n, const struct batch *b)
{
    if (b->x->shape.rank != 4 && b->x->shape.rank != 5)
        return mgx_node_invalid(n, "input has rank %d, not 4 or 5", b->x->shape.rank);
    for (int i = 1; i < 5; i++)
        if (n->in[i]->shape.rank != 1)
            return mgx_node_invalid(n, "input %d has rank %d, not 1", i, n->in[i]->shape.rank);
    return MGX_OK;
}

// (x - mean) / sqrt(variance + epsilon) * scale + offset
static struct mgx_ins *normalize(struct mgx_node *n, const struct batch *b)
{
    const int rank = b->x->shape.rank;
    const double epsilon = mgx_tf_real(n, "epsilon", 1e-4);
    struct mgx_ins *inverse = mgx_build_rsqrt(
        n, mgx_build_with(n, &mgx_op_add, mgx_build_per_axis(n, b->variance, 1, rank), epsilon));
    struct mgx_ins *centred = mgx_build_sub(n, b->x, mgx_build_per_axis(n, b->mean, 1, rank));
    struct mgx_ins *factor = mgx_build_mul(n, mgx_build_per_axis(n, b->scale, 1, rank), inverse);
    return mgx_build_add(n, mgx_build_mul(n, centred, factor),
                         mgx_build_per_axis(n, b->offset, 1, rank));
}

static void hand_out(struct mgx_node *n, const struct batch *b, bool training)
{
    n->out[1] = training ? blend(n, b->mean, n->in[3]) : b->mean;
    n->out[2] = training ? blend(n, sample_variance(n, b), n->in[4]) : b->variance;
    n->out[3] = b->mean;
    n->out[4] = b->variance;
    n->out[5] = b->variance;
}

static enum mgx_status batch_norm(struct mgx_node *n)
{
    bool last = true;
    TRY(mgx_node_need(n, 5, 5));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_channels_last(n, &last));
    const enum mgx_type type = n->in[0]->shape.type, wide = n->in[1]->shape.type;
    struct batch b = {
        .scale = n->in[1], .offset = n->in[2], .mean = n->in[3], .variance = n->in[4]};
    b.x = mgx_tf_to_channels_first(n, mgx_build_convert(n, n->in[0], wide), last);
    b.axis = 1;
    if (!b.x)
        return MGX_OK;
    TRY(check(n, &b));
    const bool training = mgx_tf_flag(n, "is_training", true);
    if (training)
        measure(n, &b);
    struct mgx_ins *y = normalize(n, &b);
    TRY(mgx_tf_results(n, 6));
    n->out[0] = mgx_tf_from_channels_first(n, mgx_build_convert(n, y, type), last);
    hand_out(n, &b, training);
    return MGX_OK;
}
#define BATCH_OUTPUTS "y,batch_mean,batch_variance,reserve_space_1,reserve_space_2,reserve_space_3"
const struct mgx_tf_op mgx_tf_fused_batch_norm = {
    .name = "FusedBatchNorm", .import = batch_norm, .outputs = BATCH_OUTPUTS};
const struct mgx_tf_op mgx_tf_fused_batch_norm_v2 = {
    .name = "FusedBatchNormV2", .import = batch_norm, .outputs = BATCH_OUTPUTS};
const struct mgx_tf_op mgx_tf_fused_batch_norm_v3 = {
    .name = "FusedBatchNormV3", .import = batch_norm, .outputs = BATCH_OUTPUTS};

// x / (bias + alpha * sum of squares of the 2 r + 1 channels around)^beta
static enum mgx_status lrn(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_static(n));
    const int64_t radius = mgx_tf_int(n, "depth_radius", 5);
    if (n->in[0]->shape.rank != 4 || radius < 0 || radius > INT32_MAX / 4)
        return mgx_node_invalid(n, "rank %d, depth_radius %lld", n->in[0]->shape.rank,
                                (long long)radius);
    const int64_t size = 2 * radius + 1;
    struct mgx_ins *y = mgx_build_emit(
        n, &mgx_op_lrn,
        MGX_ATTRS(mgx_real("alpha", mgx_tf_real(n, "alpha", 1) * (double)size),
                  mgx_real("beta", mgx_tf_real(n, "beta", 0.5)),
                  mgx_real("bias", mgx_tf_real(n, "bias", 1)), mgx_int("size", size)),
        MGX_IN(mgx_tf_to_channels_first(n, n->in[0], true)));
    n->out[0] = mgx_tf_from_channels_first(n, y, true);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_lrn = {.name = "LRN", .import = lrn};

static enum mgx_status l2_loss(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_static(n));
    int64_t axes[MGX_MAX_RANK];
    const int rank = n->in[0]->shape.rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    struct mgx_ins *square = mgx_build_mul(n, n->in[0], n->in[0]);
    struct mgx_ins *sum = mgx_build_reduce(n, &mgx_op_reduce_sum, square, axes, rank, false);
    n->out[0] = mgx_build_with(n, &mgx_op_mul, sum, 0.5);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_l2_loss = {.name = "L2Loss", .import = l2_loss};
