// SPDX-License-Identifier: MIT
// Normalisations. All end in mgx_build_standardize or mgx_build_rms, so that passes meet one form.
// stash_type 1 computes in float what is narrower, 0 in the type of x.
#include "onnx/build.h"

#include <assert.h>

// x in the precision that stash_type asks for.
static struct mgx_ins *stash(struct mgx_node *n, struct mgx_ins *x)
{
    const enum mgx_type type = x->shape.type;
    const bool narrow = mgx_type_is_half_or_bf16(type);
    return narrow && mgx_onnx_int(n, "stash_type", 1) == 1 ? mgx_build_convert(n, x, MGX_FLOAT) : x;
}

// first, first + 1, ... rank - 1
static int axes_from(int first, int rank, int64_t *axes)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    for (int i = first; i < rank; i++)
        axes[i - first] = i;
    return rank - first;
}

static struct mgx_ins *scale_shift(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *scale,
                                   struct mgx_ins *bias)
{
    x = mgx_build_mul(n, x, scale);
    return bias ? mgx_build_add(n, x, bias) : x;
}

// --- BatchNormalization ---

// Before opset 14 the outputs of training are there when more than one is asked for.
static bool is_training(struct mgx_node *n)
{
    if (n->opset >= 14)
        return mgx_onnx_int(n, "training_mode", 0) != 0;
    return n->out_count > 1 && n->out[1] == NULL && !mgx_onnx_int(n, "is_test", 0);
}

struct batch {
    struct mgx_ins *x, *scale, *bias, *mean, *var;
    int per_axis; // 1: one value per channel; 0: one per element of a sample (spatial=0)
};

// (C) to (C, 1, 1), so that it broadcasts against x.
static struct mgx_ins *spread(struct mgx_node *n, const struct batch *b, struct mgx_ins *v)
{
    const int rank = mgx_build_rank(b->x);
    return b->per_axis && rank > 1 ? mgx_build_per_axis(n, v, 1, rank) : v;
}

// Statistics of this batch replace the given ones, which advance by momentum.
static void train(struct mgx_node *n, struct batch *b)
{
    int64_t axes[MGX_MAX_RANK] = {0};
    int count = 1;
    for (int i = 2; b->per_axis && i < mgx_build_rank(b->x); i++)
        axes[count++] = i;
    const double momentum = mgx_onnx_real(n, "momentum", 0.9);
    struct mgx_ins *mean = mgx_build_reduce(n, &mgx_op_reduce_mean, b->x, axes, count, true);
    struct mgx_ins *var = mgx_build_reduce(n, &mgx_op_reduce_mean, mgx_build_sqdiff(n, b->x, mean),
                                           axes, count, false);
    mean = mgx_build_squeeze(n, mean, axes, count);
    struct mgx_ins *now[2] = {mgx_build_convert(n, mean, b->mean->shape.type),
                              mgx_build_convert(n, var, b->var->shape.type)};
    struct mgx_ins *old[2] = {b->mean, b->var};
    for (int i = 0; i < 2; i++) {
        if (i + 1 < n->out_count)
            n->out[i + 1] = mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, old[i], momentum),
                                          mgx_build_with(n, &mgx_op_mul, now[i], 1 - momentum));
        if (i + 3 < n->out_count) // saved_mean, saved_var of opset 1 to 13
            n->out[i + 3] = now[i];
    }
    b->mean = now[0];
    b->var = now[1];
}

static enum mgx_status check_channels(struct mgx_node *n, bool per_channel)
{
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    const struct mgx_shape *x = &n->in[0]->shape;
    for (int i = 1; i < 5 && per_channel && x->rank > 1; i++) {
        const struct mgx_shape *v = &n->in[i]->shape;
        if (v->rank == 1 && mgx_build_fixed_dim(n->in[i], 0) && mgx_build_fixed_dim(n->in[0], 1) &&
            mgx_shape_dim(v, 0).min != mgx_shape_dim(x, 1).min)
            return mgx_node_invalid(n, "%s has %lld elements for %lld channels", names[i - 1],
                                    (long long)mgx_shape_dim(v, 0).min,
                                    (long long)mgx_shape_dim(x, 1).min);
    }
    return MGX_OK;
}

