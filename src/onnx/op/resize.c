// SPDX-License-Identifier: MIT
// Resize and Upsample. Opset 10 and Upsample know only places x / scale, rounded down; opset 11
// brings the coordinate modes, 18 axes, antialiasing and kept aspect ratios.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

struct resize {
    const char *mode, *nearest, *coordinates;
    double cubic, outside;
    bool antialias, exclude;
    int rank;
    int64_t sizes[MGX_MAX_RANK];
    double scales[MGX_MAX_RANK], roi[2 * MGX_MAX_RANK];
    bool has_sizes, has_scales, has_roi;
    struct mgx_ins *target; // sizes or scales that are not constant
};

static struct mgx_ins *emit(struct mgx_node *n, const struct resize *r)
{
    assert(r->rank >= 0 && r->rank <= MGX_MAX_RANK && !(r->target && r->has_sizes));
    struct mgx_ins *in[2] = {n->in[0], r->target};
    return mgx_build_emit_n(
        n, &mgx_op_resize,
        MGX_ATTRS(mgx_reals("scales", r->scales, r->has_scales ? r->rank : 0),
                  mgx_ints("sizes", r->sizes, r->has_sizes ? r->rank : 0),
                  mgx_text("nearest_mode", r->nearest), mgx_text("mode", r->mode),
                  mgx_text("coordinate_transformation_mode", r->coordinates),
                  mgx_real("cubic_coeff_a", r->cubic),
                  mgx_reals("roi", r->roi, r->has_roi ? 2 * r->rank : 0),
                  mgx_int("antialias", r->antialias), mgx_int("exclude_outside", r->exclude),
                  mgx_real("extrapolation_value", r->outside)),
        in, r->target ? 2 : 1);
}

// An input of `per_axis` numbers for each of the axes into an array with entries for all of them.
static enum mgx_status read_axes(struct mgx_node *n, int i, const int64_t *axes, int count,
                                 int per_axis, int rank, double *out, bool *known)
{
    assert(count >= 0 && count <= rank && (per_axis == 1 || per_axis == 2));
    const struct mgx_tensor *t = mgx_node_constant(n, i);
    *known = t != NULL;
    if (!t)
        return MGX_OK;
    if (!mgx_type_is_number(t->shape.type) || mgx_shape_elements(&t->shape) != per_axis * count)
        return mgx_node_invalid(n, "input %d has %lld numbers for %d axes", i,
                                (long long)mgx_shape_elements(&t->shape), count);
    double values[2 * MGX_MAX_RANK];
    mgx_tensor_to_doubles(t, values);
    for (int part = 0; part < per_axis; part++)
        for (int k = 0; k < count; k++)
            out[part * rank + axes[k]] = values[part * count + k];
    return MGX_OK;
}

static bool is_given(struct mgx_node *n, int i)
{
    const struct mgx_ins *x = mgx_node_in(n, i);
    return x && !(mgx_build_is_static(x) && mgx_shape_elements(&x->shape) == 0);
}

// Sizes under a policy: one scale for all the axes, the least or the largest that was asked for.
static void keep_aspect(struct mgx_node *n, struct resize *r, const int64_t *axes, int count,
                        bool larger)
{
    assert(r->has_sizes && mgx_build_is_static(n->in[0]));
    const int64_t *lens = n->in[0]->shape.lens;
    double scale = larger ? 0 : INFINITY;
    for (int i = 0; i < count; i++) {
        const double s = (double)r->sizes[axes[i]] / (double)mgx_max_i64(lens[axes[i]], 1);
        scale = larger ? fmax(scale, s) : fmin(scale, s);
    }
    bool exact = true; // do the scales give the same lengths, which they round down?
    for (int i = 0; i < count; i++) {
        r->scales[axes[i]] = (float)scale;
        r->sizes[axes[i]] = (int64_t)floor(scale * (double)lens[axes[i]] + 0.5);
        exact &= r->sizes[axes[i]] == (int64_t)floorf((float)scale * (float)lens[axes[i]]);
    }
    r->has_scales = exact;
    r->has_sizes = !exact;
}

static enum mgx_status read_sizes(struct mgx_node *n, struct resize *r, int i, const int64_t *axes,
                                  int count, bool *later)
{
    bool known = false;
    double values[MGX_MAX_RANK];
    const char *policy = mgx_onnx_text(n, "keep_aspect_ratio_policy", "stretch");
    const bool stretch = strcmp(policy, "stretch") == 0;
    if (!stretch && strcmp(policy, "not_larger") != 0 && strcmp(policy, "not_smaller") != 0)
        return mgx_node_invalid(n, "keep_aspect_ratio_policy is \"%s\"", policy);
    for (int k = 0; k < r->rank; k++)
        values[k] = (double)n->in[0]->shape.lens[k];
    TRY(read_axes(n, i, axes, count, 1, r->rank, values, &known));
    if (!known || count < r->rank || !stretch)
        *later |= !known ? count < r->rank || !stretch : !mgx_build_is_static(n->in[0]);
    if (*later)
        return MGX_OK;
    if (!known) {
        r->target = n->in[i];
        return MGX_OK;
    }
    for (int k = 0; k < r->rank; k++) {
        if (!(values[k] >= 0 && values[k] <= (double)MGX_DIM_ANY))
            return mgx_node_invalid(n, "size %g of axis %d", values[k], k);
        r->sizes[k] = (int64_t)values[k];
    }
    r->has_sizes = true;
    if (!stretch)
        keep_aspect(n, r, axes, count, strcmp(policy, "not_smaller") == 0);
    return MGX_OK;
}

