// SPDX-License-Identifier: MIT
// Squeeze and Unsqueeze; axes are an attribute before opset 13.
#include "onnx/build.h"

// Without axes, and with an empty list of them, every axis of length 1 goes; which ones those are
// must be known.
static int ones(const struct mgx_ins *x, int64_t *axes)
{
    int count = 0;
    for (int i = 0; i < x->shape.rank; i++)
        if (x->shape.lens[i] == 1)
            axes[count++] = i;
    return count;
}

static enum mgx_status squeeze(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    bool given = false, known = false;
    struct mgx_ints axes = {0};
    int64_t normal[MGX_MAX_RANK];
    TRY(mgx_onnx_ints_or_input(n, "axes", 1, &given, &known, &axes));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0 || !known || (!axes.count && !mgx_build_is_static(n->in[0])))
        return mgx_onnx_defer(n);
    int count = axes.count;
    if (count)
        TRY(mgx_build_axes(n, axes, rank, normal));
    else
        count = ones(n->in[0], normal);
    n->out[0] = count ? mgx_build_squeeze(n, n->in[0], normal, count)
                      : mgx_build_unary(n, &mgx_op_identity, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_squeeze = {
    .name = "Squeeze", .import = squeeze, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status unsqueeze(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    bool given = false, known = false;
    struct mgx_ints axes = {0};
    int64_t normal[MGX_MAX_RANK];
    TRY(mgx_onnx_ints_or_input(n, "axes", 1, &given, &known, &axes));
    if (!given)
        return mgx_node_invalid(n, "no axes given");
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0 || !known)
        return mgx_onnx_defer(n);
    if (rank + axes.count > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", rank + axes.count, MGX_MAX_RANK);
    TRY(mgx_build_axes(n, axes, rank + axes.count, normal));
    for (int i = 1; i < axes.count; i++) // ascending, as the IR operator wants them
        for (int k = i; k > 0 && normal[k] < normal[k - 1]; k--) {
            const int64_t swap = normal[k];
            normal[k] = normal[k - 1];
            normal[k - 1] = swap;
        }
    n->out[0] = axes.count ? mgx_build_unsqueeze(n, n->in[0], normal, axes.count)
                           : mgx_build_unary(n, &mgx_op_identity, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_unsqueeze = {
    .name = "Unsqueeze", .import = unsqueeze, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
