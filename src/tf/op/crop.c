// SPDX-License-Identifier: MIT
// CropAndResize: boxes cut out of images and brought to one size.
//
//     place(i) = from * last + i * ((to - from) * last / (size - 1))        last = length - 1
//
// Each box's image is read on a grid of such places; outside 0 .. last the result is the
// extrapolation value. A nearest element is the upper one of two that are equally near.
#include <string.h>

#include "tf/node.h"

struct side {
    struct mgx_ins *places, *inside; // {boxes, size}
};

struct cut {      // along one axis
    int from, to; // columns of the boxes {n, 4}
    double last;  // place of the image
    int64_t size;
    bool nearest;
};

// Where the places of a crop lie in the image, {n, size}.
static struct mgx_ins *places_of(struct mgx_node *n, struct mgx_ins *boxes, const struct cut *c)
{
    struct mgx_ins *low = mgx_build_slice(n, boxes, 1, c->from, c->from + 1);
    struct mgx_ins *high = mgx_build_slice(n, boxes, 1, c->to, c->to + 1);
    if (c->size == 1) // the middle
        return mgx_build_with(n, &mgx_op_mul, mgx_build_add(n, low, high), c->last / 2);
    struct mgx_ins *line = mgx_build_iota(n, MGX_FLOAT, c->size);
    struct mgx_ins *length = mgx_build_with(n, &mgx_op_mul, mgx_build_sub(n, high, low), c->last);
    struct mgx_ins *step = mgx_build_with(n, &mgx_op_div, length, (double)(c->size - 1));
    return mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, low, c->last),
                         mgx_build_mul(n, step, line));
}

static struct side side_of(struct mgx_node *n, struct mgx_ins *boxes, const struct cut *c)
{
    struct mgx_ins *places = places_of(n, boxes, c);
    struct mgx_ins *below = mgx_build_less(n, places, mgx_build_like(n, places, 0));
    struct mgx_ins *above = mgx_build_greater(n, places, mgx_build_like(n, places, c->last));
    struct mgx_ins *inside = mgx_build_not(n, mgx_build_logical_or(n, below, above));
    if (c->nearest)
        places = mgx_build_floor(n, mgx_build_with(n, &mgx_op_add, places, 0.5));
    const double scale = c->last > 0 ? 2 / c->last : 0; // to places from -1 to 1
    places = mgx_build_with(n, &mgx_op_sub, mgx_build_with(n, &mgx_op_mul, places, scale), 1);
    return (struct side){places, inside};
}

// {n, size} as {n, size, 1} or {n, 1, size}.
static struct mgx_ins *stretch(struct mgx_node *n, struct mgx_ins *x, int64_t axis)
{
    return mgx_build_unsqueeze(n, x, &axis, 1);
}

// The innermost axis first: {n, height, width, 2}.
static struct mgx_ins *grid_of(struct mgx_node *n, const struct side *y, const struct side *x)
{
    struct mgx_ins *v[2] = {stretch(n, x->places, 1), stretch(n, y->places, 2)};
    if (!v[0] || !v[1] || mgx_build_broadcast(n, v, 2) != MGX_OK)
        return NULL;
    for (int i = 0; i < 2; i++)
        v[i] = mgx_build_unsqueeze(n, v[i], (int64_t[]){3}, 1);
    return mgx_build_concat(n, 3, v, 2);
}

static enum mgx_status require_operands(struct mgx_node *n, struct mgx_ints size)
{
    if (mgx_build_rank(n->in[0]) != 4 || mgx_build_rank(n->in[1]) != 2 || size.count != 2 ||
        size.v[0] < 1 || size.v[1] < 1)
        return mgx_node_invalid(n, "an image of rank %d, boxes of rank %d, %d sizes",
                                mgx_build_rank(n->in[0]), mgx_build_rank(n->in[1]), size.count);
    if (!mgx_build_fixed_dim(n->in[0], 1) || !mgx_build_fixed_dim(n->in[0], 2))
        return mgx_node_unsupported(n, "an image whose lengths are known at run time only");
    return MGX_OK;
}

static struct mgx_ins *sample(struct mgx_node *n, struct mgx_ins *images, struct mgx_ins *grid,
                              bool nearest)
{
    return mgx_build_emit(n, &mgx_op_grid_sample,
                          MGX_ATTRS(mgx_text("mode", nearest ? "nearest" : "linear"),
                                    mgx_text("padding_mode", "border"),
                                    mgx_int("align_corners", 1)),
                          MGX_IN(images, grid));
}

static enum mgx_status crop_and_resize(struct mgx_node *n)
{
    struct mgx_ints size;
    TRY(mgx_node_need(n, 4, 4));
    TRY(mgx_tf_need_ints(n, 3, "crop_size", &size));
    const char *method = mgx_tf_text(n, "method", "bilinear");
    const bool nearest = strcmp(method, "nearest") == 0;
    if (!nearest && strcmp(method, "bilinear") != 0)
        return mgx_node_invalid(n, "method is \"%.40s\"", method);
    TRY(require_operands(n, size));
    const struct mgx_shape *image = &n->in[0]->shape;
    const struct cut down = {0, 2, (double)(image->lens[1] - 1), size.v[0], nearest};
    const struct cut along = {1, 3, (double)(image->lens[2] - 1), size.v[1], nearest};
    struct mgx_ins *images = mgx_build_convert(n, n->in[0], MGX_FLOAT);
    images = mgx_tf_to_channels_first(n, mgx_build_gather(n, images, n->in[2], 0), true);
    const struct side y = side_of(n, n->in[1], &down), x = side_of(n, n->in[1], &along);
    struct mgx_ins *crops = sample(n, images, grid_of(n, &y, &x), nearest);
    crops = mgx_tf_from_channels_first(n, crops, true);
    struct mgx_ins *inside =
        mgx_build_logical_and(n, stretch(n, y.inside, 2), stretch(n, x.inside, 1));
    const double outside = mgx_tf_real(n, "extrapolation_value", 0);
    n->out[0] = mgx_build_where(n, mgx_build_unsqueeze(n, inside, (int64_t[]){3}, 1), crops,
                                mgx_build_scalar(n, MGX_FLOAT, outside));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_crop_and_resize = {.name = "CropAndResize",
                                                 .import = crop_and_resize};
