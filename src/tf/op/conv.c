// SPDX-License-Identifier: MIT
// Conv2D, Conv3D, DepthwiseConv2dNative, Conv2DBackpropInput (a transposed convolution), BiasAdd.
//
// A filter lies as {spatial.., in, out} and becomes {out, in, spatial..}; of a depthwise one the
// last two axes, channel and multiplier, become the output's channels.
#include <string.h>

#include "base/size.h"
#include "tf/window.h"

static struct mgx_ins *emit(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                            struct mgx_ins *weights, const struct mgx_import_window *w,
                            const int64_t *pads, int pad_count, int64_t group)
{
    return mgx_build_emit(
        n, op,
        MGX_ATTRS(mgx_ints("padding", pads, pad_count), mgx_ints("stride", w->strides, w->spatial),
                  mgx_ints("dilation", w->dilations, w->spatial), mgx_int("group", group)),
        MGX_IN(x, weights));
}

// {spatial.., a, b} to {b, a, spatial..}, or to {a, b, spatial..}.
static struct mgx_ins *turn_filter(struct mgx_node *n, struct mgx_ins *filter, bool swap)
{
    const int rank = filter->shape.rank;
    int64_t permutation[MGX_MAX_RANK];
    permutation[0] = swap ? rank - 1 : rank - 2;
    permutation[1] = swap ? rank - 2 : rank - 1;
    for (int i = 2; i < rank; i++)
        permutation[i] = i - 2;
    return mgx_build_transpose(n, filter, permutation, rank);
}

// What a convolution has before it looks at the filter: the window over x, channels second.
static enum mgx_status begin(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *filter,
                             struct mgx_import_window *w)
{
    bool last = true;
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_channels_last(n, &last));
    if (filter->shape.rank != x->shape.rank || x->shape.rank < 3)
        return mgx_node_invalid(n, "the filter has rank %d, the input %d", filter->shape.rank,
                                x->shape.rank);
    return mgx_tf_window_read(n, x->shape.rank, last, filter->shape.lens, w);
}

static const int64_t *spatial_lens(const struct mgx_ins *x, const struct mgx_import_window *w)
{
    return x->shape.lens + (w->channels_last ? 1 : 2);
}

static int64_t channels(const struct mgx_ins *x, const struct mgx_import_window *w)
{
    return x->shape.lens[w->channels_last ? x->shape.rank - 1 : 1];
}

