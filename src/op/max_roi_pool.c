// SPDX-License-Identifier: MIT
// max_roi_pool: regions of interest, rounded to elements, cut into bins, each its maximum (ONNX
// MaxRoiPool).
//
//     x {n, c, h, w}, rois {r, 5} as batch x1 y1 x2 y2  ->  y {r, c, output_height, output_width}
//
// A region is at least one element wide; bins outside of x are 0.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct max_roi_pool {
    int64_t output_height, output_width;
    double spatial_scale;
};

static const struct mgx_field fields[] = {MGX_INT(struct max_roi_pool, output_height),
                                          MGX_INT(struct max_roi_pool, output_width),
                                          MGX_REAL(struct max_roi_pool, spatial_scale),
                                          {0}};
static const struct max_roi_pool defaults = {
    .output_height = 1, .output_width = 1, .spatial_scale = 1};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct max_roi_pool *a = c->attr;
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_rank(c, 0, 4, 4));
    TRY(mgx_require_rank(c, 1, 2, 2));
    if (a->output_height < 1 || a->output_height > INT32_MAX || a->output_width < 1 ||
        a->output_width > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: output of %" PRId64 " by %" PRId64 " is out of range", c->op->name,
                        a->output_height, a->output_width);
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(mgx_require_fixed(c, 1, 1, 5));
    dims[0] = mgx_shape_dim(c->in[1], 0);
    dims[2] = (struct mgx_dim){.min = a->output_height, .max = a->output_height};
    dims[3] = (struct mgx_dim){.min = a->output_width, .max = a->output_width};
    *out = mgx_shape_from_dims(c->in[0]->type, 4, dims);
    return MGX_OK;
}

struct span { // one axis of a region
    double start, bin;
    int64_t length;
};

static struct span find_span(double from, double to, int64_t bins, int64_t length)
{
    assert(bins > 0 && length > 0);
    const double width = fmax(round(to) - round(from) + 1, 1);
    return (struct span){round(from), width / (double)bins, length};
}

// Elements first .. *last of bin i, inside the axis.
static int64_t bin_range(const struct span *s, int64_t i, int64_t *last)
{
    assert(i >= 0 && last);
    const double n = (double)s->length;
    const double low = s->start + floor((double)i * s->bin);
    const double high = s->start + ceil((double)(i + 1) * s->bin);
    *last = (int64_t)fmin(fmax(high, 0), n); // fmin and fmax make 0 or n of a NaN
    return (int64_t)fmin(fmax(low, 0), n);
}

static double largest(const struct span *v, const struct span *h, int64_t i, int64_t j,
                      const double *x)
{
    int64_t bottom, right;
    const int64_t top = bin_range(v, i, &bottom), left = bin_range(h, j, &right);
    if (top >= bottom || left >= right)
        return 0;
    double best = x[top * h->length + left];
    for (int64_t r = top; r < bottom; r++)
        for (int64_t k = left; k < right; k++) {
            const double e = x[r * h->length + k];
            best = e > best || isnan(e) ? e : best;
        }
    return best;
}

static void pool_roi(const struct mgx_compute_call *c, const double *roi, const double *x,
                     double *y)
{
    const struct max_roi_pool *a = c->attr;
    const int64_t *lens = c->in[0]->shape.lens;
    const double scale = a->spatial_scale;
    const struct span v = find_span(roi[2] * scale, roi[4] * scale, a->output_height, lens[2]);
    const struct span h = find_span(roi[1] * scale, roi[3] * scale, a->output_width, lens[3]);
    for (int64_t k = 0; k < lens[1]; k++, x += lens[2] * lens[3])
        for (int64_t i = 0; i < a->output_height; i++)
            for (int64_t j = 0; j < a->output_width; j++)
                *y++ = largest(&v, &h, i, j, x);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const int64_t count = mgx_shape_elements(&c->out->shape), rois = c->out->shape.lens[0];
    if (count == 0)
        return MGX_OK;
    const double *from = mgx_scratch_doubles(c, c->in[0]), *roi = mgx_scratch_doubles(c, c->in[1]);
    double *y = MGX_NEW_ARRAY(c->scratch, double, count);
    if (!from || !roi || !y)
        return mgx_fail_memory(c->diag);
    for (int64_t r = 0; r < rois; r++, roi += 5) {
        if (!(roi[0] >= 0 && roi[0] < (double)x->lens[0]))
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: batch index %g is out of range for %" PRId64 " images",
                            c->op->name, roi[0], x->lens[0]);
        pool_roi(c, roi, from + (int64_t)roi[0] * x->lens[1] * x->lens[2] * x->lens[3],
                 y + r * (count / rois));
    }
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_max_roi_pool = {
    .name = "max_roi_pool",
    .meaning = "y[r] = maxima of bins of region rois[r] of x",
    .fields = fields,
    .attr_size = sizeof(struct max_roi_pool),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 2,
    .shape = shape,
    .compute = compute,
};
