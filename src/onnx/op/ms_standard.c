// SPDX-License-Identifier: MIT
// Operators of com.microsoft that the standard has taken over since: its rule, as of that version.
#include "onnx/build.h"

static enum mgx_status as(struct mgx_node *n, const struct mgx_onnx_op *rule, int64_t opset)
{
    struct mgx_node newer = *n;
    newer.opset = opset;
    return rule->import(&newer);
}

static enum mgx_status grid_sample(struct mgx_node *n)
{
    return as(n, &mgx_onnx_grid_sample, 16);
}
const struct mgx_onnx_op mgx_onnx_ms_grid_sample = {
    .name = "GridSample", .domain = "com.microsoft", .import = grid_sample};

static enum mgx_status trilu(struct mgx_node *n)
{
    return as(n, &mgx_onnx_trilu, 14);
}
const struct mgx_onnx_op mgx_onnx_ms_trilu = {
    .name = "Trilu", .domain = "com.microsoft", .import = trilu};

// In the order in which they come, with the place of each among them and how often it comes.
static enum mgx_status unique(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *all =
        mgx_build_emit(n, &mgx_op_unique, MGX_ATTRS(mgx_int("sorted", 0)), MGX_IN(n->in[0]));
    for (int i = 0; i < n->out_count && i < 3; i++)
        n->out[i] = mgx_build_member(n, all, i ? i + 1 : 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_unique = {.name = "Unique",
                                               .domain = "com.microsoft",
                                               .import = unique,
                                               .takes = MGX_ONNX_TEXT,
                                               .result = "0l"};

static enum mgx_status gather_nd(struct mgx_node *n)
{
    return as(n, &mgx_onnx_gather_nd, 13);
}
const struct mgx_onnx_op mgx_onnx_ms_gather_nd = {
    .name = "GatherND", .domain = "com.microsoft", .import = gather_nd, .takes = MGX_ONNX_TEXT};

static enum mgx_status range(struct mgx_node *n)
{
    return as(n, &mgx_onnx_range, 11);
}
const struct mgx_onnx_op mgx_onnx_ms_range = {
    .name = "Range", .domain = "com.microsoft", .import = range};

static enum mgx_status pad(struct mgx_node *n)
{
    return as(n, &mgx_onnx_pad, 11);
}
const struct mgx_onnx_op mgx_onnx_ms_pad = {
    .name = "Pad", .domain = "com.microsoft", .import = pad};
