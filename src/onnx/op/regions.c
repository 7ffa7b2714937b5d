// SPDX-License-Identifier: MIT
// Regions and sampling grids: RoiAlign, MaxRoiPool, NonMaxSuppression, GridSample, AffineGrid,
// DeformConv.
#include <assert.h>
#include <string.h>

#include "onnx/build.h"
#include "onnx/window.h"

// RoiAlign of opset 10 has no coordinate mode: it does not shift by half a pixel.
static enum mgx_status roi_align(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    const char *mode = mgx_onnx_text(n, "mode", "avg");
    const bool max = strcmp(mode, "max") == 0;
    if (!max && strcmp(mode, "avg") != 0)
        return mgx_node_invalid(n, "mode \"%s\" is neither avg nor max", mode);
    const char *coordinates = mgx_onnx_text(n, "coordinate_transformation_mode", "half_pixel");
    n->out[0] =
        mgx_build_emit_n(n, &mgx_op_roialign,
                         MGX_ATTRS(mgx_text("coordinate_transformation_mode",
                                            n->opset < 16 ? "output_half_pixel" : coordinates),
                                   mgx_text("mode", max ? "max" : "average"),
                                   mgx_int("output_height", mgx_onnx_int(n, "output_height", 1)),
                                   mgx_int("output_width", mgx_onnx_int(n, "output_width", 1)),
                                   mgx_int("sampling_ratio", mgx_onnx_int(n, "sampling_ratio", 0)),
                                   mgx_real("spatial_scale", mgx_onnx_real(n, "spatial_scale", 1))),
                         n->in, 3);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_roi_align = {.name = "RoiAlign", .import = roi_align};

static enum mgx_status max_roi_pool(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    const struct mgx_ints shape = mgx_onnx_ints(n, "pooled_shape");
    if (shape.count != 2)
        return mgx_node_invalid(n, "pooled_shape has %d entries, not 2", shape.count);
    n->out[0] = mgx_build_emit_n(
        n, &mgx_op_max_roi_pool,
        MGX_ATTRS(mgx_int("output_height", shape.v[0]), mgx_int("output_width", shape.v[1]),
                  mgx_real("spatial_scale", mgx_onnx_real(n, "spatial_scale", 1))),
        n->in, 2);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_max_roi_pool = {.name = "MaxRoiPool", .import = max_roi_pool};

// As many rows as boxes are selected. Without a limit per class none are.
static enum mgx_status non_max_suppression(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 5));
    struct mgx_ins *in[5] = {n->in[0], n->in[1]};
    const double absent[5] = {0, 0, 0, 0, 0};
    for (int i = 2; i < 5; i++) {
        in[i] = mgx_node_in(n, i);
        if (!in[i])
            in[i] = i == 4 ? mgx_build_undefined(n)
                           : mgx_build_scalar(n, i == 2 ? MGX_INT64 : MGX_FLOAT, absent[i]);
    }
    n->out[0] = mgx_build_emit_n(
        n, &mgx_op_nonmaxsuppression,
        MGX_ATTRS(mgx_int("center_point_box", mgx_onnx_int(n, "center_point_box", 0) != 0),
                  mgx_int("use_dyn_output", 1)),
        in, mgx_node_in(n, 4) ? 5 : 4);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_non_max_suppression = {
    .name = "NonMaxSuppression", .import = non_max_suppression, .result = "l"};

// --- grids ---

// Opset 16 calls the interpolations bilinear and bicubic.
static enum mgx_status grid_sample(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    const char *mode = mgx_onnx_text(n, "mode", "linear");
    if (strncmp(mode, "bi", 2) == 0)
        mode += 2;
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "nearest") != 0 && strcmp(mode, "cubic") != 0)
        return mgx_node_invalid(n, "mode \"%s\" is not one of linear, nearest, cubic", mode);
    const char *padding = mgx_onnx_text(n, "padding_mode", "zeros");
    if (strcmp(padding, "zeros") != 0 && strcmp(padding, "border") != 0 &&
        strcmp(padding, "reflection") != 0)
        return mgx_node_invalid(n, "padding_mode \"%s\" is not one of zeros, border, reflection",
                                padding);
    n->out[0] = mgx_build_emit_n(
        n, &mgx_op_grid_sample,
        MGX_ATTRS(mgx_text("mode", mode), mgx_text("padding_mode", padding),
                  mgx_int("align_corners", mgx_onnx_int(n, "align_corners", 0) != 0)),
        n->in, 2);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_grid_sample = {.name = "GridSample", .import = grid_sample};

