// SPDX-License-Identifier: MIT
// resize: another number of elements along any axes, by the nearest element or by linear or cubic
// interpolation (ONNX Resize).
//
// Sizes or scales come as attributes, or as a second input (integers are sizes, floats scales); one
// entry per axis. Every output index has a place in the input, by coordinate_transformation_mode,
// and along each axis a few inputs with weights; axes are interpolated one after the other. Sizes
// keep the ratio exact, so that places do not suffer from a rounded scale. roi (attribute or third
// input, all starts, then all ends) counts in mode tf_crop_and_resize alone, which reads
// extrapolation_value outside.
#include "op/reference/resize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

static const struct mgx_field fields[] = {
    MGX_REALS(struct mgx_resize, scales),
    MGX_INTS(struct mgx_resize, sizes),
    MGX_TEXT(struct mgx_resize, nearest_mode),
    MGX_TEXT(struct mgx_resize, mode),
    MGX_TEXT(struct mgx_resize, coordinate_transformation_mode),
    MGX_REAL(struct mgx_resize, cubic_coeff_a),
    MGX_REALS(struct mgx_resize, roi),
    MGX_FLAG(struct mgx_resize, antialias),
    MGX_FLAG(struct mgx_resize, exclude_outside),
    MGX_REAL(struct mgx_resize, extrapolation_value),
    {0}};
static const struct mgx_resize defaults = {.nearest_mode = "floor",
                                           .mode = "nearest",
                                           .coordinate_transformation_mode = "half_pixel",
                                           .cubic_coeff_a = -0.75};

// --- shape ---

static enum mgx_status check_attr(struct mgx_shape_call *c, const struct mgx_resize *a)
{
    struct mgx_resize_how how;
    const char *wrong;
    if (mgx_resize_how_find(a, c->in[0]->type, &how, &wrong))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: mode \"%s\" is unknown", c->op->name, wrong);
}

// Values of a float input as doubles, rounded as they are; v NULL when unknown.
static enum mgx_status known_reals(struct mgx_shape_call *c, int input, struct mgx_doubles *out)
{
    *out = (struct mgx_doubles){0};
    const struct mgx_tensor *value = c->values ? c->values[input] : NULL;
    if (!value)
        return MGX_OK;
    const int64_t count = mgx_shape_elements(&value->shape);
    double *v = MGX_NEW_ARRAY(c->arena, double, count);
    if (!v || count > INT32_MAX)
        return mgx_fail_memory(c->diag);
    mgx_tensor_to_doubles(value, v);
    *out = (struct mgx_doubles){v, (int)count};
    return MGX_OK;
}

static enum mgx_status check_count(struct mgx_shape_call *c, const char *what, int count, int want)
{
    if (count == want)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: %d %s for an input of rank %d", c->op->name, count,
                    what, c->in[0]->rank);
}

static enum mgx_status size_axis(struct mgx_shape_call *c, int64_t size, struct mgx_dim *d)
{
    if (size < 0 || (size > 0 && d->max == 0))
        return mgx_fail(c->diag, MGX_INVALID, "%s: cannot make size %" PRId64 " of length %" PRId64,
                        c->op->name, size, d->max);
    *d = (struct mgx_dim){.min = size, .max = size};
    return MGX_OK;
}

// floor(length * part * scale), computed in float as every other implementation does.
static enum mgx_status scale_axis(struct mgx_shape_call *c, double scale, double part,
                                  struct mgx_dim *d)
{
    if (!(scale > 0 && scale < 0x1p31) || !(part >= 0 && part < 0x1p31))
        return mgx_fail(c->diag, MGX_INVALID, "%s: scale %g is out of range", c->op->name, scale);
    const float s = (float)scale, p = (float)part;
    const float min = floorf(p == 1 ? s * (float)d->min : s * ((float)d->min * p));
    const float max = floorf(p == 1 ? s * (float)d->max : s * ((float)d->max * p));
    const bool keeps = s == 1 && p == 1;
    if (d->min == d->max && !(max < 0x1p62f))
        return mgx_fail(c->diag, MGX_INVALID, "%s: scale %g makes length %" PRId64 " too long",
                        c->op->name, scale, d->max);
    if (!keeps)
        *d =
            (struct mgx_dim){.min = min < 0x1p40f ? (int64_t)min : MGX_DIM_ANY,
                             .max = d->min == d->max || max < 0x1p40f ? (int64_t)max : MGX_DIM_ANY};
    return MGX_OK;
}

// Where the numbers come from: input 1, else the attributes.
static enum mgx_status find_target(struct mgx_shape_call *c, bool *known, struct mgx_ints *sizes,
                                   struct mgx_doubles *scales)
{
    const struct mgx_resize *a = c->attr;
    *known = true;
    *sizes = a->sizes;
    *scales = a->scales;
    if (c->in_count > 1 && !mgx_shape_is_absent(c->in[1])) {
        TRY(mgx_require_rank(c, 1, 1, 1));
        *sizes = (struct mgx_ints){0};
        *scales = (struct mgx_doubles){0};
        if (mgx_type_is_integral(c->in[1]->type))
            return mgx_known_ints(c, 1, known, sizes);
        TRY(mgx_require_float(c, 1));
        *known = c->values && c->values[1];
        return known_reals(c, 1, scales);
    }
    if ((sizes->count == 0) == (scales->count == 0) && c->in[0]->rank > 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: one and only one of sizes (%d) or scales (%d) must be given",
                        c->op->name, sizes->count, scales->count);
    return MGX_OK;
}

