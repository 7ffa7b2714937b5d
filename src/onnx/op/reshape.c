// SPDX-License-Identifier: MIT
// Reshape (shape as attribute before opset 5) and Flatten.
#include "import/spans.h"
#include "onnx/build.h"

// With allowzero a 0 is a length of zero: the result holds nothing, so it needs no input.
static enum mgx_status reshape_to_zero(struct mgx_node *n, struct mgx_ints dims)
{
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    if (mgx_shape_elements(&n->in[0]->shape) != 0 || dims.count > MGX_MAX_RANK)
        return mgx_node_invalid(n, "%lld elements cannot take a shape with a zero",
                                (long long)mgx_shape_elements(&n->in[0]->shape));
    for (int i = 0; i < dims.count; i++)
        if (dims.v[i] < 0)
            return mgx_node_invalid(n, "shape has both a zero and %lld", (long long)dims.v[i]);
    const struct mgx_shape empty = mgx_shape_make(n->in[0]->shape.type, dims.count, dims.v);
    n->out[0] = mgx_build_doubles(n, &empty, NULL);
    return MGX_OK;
}

static enum mgx_status reshape(struct mgx_node *n)
{
    TRY(mgx_node_need(n, mgx_onnx_has(n, "shape") ? 1 : 2, 2));
    bool given = false, known = false;
    struct mgx_ints dims = {0};
    TRY(mgx_onnx_ints_or_input(n, "shape", 1, &given, &known, &dims));
    if (!given)
        return mgx_node_invalid(n, "no shape given");
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    const bool zero_is_zero = mgx_onnx_int(n, "allowzero", 0) != 0;
    if (!known) {
        if (zero_is_zero)
            return mgx_onnx_defer(n);
        n->out[0] = mgx_build_reshape_by(n, n->in[0], n->in[1]);
        return MGX_OK;
    }
    for (int i = 0; zero_is_zero && i < dims.count; i++)
        if (dims.v[i] == 0)
            return reshape_to_zero(n, dims);
    n->out[0] = mgx_build_reshape(n, n->in[0], dims.v, dims.count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_reshape_ = {
    .name = "Reshape", .import = reshape, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status flatten(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0)
        return mgx_onnx_defer(n);
    const int64_t axis = mgx_onnx_int(n, "axis", 1);
    if (axis < -rank || axis > rank)
        return mgx_node_invalid(n, "axis %lld is out of range for rank %d", (long long)axis, rank);
    n->out[0] =
        mgx_build_emit(n, &mgx_op_flatten,
                       MGX_ATTRS(mgx_int("axis", axis < 0 ? axis + rank : axis)), MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_flatten = {
    .name = "Flatten", .import = flatten, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