static enum mgx_status batch_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 5, 5));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(check_channels(n, mgx_onnx_int(n, "spatial", 1) != 0));
    struct batch b = {.x = n->in[0],
                      .scale = n->in[1],
                      .bias = n->in[2],
                      .mean = n->in[3],
                      .var = n->in[4],
                      .per_axis = mgx_onnx_int(n, "spatial", 1) != 0};
    if (is_training(n))
        train(n, &b);
    if (!b.mean || !b.var)
        return MGX_OK;
    const enum mgx_type type = b.x->shape.type, wide = b.mean->shape.type;
    const double epsilon = mgx_onnx_real(n, "epsilon", 1e-5);
    struct mgx_ins *x = mgx_build_convert(n, b.x, wide);
    struct mgx_ins *centred = mgx_build_sub(n, x, spread(n, &b, b.mean));
    struct mgx_ins *inverse =
        mgx_build_rsqrt(n, mgx_build_with(n, &mgx_op_add, spread(n, &b, b.var), epsilon));
    struct mgx_ins *scale = spread(n, &b, mgx_build_convert(n, b.scale, wide));
    struct mgx_ins *bias = spread(n, &b, mgx_build_convert(n, b.bias, wide));
    struct mgx_ins *y = mgx_build_mul(n, centred, mgx_build_mul(n, scale, inverse));
    n->out[0] = mgx_build_convert(n, mgx_build_add(n, y, bias), type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_batch_normalization = {
    .name = "BatchNormalization", .import = batch_normalization, .result = "03"};

// --- InstanceNormalization, GroupNormalization ---

static enum mgx_status instance_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_node_need_floats(n, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 3)
        return mgx_node_invalid(n, "input has rank %d, below 3", rank);
    int64_t axes[MGX_MAX_RANK];
    const int count = axes_from(2, rank, axes);
    struct mgx_ins *y =
        mgx_build_standardize(n, x, axes, count, mgx_onnx_real(n, "epsilon", 1e-5), NULL, NULL);
    n->out[0] = scale_shift(n, y, mgx_build_per_axis(n, n->in[1], 1, rank),
                            mgx_build_per_axis(n, n->in[2], 1, rank));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_instance_normalization = {.name = "InstanceNormalization",
                                                            .import = instance_normalization};

// Scale and bias are per group before opset 21, per channel since; before it many models have them
// per channel already, which their length tells.
static bool is_per_group(const struct mgx_node *n, int64_t groups)
{
    const struct mgx_shape *scale = &n->in[1]->shape, *bias = &n->in[2]->shape;
    const int64_t channels = n->in[0]->shape.lens[1];
    const bool fixed = mgx_build_fixed_dim(n->in[1], 0) && mgx_build_fixed_dim(n->in[2], 0);
    if (n->opset >= 21 || scale->rank != 1 || bias->rank != 1 || channels == groups)
        return n->opset < 21;
    return !(fixed && mgx_shape_dim(scale, 0).min == channels &&
             mgx_shape_dim(bias, 0).min == channels);
}

// Scale and bias are vectors of one value for each of `count` groups or channels.
static enum mgx_status check_parts(struct mgx_node *n, int64_t count, const char *what)
{
    static const char *const names[] = {"scale", "bias"};
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *v = n->in[i + 1];
        const struct mgx_dim d = mgx_build_rank(v) == 1 ? mgx_shape_dim(&v->shape, 0)
                                                        : (struct mgx_dim){.min = -1, .max = -1};
        if (count < d.min || count > d.max)
            return mgx_node_invalid(n, "%s of rank %d has %lld elements for %lld %s", names[i],
                                    mgx_build_rank(v), (long long)d.min, (long long)count, what);
    }
    return MGX_OK;
}

// x as (N, groups, everything else).
static enum mgx_status group_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_node_need_floats(n, 3));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (!mgx_build_ranked(n) || (rank > 1 && !mgx_build_fixed_dim(x, 1)))
        return mgx_onnx_defer(n);
    const int64_t groups = mgx_onnx_int(n, "num_groups", 0);
    if (rank < 3 || groups < 1 || x->shape.lens[1] % groups != 0)
        return mgx_node_invalid(n, "rank %d with %lld groups", rank, (long long)groups);
    const enum mgx_type type = x->shape.type;
    const bool per_group = is_per_group(n, groups);
    TRY(check_parts(n, per_group ? groups : x->shape.lens[1], per_group ? "groups" : "channels"));
    const int64_t folded[3] = {0, groups, -1};
    struct mgx_build_len lens[MGX_MAX_RANK];
    for (int i = 0; i < rank; i++)
        lens[i] = (struct mgx_build_len){x, i};
    struct mgx_ins *y = mgx_build_reshape(n, stash(n, x), folded, 3);
    y = mgx_build_standardize(n, y, (int64_t[]){2}, 1, mgx_onnx_real(n, "epsilon", 1e-5), NULL,
                              NULL);
    y = mgx_build_convert(n, y, type);
    if (per_group)
        y = scale_shift(n, y, mgx_build_per_axis(n, n->in[1], 1, 3),
                        mgx_build_per_axis(n, n->in[2], 1, 3));
    y = mgx_build_reshape_to(n, y, lens, rank);
    if (!per_group)
        y = scale_shift(n, y, mgx_build_per_axis(n, n->in[1], 1, rank),
                        mgx_build_per_axis(n, n->in[2], 1, rank));
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_group_normalization = {.name = "GroupNormalization",
                                                         .import = group_normalization};

