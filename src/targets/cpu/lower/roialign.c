// SPDX-License-Identifier: MIT
// roialign over channels-last images.
//
// Where samples lie is the reference's own arithmetic (op/reference/roi.h). The corners of a bin's
// samples become a list of pixels with weights, summed vectors of channels at a time; regions are
// dealt to threads. Cost: four multiply-adds per sample and channel.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/roi.h"
#include "targets/cpu/kernel/image/taps.h"
#include "targets/cpu/lower/lower.h"

enum { TAPS = 256 }; // four per sample

struct roialign {
    const struct mgx_roialign *attr;
    mgx_tap_pixel pixel;
    bool wide; // indices are int64
    int64_t rois, images, channels, height, width;
    int64_t x_batch, x_row, x_col, y_roi, y_row, y_col;
    int tasks;
};

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *rois = &c->in[1], *at = &c->in[2], *y = c->out;
    if (x->type != MGX_FLOAT || rois->type != MGX_FLOAT || !mgx_shape_elements(x) ||
        !mgx_shape_elements(y) || (at->type != MGX_INT64 && at->type != MGX_INT32))
        return mgx_plan_unfit(c, "not float, empty, or indices of another type");
    if ((y->strides[1] != 1 && y->lens[1] != 1) || (x->strides[1] != 1 && x->lens[1] != 1) ||
        !mgx_shape_is_standard(rois) || !mgx_shape_is_standard(at)) {
        c->why = "channels are not contiguous, or regions not row-major";
        c->want_in[0] = MGX_PLAN_LIKE_RESULT;
        c->want_in[1] = c->want_in[2] = MGX_PLAN_ROW_MAJOR;
        return false;
    }
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_roialign || !suits(c))
        return mgx_plan_refuse(c);
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    struct roialign *r = MGX_NEW(c->arena, struct roialign);
    if (!r)
        return mgx_plan_no_memory(c);
    *r = (struct roialign){.attr = c->ins->attr,
                           .pixel = mgx_tap_kernel(cpu_offered(c)->isa)->run,
                           .wide = c->in[2].type == MGX_INT64,
                           .rois = y->lens[0],
                           .images = x->lens[0],
                           .channels = x->lens[1],
                           .height = x->lens[2],
                           .width = x->lens[3],
                           .x_batch = x->strides[0],
                           .x_row = x->strides[2],
                           .x_col = x->strides[3],
                           .y_roi = y->strides[0],
                           .y_row = y->strides[2],
                           .y_col = y->strides[3],
                           .tasks = (int)mgx_min_i64(y->lens[0], 8 * (int64_t)c->machine->threads)};
    c->detail = r->attr->mode == MGX_ROI_MAX ? "max" : "average";
    c->state = r;
    return MGX_PLAN_TAKEN;
}

static int64_t image_of(const struct roialign *r, const void *index, int64_t i)
{
    assert(i >= 0 && i < r->rois);
    return cpu_integer(index, r->wide, i);
}

static bool spans_of(const struct roialign *r, const float *roi, struct mgx_roi_span *v,
                     struct mgx_roi_span *h)
{
    const struct mgx_roialign *a = r->attr;
    return mgx_roi_span_init(v, a, true, roi[1], roi[3], a->output_height, r->height) &&
           mgx_roi_span_init(h, a, true, roi[0], roi[2], a->output_width, r->width) &&
           v->grid * h->grid <= MGX_ROI_SAMPLES_MAX;
}

// Corners of samples that wait to be summed.
struct taps {
    int64_t offset[TAPS];
    float weight[TAPS];
};

static void add_sample(const struct roialign *r, struct taps *t, int at, struct mgx_roi_pair p,
                       struct mgx_roi_pair q)
{
    assert(at + 4 <= TAPS && p.high < r->height && q.high < r->width);
    const int64_t rows[] = {p.low * r->x_row, p.high * r->x_row},
                  cols[] = {q.low * r->x_col, q.high * r->x_col};
    const double down[] = {p.low_weight, p.high_weight}, right[] = {q.low_weight, q.high_weight};
    for (int i = 0; i < 4; i++) {
        t->offset[at + i] = rows[i / 2] + cols[i % 2];
        t->weight[at + i] = (float)(down[i / 2] * right[i % 2]);
    }
}

static void sum_taps(const struct roialign *r, struct mgx_tap_args *a)
{
    r->pixel(a);
    a->count = 0;
    a->first = false;
}

// One bin: its samples in pieces of TAPS corners.
static void pool_bin(const struct roialign *r, const struct mgx_roi_span *v,
                     const struct mgx_roi_span *h, int64_t row, int64_t col, const float *x,
                     float *y)
{
    assert(row >= 0 && row < r->attr->output_height && col >= 0 && col < r->attr->output_width);
    struct taps taps;
    struct mgx_tap_args a = {.x = x,
                             .offset = taps.offset,
                             .weight = taps.weight,
                             .max = r->attr->mode == MGX_ROI_MAX && v->grid * h->grid > 0,
                             .first = true,
                             .divide = 1,
                             .y = y,
                             .channels = r->channels};
    for (int64_t i = 0; i < v->grid; i++) {
        const struct mgx_roi_pair p = mgx_roi_sample(v, row, i);
        for (int64_t j = 0; j < h->grid; j++, a.count += 4) {
            if (a.count == TAPS)
                sum_taps(r, &a);
            add_sample(r, &taps, a.count, p, mgx_roi_sample(h, col, j));
        }
    }
    if (!a.max)
        a.divide = (float)mgx_max_i64(v->grid * h->grid, 1);
    sum_taps(r, &a);
}

struct job {
    const struct roialign *r;
    const float *x, *rois;
    const void *index;
    float *y;
};

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct roialign *r = job->r;
    const int64_t end = r->rois * (task + 1) / r->tasks;
    for (int64_t i = r->rois * task / r->tasks; i < end; i++) {
        struct mgx_roi_span v, h;
        if (!spans_of(r, job->rois + 4 * i, &v, &h))
            continue; // cannot be: checked before
        const float *x = job->x + image_of(r, job->index, i) * r->x_batch;
        for (int64_t row = 0; row < r->attr->output_height; row++)
            for (int64_t col = 0; col < r->attr->output_width; col++)
                pool_bin(r, &v, &h, row, col, x,
                         job->y + i * r->y_roi + row * r->y_row + col * r->y_col);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct roialign *r = step->state;
    struct job job = {r, args->in[0], args->in[1], args->in[2], args->out};
    for (int64_t i = 0; i < r->rois; i++) {
        const int64_t image = image_of(r, job.index, i);
        const float *roi = job.rois + 4 * i;
        struct mgx_roi_span v, h;
        if (image < 0 || image >= r->images)
            return mgx_fail(diag, MGX_INVALID,
                            "roialign: batch index %" PRId64 " is out of range for %" PRId64
                            " images",
                            image, r->images);
        if (!spans_of(r, roi, &v, &h))
            return mgx_fail(diag, MGX_INVALID,
                            "roialign: roi %g, %g, %g, %g is out of range or asks for too many "
                            "samples",
                            (double)roi[0], (double)roi[1], (double)roi[2], (double)roi[3]);
    }
    mgx_pool_run(cpu_pool(args), r->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(roialign, 150)
const struct mgx_plan_kernel cpu_kernel_roialign = {
    .name = "roialign", .prepare = prepare, .run = run};