static enum mgx_status convolution(struct mgx_node *n)
{
    struct mgx_import_window w;
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *x = n->in[0], *filter = n->in[1];
    TRY(begin(n, x, filter, &w));
    TRY(mgx_tf_window_pad(n, spatial_lens(x, &w), &w));
    const int64_t of_x = channels(x, &w), of_filter = filter->shape.lens[filter->shape.rank - 2];
    if (of_filter < 1 || of_x % of_filter)
        return mgx_node_invalid(n, "%lld channels for a filter of %lld", (long long)of_x,
                                (long long)of_filter);
    struct mgx_ins *y =
        emit(n, &mgx_op_convolution, mgx_tf_to_channels_first(n, x, w.channels_last),
             turn_filter(n, filter, true), &w, w.pads, 2 * w.spatial, of_x / of_filter);
    n->out[0] = mgx_tf_from_channels_first(n, y, w.channels_last);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_conv2d = {.name = "Conv2D", .import = convolution};
const struct mgx_tf_op mgx_tf_conv3d = {.name = "Conv3D", .import = convolution};

static enum mgx_status depthwise(struct mgx_node *n)
{
    struct mgx_import_window w;
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *x = n->in[0], *filter = n->in[1];
    TRY(begin(n, x, filter, &w));
    TRY(mgx_tf_window_pad(n, spatial_lens(x, &w), &w));
    const int rank = filter->shape.rank;
    const int64_t group = channels(x, &w), *lens = filter->shape.lens;
    if (lens[rank - 2] != group)
        return mgx_node_invalid(n, "%lld channels for a filter of %lld", (long long)group,
                                (long long)lens[rank - 2]);
    int64_t dims[MGX_MAX_RANK] = {group * lens[rank - 1], 1};
    memcpy(dims + 2, lens, (size_t)w.spatial * sizeof *dims);
    struct mgx_ins *weights = mgx_build_reshape(n, turn_filter(n, filter, false), dims, rank);
    struct mgx_ins *y =
        emit(n, &mgx_op_convolution, mgx_tf_to_channels_first(n, x, w.channels_last), weights, &w,
             w.pads, 2 * w.spatial, group);
    n->out[0] = mgx_tf_from_channels_first(n, y, w.channels_last);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_depthwise_conv2d = {.name = "DepthwiseConv2dNative",
                                                  .import = depthwise};

// --- the transpose ---

// The result's lengths, in the order of data_format, are input 0.
static enum mgx_status result_lens(struct mgx_node *n, const struct mgx_import_window *w,
                                   int64_t *spatial)
{
    struct mgx_ints sizes;
    TRY(mgx_tf_need_ints(n, 0, "input_sizes", &sizes));
    const int first = w->channels_last ? 1 : 2;
    if (sizes.count != w->spatial && sizes.count != w->spatial + 2)
        return mgx_node_invalid(n, "input_sizes has %d entries", sizes.count);
    for (int i = 0; i < w->spatial; i++) {
        spatial[i] = sizes.v[sizes.count == w->spatial ? i : first + i];
        if (spatial[i] < 1 || spatial[i] > MGX_DIM_ANY)
            return mgx_node_invalid(n, "input_sizes has %lld", (long long)spatial[i]);
    }
    return MGX_OK;
}

// What the transpose makes beyond the padding: cut at the end, or zeros added there.
static struct mgx_ins *fit(struct mgx_node *n, struct mgx_ins *y, const struct mgx_import_window *w,
                           const int64_t *wanted)
{
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    for (int i = 0; y && i < w->spatial; i++) {
        const int64_t begin = w->pads[i], length = y->shape.lens[i + 2];
        const int64_t end = mgx_min_i64(begin + wanted[i], length);
        pads[w->spatial + 2 + i + 2] = begin + wanted[i] - end;
        if (begin > 0 || end < length)
            y = mgx_build_slice(n, y, i + 2, begin, end);
    }
    return mgx_build_pad(n, y, pads, 0);
}

static enum mgx_status transposed(struct mgx_node *n)
{
    struct mgx_import_window w;
    int64_t wanted[MGX_MAX_RANK];
    const int64_t none[MGX_MAX_RANK] = {0};
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ins *filter = n->in[1], *x = n->in[2];
    TRY(begin(n, x, filter, &w));
    TRY(result_lens(n, &w, wanted));
    TRY(mgx_tf_window_pad(n, wanted, &w));
    struct mgx_ins *y =
        emit(n, &mgx_op_convolution_backwards, mgx_tf_to_channels_first(n, x, w.channels_last),
             turn_filter(n, filter, true), &w, none, w.spatial, 1);
    n->out[0] = mgx_tf_from_channels_first(n, fit(n, y, &w, wanted), w.channels_last);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_conv2d_backprop_input = {.name = "Conv2DBackpropInput",
                                                       .import = transposed};
const struct mgx_tf_op mgx_tf_conv3d_backprop_input_v2 = {.name = "Conv3DBackpropInputV2",
                                                          .import = transposed};

// --- bias ---

static enum mgx_status bias_add(struct mgx_node *n)
{
    bool last = true;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_channels_last(n, &last));
    struct mgx_ins *x = n->in[0], *bias = n->in[1];
    if (bias->shape.rank != 1 || mgx_build_rank(x) < 2)
        return mgx_node_invalid(n, "a bias of rank %d for a value of rank %d", bias->shape.rank,
                                mgx_build_rank(x));
    n->out[0] = mgx_build_add(n, x, last ? bias : mgx_build_per_axis(n, bias, 1, x->shape.rank));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_bias_add = {.name = "BiasAdd", .import = bias_add};