// --- LayerNormalization, RMSNormalization ---

static enum mgx_status layer_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    TRY(mgx_node_need_floats(n, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0], *mean = NULL, *inv_std = NULL;
    const int rank = mgx_build_rank(x);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank, &axis));
    int64_t axes[MGX_MAX_RANK];
    const int count = axes_from(axis, rank, axes);
    struct mgx_ins *y = mgx_build_standardize(n, stash(n, x), axes, count,
                                              mgx_onnx_real(n, "epsilon", 1e-5), &mean, &inv_std);
    n->out[0] = scale_shift(n, mgx_build_convert(n, y, x->shape.type), n->in[1], mgx_node_in(n, 2));
    enum mgx_type stashed = x->shape.type;
    if (mgx_onnx_int(n, "stash_type", 1) != 0)
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "stash_type", 1), &stashed));
    if (n->out_count > 1)
        n->out[1] = mgx_build_convert(n, mean, stashed);
    if (n->out_count > 2)
        n->out[2] = mgx_build_convert(n, inv_std, stashed);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_layer_normalization = {.name = "LayerNormalization",
                                                         .import = layer_normalization,
                                                         .result = "0@f",
                                                         .result_attribute = "stash_type"};

static enum mgx_status rms_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_node_need_floats(n, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank, &axis));
    int64_t axes[MGX_MAX_RANK];
    const int count = axes_from(axis, rank, axes);
    struct mgx_ins *y =
        mgx_build_rms(n, stash(n, x), axes, count, mgx_onnx_real(n, "epsilon", 1e-5));
    n->out[0] = mgx_build_mul(n, mgx_build_convert(n, y, n->in[1]->shape.type), n->in[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_rms_normalization = {
    .name = "RMSNormalization", .import = rms_normalization, .result = "1"};

// --- LpNormalization, MeanVarianceNormalization, LRN ---

// x over its norm along axis; a norm of 0 divides by 1.
static enum mgx_status lp_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    const int64_t p = mgx_onnx_int(n, "p", 2);
    if (rank < 0)
        return mgx_onnx_defer(n);
    if (p != 1 && p != 2)
        return mgx_node_invalid(n, "p is %lld, not 1 or 2", (long long)p);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank, &axis));
    struct mgx_ins *size = p == 1 ? mgx_build_abs(n, x) : mgx_build_mul(n, x, x);
    struct mgx_ins *norm =
        mgx_build_reduce(n, &mgx_op_reduce_sum, size, (int64_t[]){axis}, 1, true);
    if (p == 2)
        norm = mgx_build_sqrt(n, norm);
    struct mgx_ins *is_zero = mgx_build_equal(n, norm, mgx_build_like(n, x, 0));
    norm = mgx_build_where(n, is_zero, mgx_build_like(n, x, 1), norm);
    n->out[0] = mgx_build_div(n, x, norm);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_lp_normalization = {.name = "LpNormalization",
                                                      .import = lp_normalization};

static enum mgx_status mean_variance_normalization(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_onnx_defer(n);
    const int64_t usual[] = {0, 2, 3};
    struct mgx_ints axes = mgx_onnx_ints(n, "axes");
    int64_t normal[MGX_MAX_RANK];
    if (!axes.count)
        axes = (struct mgx_ints){usual, 3};
    TRY(mgx_build_axes(n, axes, rank, normal));
    struct mgx_ins *mean = mgx_build_reduce(n, &mgx_op_reduce_mean, x, normal, axes.count, true);
    struct mgx_ins *var = mgx_build_reduce(n, &mgx_op_reduce_mean, mgx_build_sqdiff(n, x, mean),
                                           normal, axes.count, true);
    struct mgx_ins *std = mgx_build_with(n, &mgx_op_add, mgx_build_sqrt(n, var), 1e-9);
    n->out[0] = mgx_build_div(n, mgx_build_sub(n, x, mean), std);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_mean_variance_normalization = {
    .name = "MeanVarianceNormalization", .import = mean_variance_normalization};

static enum mgx_status lrn(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_onnx_has(n, "size"))
        return mgx_node_invalid(n, "no size given");
    n->out[0] = mgx_build_emit(n, &mgx_op_lrn,
                               MGX_ATTRS(mgx_real("alpha", mgx_onnx_real(n, "alpha", 1e-4)),
                                         mgx_real("beta", mgx_onnx_real(n, "beta", 0.75)),
                                         mgx_real("bias", mgx_onnx_real(n, "bias", 1)),
                                         mgx_int("size", mgx_onnx_int(n, "size", 1))),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_lrn = {.name = "LRN", .import = lrn};