// Part of each axis that roi covers, 1 where it does not count.
static enum mgx_status find_parts(struct mgx_shape_call *c, bool *known, double *parts)
{
    const struct mgx_resize *a = c->attr;
    const int rank = c->in[0]->rank;
    struct mgx_doubles roi = a->roi;
    *known = true;
    for (int i = 0; i < rank; i++)
        parts[i] = 1;
    if (strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") != 0)
        return MGX_OK;
    if (c->in_count > 2 && !mgx_shape_is_absent(c->in[2])) {
        TRY(mgx_require_float(c, 2));
        *known = c->values && c->values[2];
        if (!*known)
            return MGX_OK;
        TRY(known_reals(c, 2, &roi));
    }
    TRY(check_count(c, "numbers of roi", roi.count, 2 * rank));
    for (int i = 0; i < rank; i++)
        parts[i] = roi.v[rank + i] - roi.v[i];
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    const int rank = x->rank;
    bool known, roi_known;
    struct mgx_ints sizes;
    struct mgx_doubles scales;
    double parts[MGX_MAX_RANK];
    TRY(mgx_require_number(c, 0));
    TRY(check_attr(c, c->attr));
    TRY(find_target(c, &known, &sizes, &scales));
    TRY(find_parts(c, &roi_known, parts));
    struct mgx_dim *dims = mgx_edit_dims(c, x, rank);
    if (!dims)
        return MGX_NO_MEMORY;
    if (known && sizes.count > 0)
        TRY(check_count(c, "sizes", sizes.count, rank));
    else if (known)
        TRY(check_count(c, "scales", scales.count, rank));
    for (int i = 0; i < rank; i++) {
        if (known && sizes.count > 0)
            TRY(size_axis(c, sizes.v[i], &dims[i]));
        else if (known && roi_known)
            TRY(scale_axis(c, scales.v[i], parts[i], &dims[i]));
        else
            dims[i] = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    }
    *out = mgx_shape_from_dims(x->type, rank, dims);
    return MGX_OK;
}

// --- compute ---

// Scale and roi of every axis, from inputs or attributes.
static enum mgx_status find_axes(struct mgx_compute_call *c, struct mgx_resize_axis *axes)
{
    const struct mgx_resize *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape;
    const bool has_target = c->in_count > 1 && !mgx_shape_is_absent(&c->in[1]->shape);
    const bool crops = strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") == 0;
    const bool has_roi = crops && c->in_count > 2 && !mgx_shape_is_absent(&c->in[2]->shape);
    const double *scales = a->scales.count ? a->scales.v : NULL, *roi = a->roi.v;
    if (has_target) {
        scales = mgx_type_is_float(c->in[1]->shape.type) ? mgx_scratch_doubles(c, c->in[1]) : NULL;
        if (!scales && mgx_type_is_float(c->in[1]->shape.type))
            return MGX_NO_MEMORY;
    }
    if (has_roi && !(roi = mgx_scratch_doubles(c, c->in[2])))
        return MGX_NO_MEMORY;
    for (int i = 0; i < x->rank; i++) {
        axes[i] = (struct mgx_resize_axis){.in = x->lens[i], .out = c->out->shape.lens[i]};
        axes[i].up = scales ? (float)scales[i] : (double)axes[i].out;
        axes[i].down = scales ? 1 : (double)axes[i].in;
        if (crops) {
            axes[i].start = roi[i];
            axes[i].end = roi[x->rank + i];
            axes[i].up *= scales ? axes[i].end - axes[i].start : 1;
        }
    }
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_resize *a = c->attr;
    struct mgx_resize_how how;
    const char *wrong;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    if (!mgx_resize_how_find(a, c->in[0]->shape.type, &how, &wrong))
        return mgx_fail(c->diag, MGX_INVALID, "%s: mode \"%s\" is unknown", c->op->name, wrong);
    struct mgx_resize_axis *axes = MGX_NEW_ARRAY(c->scratch, struct mgx_resize_axis, MGX_MAX_RANK);
    if (!axes)
        return mgx_fail_memory(c->diag);
    TRY(find_axes(c, axes));
    return mgx_resize_run(c, &how, axes);
}

const struct mgx_op mgx_op_resize = {
    .name = "resize",
    .meaning = "y = x with other lengths, by nearest, linear or cubic interpolation",
    .fields = fields,
    .attr_size = sizeof(struct mgx_resize),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 3,
    .flags = MGX_OP_CHANNELS_LAST_4D,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_rest,
};
