// SPDX-License-Identifier: MIT
// Col2Im, CenterCropPad, Det.
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

// --- Col2Im ---

// Values of an attribute, or `fallback` for all of them.
static enum mgx_status list(struct mgx_node *n, const char *name, int count, int64_t fallback,
                            int64_t *out)
{
    const struct mgx_ints given = mgx_onnx_ints(n, name);
    if (given.count && given.count != count)
        return mgx_node_invalid(n, "%s has %d entries, expected %d", name, given.count, count);
    for (int i = 0; i < count; i++)
        out[i] = given.count ? given.v[i] : fallback;
    return MGX_OK;
}

static enum mgx_status col2im(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ints image = {0}, block = {0};
    mgx_node_ask(n, 1, 2);
    if (!mgx_node_constant_ints(n, 1, &image) || !mgx_node_constant_ints(n, 2, &block))
        return mgx_onnx_defer(n);
    const int k = image.count;
    if (block.count != k || k < 1 || k > MGX_MAX_RANK - 2)
        return mgx_node_invalid(n, "image_shape has %d entries, block_shape %d", k, block.count);
    int64_t pads[2 * MGX_MAX_RANK], strides[MGX_MAX_RANK], dilations[MGX_MAX_RANK];
    TRY(list(n, "pads", 2 * k, 0, pads));
    TRY(list(n, "strides", k, 1, strides));
    TRY(list(n, "dilations", k, 1, dilations));
    n->out[0] =
        mgx_build_emit_n(n, &mgx_op_col2im,
                         MGX_ATTRS(mgx_ints("sizes", image.v, k), mgx_ints("lengths", block.v, k),
                                   mgx_ints("padding", pads, 2 * k), mgx_ints("stride", strides, k),
                                   mgx_ints("dilation", dilations, k)),
                         n->in, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_col2im = {
    .name = "Col2Im", .import = col2im, .takes = MGX_ONNX_COMPLEX};

// --- CenterCropPad ---

// Axis by axis cut or padded to the asked length, what is odd going to the end.
static enum mgx_status center_crop_pad(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *x = n->in[0];
    struct mgx_ints shape = {0}, axes = mgx_onnx_ints(n, "axes");
    int64_t normal[MGX_MAX_RANK], pads[2 * MGX_MAX_RANK] = {0};
    if (!mgx_build_is_static(x) || !mgx_node_constant_ints(n, 1, &shape))
        return mgx_onnx_defer(n);
    const int rank = x->shape.rank, count = axes.count ? axes.count : rank;
    if (shape.count != count)
        return mgx_node_invalid(n, "shape has %d entries for %d axes", shape.count, count);
    for (int i = 0; i < count; i++)
        normal[i] = i;
    if (axes.count)
        TRY(mgx_build_axes(n, axes, rank, normal));
    for (int i = 0; i < count; i++) {
        const int64_t axis = normal[i], length = n->in[0]->shape.lens[axis], wanted = shape.v[i];
        if (wanted < 0 || wanted > MGX_DIM_ANY)
            return mgx_node_invalid(n, "length %lld of axis %lld is outside 0..%lld",
                                    (long long)wanted, (long long)axis, (long long)MGX_DIM_ANY);
        if (wanted < length)
            x = mgx_build_slice(n, x, axis, (length - wanted) / 2, (length - wanted) / 2 + wanted);
        if (wanted > length) {
            pads[axis] = (wanted - length) / 2;
            pads[axis + rank] = wanted - length - pads[axis];
        }
    }
    x = mgx_build_pad(n, x, pads, 0);
    n->out[0] = x == n->in[0] ? mgx_build_unary(n, &mgx_op_identity, x) : x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_center_crop_pad = {
    .name = "CenterCropPad", .import = center_crop_pad, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- Det ---

static enum mgx_status det(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, &mgx_op_det, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_det = {.name = "Det", .import = det};
