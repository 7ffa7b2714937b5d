// SPDX-License-Identifier: MIT
// Activations of com.microsoft: Gelu, FastGelu, BiasGelu, QuickGelu, BiasSplitGelu, and BiasAdd
// which exporters put beside them. Each rule is the operator's equation, in the form that the
// standard operators take.
#include "onnx/build.h"

static enum mgx_status gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_gelu(n, n->in[0], false);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gelu = {
    .name = "Gelu", .domain = "com.microsoft", .import = gelu};

static enum mgx_status fast_gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *bias = mgx_node_in(n, 1);
    n->out[0] = mgx_build_gelu(n, bias ? mgx_build_add(n, n->in[0], bias) : n->in[0], true);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_fast_gelu = {
    .name = "FastGelu", .domain = "com.microsoft", .import = fast_gelu};

static enum mgx_status bias_gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    n->out[0] = mgx_build_gelu(n, mgx_build_add(n, n->in[0], n->in[1]), false);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_bias_gelu = {
    .name = "BiasGelu", .domain = "com.microsoft", .import = bias_gelu};

// x * sigmoid(alpha * x)
static enum mgx_status quick_gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const double alpha = mgx_onnx_real(n, "alpha", 1.702);
    n->out[0] = mgx_build_mul(n, x, mgx_build_sigmoid(n, mgx_build_with(n, &mgx_op_mul, x, alpha)));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_quick_gelu = {
    .name = "QuickGelu", .domain = "com.microsoft", .import = quick_gelu};

// The first half of x + bias times the Gelu of the second.
static enum mgx_status bias_split_gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    const int axis = mgx_build_rank(n->in[0]) - 1;
    if (!mgx_build_ranked(n) || (axis >= 0 && !mgx_build_fixed_dim(n->in[0], axis)))
        return mgx_onnx_defer(n);
    if (axis < 0 || n->in[0]->shape.lens[axis] % 2 != 0)
        return mgx_node_invalid(n, "an input of rank %d has no two halves", axis + 1);
    const int64_t size = n->in[0]->shape.lens[axis];
    struct mgx_ins *x = mgx_build_add(n, n->in[0], n->in[1]);
    struct mgx_ins *gate = mgx_build_gelu(n, mgx_build_slice(n, x, axis, size / 2, size), false);
    n->out[0] = mgx_build_mul(n, mgx_build_slice(n, x, axis, 0, size / 2), gate);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_bias_split_gelu = {
    .name = "BiasSplitGelu", .domain = "com.microsoft", .import = bias_split_gelu};

static enum mgx_status bias_add(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    n->out[0] = mgx_build_add(n, mgx_build_add(n, n->in[0], n->in[1]), n->in[2]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_bias_add = {
    .name = "BiasAdd", .domain = "com.microsoft", .import = bias_add};