static enum mgx_status read_target(struct mgx_node *n, struct resize *r, int scales, int sizes,
                                   const int64_t *axes, int count, bool *later)
{
    bool known = false;
    for (int i = 0; i < MGX_MAX_RANK; i++)
        r->scales[i] = 1;
    if (sizes >= 0 && is_given(n, sizes))
        return read_sizes(n, r, sizes, axes, count, later);
    if (!is_given(n, scales))
        return mgx_node_invalid(n, "neither scales nor sizes given");
    if (n->in[scales]->shape.type != MGX_FLOAT)
        return mgx_node_invalid(n, "scales are %s, not float_type",
                                mgx_type_name(n->in[scales]->shape.type));
    TRY(read_axes(n, scales, axes, count, 1, r->rank, r->scales, &known));
    r->has_scales = known;
    if (!known && count < r->rank)
        *later = true;
    else if (!known)
        r->target = n->in[scales];
    return MGX_OK;
}

static enum mgx_status resize_11(struct mgx_node *n, struct resize *r, bool *later)
{
    struct mgx_ints given = mgx_onnx_ints(n, "axes");
    int64_t axes[MGX_MAX_RANK];
    int count = r->rank;
    for (int i = 0; i < r->rank; i++)
        axes[i] = i;
    if (given.count) {
        TRY(mgx_build_axes(n, given, r->rank, axes));
        count = given.count;
    }
    r->mode = mgx_onnx_text(n, "mode", "nearest");
    r->nearest = mgx_onnx_text(n, "nearest_mode", "round_prefer_floor");
    r->coordinates = mgx_onnx_text(n, "coordinate_transformation_mode", "half_pixel");
    r->cubic = mgx_onnx_real(n, "cubic_coeff_a", -0.75);
    r->outside = mgx_onnx_real(n, "extrapolation_value", 0);
    r->antialias = mgx_onnx_int(n, "antialias", 0) != 0;
    r->exclude = mgx_onnx_int(n, "exclude_outside", 0) != 0;
    if (strcmp(r->coordinates, "tf_crop_and_resize") == 0) {
        for (int i = 0; i < r->rank; i++)
            r->roi[r->rank + i] = 1;
        if (!is_given(n, 1))
            return mgx_node_invalid(n, "tf_crop_and_resize without roi");
        TRY(read_axes(n, 1, axes, count, 2, r->rank, r->roi, &r->has_roi));
        *later |= !r->has_roi;
    }
    return read_target(n, r, 2, 3, axes, count, later);
}

// Places are x / scale, rounded down.
static struct resize plain(struct mgx_node *n)
{
    const char *mode = mgx_onnx_text(n, "mode", "nearest");
    return (struct resize){.mode = strcmp(mode, "nearest") == 0 ? mode : "linear",
                           .nearest = "floor",
                           .coordinates = "asymmetric",
                           .cubic = -0.75,
                           .rank = mgx_build_rank(n->in[0])};
}

static enum mgx_status by_scales(struct mgx_node *n, int input)
{
    struct resize r = plain(n);
    int64_t axes[MGX_MAX_RANK];
    bool later = false;
    for (int i = 0; i < r.rank; i++)
        axes[i] = i;
    TRY(read_target(n, &r, input, -1, axes, r.rank, &later));
    n->out[0] = emit(n, &r);
    return MGX_OK;
}

static enum mgx_status resize(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, n->opset < 11 ? 2 : 4));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    if (n->opset < 11)
        return by_scales(n, 1);
    struct resize r = {.rank = mgx_build_rank(n->in[0])};
    bool later = false;
    TRY(resize_11(n, &r, &later));
    if (later)
        return mgx_onnx_defer(n);
    n->out[0] = emit(n, &r);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_resize = {.name = "Resize", .import = resize};

// Where the scales are: input 1, or behind an empty place for the roi of later versions input 2.
static int scales_input(struct mgx_node *n)
{
    return is_given(n, 1) || n->in_count < 3 ? 1 : 2;
}

// Scales as attributes height_scale and width_scale (opset 1), scales (7), an input (9); newer
// models have the older places too.
static enum mgx_status upsample(struct mgx_node *n)
{
    const bool listed = mgx_onnx_has(n, "scales");
    TRY(mgx_node_need(n, 1, 3));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    if (is_given(n, scales_input(n)) || (n->opset >= 9 && !listed))
        return by_scales(n, scales_input(n));
    struct resize r = plain(n);
    r.has_scales = true;
    for (int i = 0; i < r.rank; i++)
        r.scales[i] = 1;
    const struct mgx_doubles scales = mgx_onnx_reals(n, "scales");
    if ((n->opset >= 7 || listed) && scales.count != r.rank)
        return mgx_node_invalid(n, "%d scales for rank %d", scales.count, r.rank);
    if (!listed && n->opset < 7 && r.rank != 4)
        return mgx_node_invalid(n, "input has rank %d, not 4", r.rank);
    for (int i = 0; listed && i < r.rank; i++)
        r.scales[i] = scales.v[i];
    if (!listed) {
        r.scales[2] = mgx_onnx_real(n, "height_scale", 1);
        r.scales[3] = mgx_onnx_real(n, "width_scale", 1);
    }
    n->out[0] = emit(n, &r);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_upsample = {.name = "Upsample", .import = upsample};
