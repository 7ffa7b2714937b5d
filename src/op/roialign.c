// SPDX-License-Identifier: MIT
// roialign: regions of interest cut into bins, each the average or maximum of samples in it, taken
// between elements (ONNX RoiAlign).
//
//     x {n, c, h, w}, rois {r, 4} as x1 y1 x2 y2, batch {r}
//         ->  y {r, c, output_height, output_width}
//
// The maximum is over the weighted corners of every sample, not over samples, which is what ONNX's
// reference and every other implementation compute. A region that would need more than
// MGX_ROI_SAMPLES_MAX samples a bin is refused: its size comes from data.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/reference/roi.h"

static const char *const modes[] = {"average", "max", NULL};
static const struct mgx_field fields[] = {
    MGX_TEXT(struct mgx_roialign, coordinate_transformation_mode),
    MGX_ENUM(struct mgx_roialign, mode, modes),
    MGX_INT(struct mgx_roialign, output_height),
    MGX_INT(struct mgx_roialign, output_width),
    MGX_INT(struct mgx_roialign, sampling_ratio),
    MGX_REAL(struct mgx_roialign, spatial_scale),
    {0}};
static const struct mgx_roialign defaults = {.coordinate_transformation_mode = "half_pixel",
                                             .output_height = 1,
                                             .output_width = 1,
                                             .spatial_scale = 1};

// --- shape ---

static enum mgx_status check_attr(struct mgx_shape_call *c)
{
    const struct mgx_roialign *a = c->attr;
    const char *how = a->coordinate_transformation_mode;
    if (strcmp(how, "half_pixel") != 0 && strcmp(how, "output_half_pixel") != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: coordinate_transformation_mode \"%s\" is unknown", c->op->name, how);
    if (a->mode != MGX_ROI_AVERAGE && a->mode != MGX_ROI_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: mode %" PRId64 " is unknown", c->op->name,
                        a->mode);
    if (a->output_height < 1 || a->output_height > INT32_MAX || a->output_width < 1 ||
        a->output_width > INT32_MAX || a->sampling_ratio < 0 ||
        a->sampling_ratio > MGX_ROI_SAMPLES_MAX)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: output of %" PRId64 " by %" PRId64 " with sampling_ratio %" PRId64
                        " is out of range",
                        c->op->name, a->output_height, a->output_width, a->sampling_ratio);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_roialign *a = c->attr;
    TRY(check_attr(c));
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_integral(c, 2));
    TRY(mgx_require_rank(c, 0, 4, 4));
    TRY(mgx_require_rank(c, 1, 2, 2));
    TRY(mgx_require_rank(c, 2, 1, 1));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[0] = mgx_shape_dim(c->in[1], 0);
    TRY(mgx_require_fixed(c, 1, 1, 4));
    TRY(mgx_require_length(c, 2, 0, &dims[0]));
    dims[2] = (struct mgx_dim){.min = a->output_height, .max = a->output_height};
    dims[3] = (struct mgx_dim){.min = a->output_width, .max = a->output_width};
    *out = mgx_shape_from_dims(c->in[0]->type, 4, dims);
    return MGX_OK;
}

// --- compute ---

static double pool(const struct mgx_roialign *a, const struct mgx_roi_span *v,
                   const struct mgx_roi_span *h, int64_t row, int64_t column, const double *x)
{
    double sum = 0, best = 0;
    bool first = true;
    for (int64_t i = 0; i < v->grid; i++) {
        const struct mgx_roi_pair y = mgx_roi_sample(v, row, i);
        const double *low = x + y.low * h->length, *high = x + y.high * h->length;
        for (int64_t j = 0; j < h->grid; j++, first = false) {
            const struct mgx_roi_pair z = mgx_roi_sample(h, column, j);
            const double corner[] = {y.low_weight * z.low_weight * low[z.low],
                                     y.low_weight * z.high_weight * low[z.high],
                                     y.high_weight * z.low_weight * high[z.low],
                                     y.high_weight * z.high_weight * high[z.high]};
            for (int k = 0; k < 4; k++) {
                sum += corner[k];
                best = corner[k] > best || (first && k == 0) ? corner[k] : best;
            }
        }
    }
    return a->mode == MGX_ROI_MAX ? best : sum / (double)mgx_max_i64(v->grid * h->grid, 1);
}

static enum mgx_status find_span(struct mgx_compute_call *c, double from, double to, int64_t bins,
                                 int64_t length, struct mgx_roi_span *out)
{
    assert(bins > 0);
    const bool single = c->in[1]->shape.type != MGX_DOUBLE;
    if (!mgx_roi_span_init(out, c->attr, single, from, to, bins, length))
        return mgx_fail(c->diag, MGX_INVALID, "%s: roi from %g to %g is out of range", c->op->name,
                        from, to);
    return MGX_OK;
}

static enum mgx_status pool_roi(struct mgx_compute_call *c, const double *roi, const double *x,
                                double *y)
{
    const struct mgx_roialign *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape;
    struct mgx_roi_span v, h;
    TRY(find_span(c, roi[1], roi[3], a->output_height, s->lens[2], &v));
    TRY(find_span(c, roi[0], roi[2], a->output_width, s->lens[3], &h));
    if (v.grid * h.grid > MGX_ROI_SAMPLES_MAX)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: roi asks for %" PRId64 " samples a bin",
                        c->op->name, v.grid * h.grid);
    for (int64_t k = 0; k < s->lens[1]; k++, x += s->lens[2] * s->lens[3])
        for (int64_t i = 0; i < a->output_height; i++)
            for (int64_t j = 0; j < a->output_width; j++)
                *y++ = pool(a, &v, &h, i, j, x);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const int64_t count = mgx_shape_elements(&c->out->shape), rois = c->out->shape.lens[0];
    if (count == 0)
        return MGX_OK;
    if (mgx_shape_elements(x) == 0)
        return mgx_fail(c->diag, MGX_INVALID, "%s: there is nothing to sample", c->op->name);
    const double *from = mgx_scratch_doubles(c, c->in[0]), *roi = mgx_scratch_doubles(c, c->in[1]);
    const int64_t *batch = mgx_scratch_ints(c, c->in[2]);
    double *y = MGX_NEW_ARRAY(c->scratch, double, count);
    if (!from || !roi || !batch || !y)
        return mgx_fail_memory(c->diag);
    for (int64_t r = 0; r < rois; r++) {
        if (batch[r] < 0 || batch[r] >= x->lens[0])
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: batch index %" PRId64 " is out of range for %" PRId64 " images",
                            c->op->name, batch[r], x->lens[0]);
        TRY(pool_roi(c, roi + 4 * r, from + batch[r] * x->lens[1] * x->lens[2] * x->lens[3],
                     y + r * (count / rois)));
    }
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_roialign = {
    .name = "roialign",
    .meaning = "y[r] = bins of region rois[r] of x[batch[r]], sampled between elements",
    .fields = fields,
    .attr_size = sizeof(struct mgx_roialign),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 3,
    .flags = MGX_OP_CHANNELS_LAST_4D,
    .shape = shape,
    .compute = compute,
};
