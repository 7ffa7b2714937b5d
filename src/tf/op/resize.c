// SPDX-License-Identifier: MIT
// ResizeBilinear, ResizeNearestNeighbor, ResizeBicubic: of images {n, height, width, channels}.
#include <string.h>

#include "tf/node.h"

struct way {
    const char *mode, *nearest;
    double cubic;
};

// Places by the two flags; a nearest neighbour is rounded down, of aligned corners to the nearest.
static enum mgx_status resize(struct mgx_node *n, struct way way)
{
    struct mgx_ints size;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_ints(n, 1, "size", &size));
    const bool corners = mgx_tf_flag(n, "align_corners", false);
    const bool centres = mgx_tf_flag(n, "half_pixel_centers", false);
    struct mgx_ins *x = n->in[0];
    if (x->shape.rank != 4 || size.count != 2 || size.v[0] < 1 || size.v[1] < 1 ||
        size.v[0] > MGX_DIM_ANY || size.v[1] > MGX_DIM_ANY)
        return mgx_node_invalid(n, "rank %d with %d sizes", x->shape.rank, size.count);
    const bool nearest = strcmp(way.mode, "nearest") == 0;
    if (!nearest)
        x = mgx_build_convert(n, x, MGX_FLOAT); // the result's type, whatever x has
    const int64_t sizes[4] = {x->shape.lens[0], x->shape.lens[3], size.v[0], size.v[1]};
    const char *nearest_half = centres ? "round_prefer_ceil" : way.nearest;
    struct mgx_ins *y = mgx_build_emit(
        n, &mgx_op_resize,
        MGX_ATTRS(mgx_ints("sizes", sizes, 4), mgx_text("mode", way.mode),
                  mgx_text("nearest_mode", corners ? "round_prefer_ceil" : nearest_half),
                  mgx_text("coordinate_transformation_mode", corners   ? "align_corners"
                                                             : centres ? "half_pixel"
                                                                       : "asymmetric"),
                  mgx_real("cubic_coeff_a", way.cubic),
                  mgx_int("exclude_outside", centres && way.cubic == -0.5)),
        MGX_IN(mgx_tf_to_channels_first(n, x, true)));
    n->out[0] = mgx_tf_from_channels_first(n, y, true);
    return MGX_OK;
}

static enum mgx_status bilinear(struct mgx_node *n)
{
    return resize(n, (struct way){"linear", "floor", -0.75});
}
const struct mgx_tf_op mgx_tf_resize_bilinear = {.name = "ResizeBilinear", .import = bilinear};

static enum mgx_status nearest_neighbor(struct mgx_node *n)
{
    return resize(n, (struct way){"nearest", "floor", -0.75});
}
const struct mgx_tf_op mgx_tf_resize_nearest = {.name = "ResizeNearestNeighbor",
                                                .import = nearest_neighbor};

// Keys' kernel; with half pixel centres a = -0.5 and weights outside the image are left out.
static enum mgx_status bicubic(struct mgx_node *n)
{
    const bool centres = mgx_tf_flag(n, "half_pixel_centers", false);
    return resize(n, (struct way){"cubic", "floor", centres ? -0.5 : -0.75});
}
const struct mgx_tf_op mgx_tf_resize_bicubic = {.name = "ResizeBicubic", .import = bicubic};