// Coordinate of element i of a length: outermost centres at -1 and 1, or outer edges.
static double coordinate(int64_t i, int64_t length, bool align)
{
    assert(i >= 0 && i < length);
    if (align)
        return length > 1 ? -1 + 2 * (double)i / (double)(length - 1) : -1;
    return (2 * (double)i + 1) / (double)length - 1;
}

// (places, k + 1): the coordinates of every place, innermost axis first, and 1.
static enum mgx_status base_grid(struct mgx_node *n, enum mgx_type type, const int64_t *lens, int k,
                                 struct mgx_ins **out)
{
    const bool align = mgx_onnx_int(n, "align_corners", 0) != 0;
    const struct mgx_shape places = mgx_shape_make(type, k, lens);
    TRY(mgx_shape_check(&places, n->diag));
    const int64_t count = mgx_shape_elements(&places);
    const struct mgx_shape shape = mgx_shape_make(type, 2, (int64_t[]){count, k + 1});
    TRY(mgx_shape_check(&shape, n->diag));
    if (mgx_shape_bytes(&shape) > UINT32_MAX)
        return mgx_fail(n->diag, MGX_LIMIT, "a grid of %lld places", (long long)count);
    double *v = MGX_NEW_ARRAY(n->scratch, double, count *(k + 1));
    int64_t at[MGX_MAX_RANK] = {0};
    if (!v)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < count; i++) {
        for (int a = 0; a < k; a++)
            v[i * (k + 1) + a] = coordinate(at[k - 1 - a], lens[k - 1 - a], align);
        v[i * (k + 1) + k] = 1;
        mgx_shape_next(&places, at);
    }
    *out = mgx_build_doubles(n, &shape, v);
    return MGX_OK;
}

static enum mgx_status affine_grid(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ints size = {0};
    if (!mgx_build_is_static(n->in[0]) || !mgx_node_constant_ints(n, 1, &size))
        return mgx_onnx_defer(n);
    const struct mgx_shape *theta = &n->in[0]->shape;
    const int k = size.count - 2;
    if (k < 2 || k > 3 || theta->rank != 3 || theta->lens[1] != k || theta->lens[2] != k + 1)
        return mgx_node_invalid(n, "theta of rank %d for a size of %d numbers", theta->rank,
                                size.count);
    for (int i = 0; i < size.count; i++)
        if (size.v[i] < 1)
            return mgx_node_invalid(n, "size has %lld", (long long)size.v[i]);
    struct mgx_ins *base = NULL;
    TRY(base_grid(n, theta->type, size.v + 2, k, &base));
    const int64_t swap[3] = {0, 2, 1};
    int64_t lens[5] = {theta->lens[0]};
    memcpy(lens + 1, size.v + 2, (size_t)k * sizeof *lens);
    lens[k + 1] = k;
    base = base ? mgx_build_unsqueeze(n, base, (int64_t[]){0}, 1) : NULL;
    struct mgx_ins *y =
        mgx_build_matmul(n, &mgx_op_dot, base, mgx_build_transpose(n, n->in[0], swap, 3));
    n->out[0] = mgx_build_reshape(n, y, lens, k + 2);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_affine_grid = {.name = "AffineGrid", .import = affine_grid};

// --- DeformConv ---

static enum mgx_status deform_conv(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 5));
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[1]))
        return mgx_onnx_defer(n);
    struct mgx_import_window w;
    if (mgx_build_rank(n->in[1]) != mgx_build_rank(n->in[0]))
        return mgx_node_invalid(n, "weights have rank %d, the input %d", mgx_build_rank(n->in[1]),
                                mgx_build_rank(n->in[0]));
    TRY(mgx_onnx_window_read(n, n->in[0], n->in[1]->shape.lens + 2, &w));
    struct mgx_ins *in[4] = {n->in[0], n->in[1], n->in[2], mgx_node_in(n, 4)};
    struct mgx_ins *y =
        mgx_build_emit_n(n, &mgx_op_deform_conv,
                         MGX_ATTRS(mgx_ints("padding", w.pads, 2 * w.spatial),
                                   mgx_ints("stride", w.strides, w.spatial),
                                   mgx_ints("dilation", w.dilations, w.spatial),
                                   mgx_int("group", mgx_onnx_int(n, "group", 1)),
                                   mgx_int("offset_group", mgx_onnx_int(n, "offset_group", 1))),
                         in, in[3] ? 4 : 3);
    struct mgx_ins *bias = mgx_node_in(n, 3);
    if (bias && y)
        y = mgx_build_add(n, y, mgx_build_per_axis(n, bias, 1, y->shape.rank));
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_deform_conv = {.name = "DeformConv", .import = deform_conv};
