// SPDX-License-Identifier: MIT
// OneHot, TopK, NonZero, Unique: operators whose results depend on values.
#include "onnx/build.h"

static enum mgx_status one_hot(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    const int rank = mgx_build_rank(n->in[0]);
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank + 1, &axis));
    struct mgx_ins *indices = n->in[0];
    if (!mgx_type_is_integral(indices->shape.type))
        indices = mgx_build_convert(n, indices, MGX_INT64);
    int64_t depth = 0;
    if (mgx_build_constant_int(n, 1, &depth)) {
        n->out[0] = mgx_build_emit(n, &mgx_op_onehot,
                                   MGX_ATTRS(mgx_int("axis", axis), mgx_int("depth", depth)),
                                   MGX_IN(indices, n->in[2]));
        return MGX_OK;
    }
    struct mgx_ins *count = mgx_build_convert(n, n->in[1], MGX_INT64);
    n->out[0] = mgx_build_emit(n, &mgx_op_onehot, MGX_ATTRS(mgx_int("axis", axis)),
                               MGX_IN(indices, count, n->in[2]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_one_hot = {
    .name = "OneHot", .import = one_hot, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX, .result = "2"};

// k is an attribute in opset 1, an input since 10, and in later models now and then still the
// former. The result is sorted, asked for or not.
static enum mgx_status top_k(struct mgx_node *n)
{
    const bool listed = mgx_onnx_has(n, "k") && !mgx_node_in(n, 1);
    TRY(mgx_node_need(n, listed ? 1 : 2, 2));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_onnx_defer(n);
    int axis = 0;
    int64_t k = listed ? mgx_onnx_int(n, "k", 0) : 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank, &axis));
    const struct mgx_attr way[2] = {mgx_int("axis", axis),
                                    mgx_int("largest", mgx_onnx_int(n, "largest", 1) != 0)};
    struct mgx_ins *both;
    if (listed || mgx_build_constant_int(n, 1, &k))
        both =
            mgx_build_emit(n, &mgx_op_topk, MGX_ATTRS(mgx_int("k", k), way[0], way[1]), MGX_IN(x));
    else
        both = mgx_build_emit(n, &mgx_op_topk, MGX_ATTRS(way[0], way[1]), MGX_IN(x, n->in[1]));
    n->out[0] = mgx_build_member(n, both, 0);
    if (n->out_count > 1)
        n->out[1] = mgx_build_member(n, both, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_top_k = {.name = "TopK", .import = top_k, .result = "0l"};

static enum mgx_status non_zero(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, &mgx_op_nonzero, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_non_zero = {.name = "NonZero", .import = non_zero, .result = "l"};

static enum mgx_status unique(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_attr sorted = mgx_int("sorted", mgx_onnx_int(n, "sorted", 1) != 0);
    const struct mgx_attr *attrs =
        mgx_onnx_has(n, "axis") ? MGX_ATTRS(mgx_int("axis", mgx_onnx_int(n, "axis", 0)), sorted)
                                : MGX_ATTRS(sorted);
    struct mgx_ins *all = mgx_build_emit(n, &mgx_op_unique, attrs, MGX_IN(n->in[0]));
    for (int i = 0; i < n->out_count && i < 4; i++)
        n->out[i] = mgx_build_member(n, all, i);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_unique = {
    .name = "Unique", .import = unique, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX, .result = "0l"};
