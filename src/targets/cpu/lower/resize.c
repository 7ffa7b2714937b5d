// SPDX-License-Identifier: MIT
// resize of channels-last images by nearest or linear interpolation of height and width; nearest of
// bytes and of bfloat16 too.
//
// Where every output row and column reads from is a table made ahead of time, by the reference's
// own functions: a run copies or blends pixels, vectors of channels at a time.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/resize.h"
#include "targets/cpu/kernel/image/pool.h"
#include "targets/cpu/lower/lower.h"

struct place {
    int64_t first, second; // rows (columns) of the input
    float weight;          // of the second
};

struct resize {
    bool linear;
    int64_t size; // bytes of a value
    mgx_blend_pixel blend;
    struct place *rows, *cols;
    int64_t batch, height, width, channels, x_batch, x_row, x_col, y_batch, y_row, y_col;
    int tasks;
};

static int64_t clamp(double at, int64_t length)
{
    assert(length > 0);
    return at <= 0 ? 0 : at >= (double)(length - 1) ? length - 1 : (int64_t)at;
}

static struct place *make_table(struct mgx_plan_offer *c, const struct mgx_resize_how *how,
                                const struct mgx_resize *a, int axis)
{
    assert(axis == 2 || axis == 3);
    const struct mgx_resize_axis what = {.in = c->in[0].lens[axis],
                                         .out = c->out->lens[axis],
                                         .up = a->scales.count ? (double)(float)a->scales.v[axis]
                                                               : (double)c->out->lens[axis],
                                         .down = a->scales.count ? 1 : (double)c->in[0].lens[axis]};
    struct place *table = MGX_NEW_ARRAY(c->arena, struct place, what.out);
    for (int64_t o = 0; table && o < what.out; o++) {
        const double at = how->place(&what, o);
        assert(what.in > 0 && what.out == c->out->lens[axis]);
        if (how->mode == MGX_RESIZE_NEAREST) {
            table[o].first = clamp(how->round(at), what.in);
            continue;
        }
        const double low = floor(at);
        table[o].first = clamp(low, what.in);
        table[o].second = clamp(low + 1, what.in);
        table[o].weight = (float)(at - low);
    }
    return table;
}

// Moved, not blended.
static bool is_narrow(const struct mgx_shape *s)
{
    return mgx_type_is_byte(s->type) || s->type == MGX_BF16;
}

static bool suits(struct mgx_plan_offer *c, const struct mgx_resize *a, struct mgx_resize_how *how)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    const char *wrong;
    c->why = c->in_count != 1 ? "sizes come from an input"
             : (x->type != MGX_FLOAT && !is_narrow(x)) || x->rank != 4
                 ? "not a batch of images of floats, bytes or bfloat16"
             : !mgx_shape_elements(x) || !mgx_shape_elements(y)     ? "empty"
             : x->lens[0] != y->lens[0] || x->lens[1] != y->lens[1] ? "batch or channels change"
             : (x->strides[1] != 1 && x->lens[1] != 1) || (y->strides[1] != 1 && y->lens[1] != 1)
                 ? "channels are not contiguous"
             : !mgx_resize_how_find(a, MGX_FLOAT, how, &wrong) || how->mode == MGX_RESIZE_CUBIC ||
                     how->crops || a->antialias || a->exclude_outside ||
                     (is_narrow(x) && how->mode != MGX_RESIZE_NEAREST)
                 ? "cubic, antialias, exclude_outside, a crop, or linear of narrow types"
                 : NULL;
    return !c->why;
}

// NULL when out of memory.
static struct resize *describe(struct mgx_plan_offer *c, const struct mgx_resize_how *how)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    struct resize *r = MGX_NEW(c->arena, struct resize);
    if (!r)
        return NULL;
    *r = (struct resize){.linear = how->mode == MGX_RESIZE_LINEAR,
                         .size = (int64_t)mgx_type_size(x->type),
                         .blend = mgx_pool_kernel(cpu_offered(c)->isa)->blend,
                         .rows = make_table(c, how, c->ins->attr, 2),
                         .cols = make_table(c, how, c->ins->attr, 3),
                         .batch = y->lens[0],
                         .height = y->lens[2],
                         .width = y->lens[3],
                         .channels = y->lens[1],
                         .x_batch = x->strides[0],
                         .x_row = x->strides[2],
                         .x_col = x->strides[3],
                         .y_batch = y->strides[0],
                         .y_row = y->strides[2],
                         .y_col = y->strides[3]};
    return r->rows && r->cols ? r : NULL;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_resize_how how;
    if (c->ins->op != &mgx_op_resize)
        return mgx_plan_refuse(c);
    if (!suits(c, c->ins->attr, &how)) {
        c->want_in[0] = MGX_PLAN_LIKE_RESULT;
        return mgx_plan_refuse(c);
    }
    struct resize *r = describe(c, &how);
    if (!r)
        return mgx_plan_no_memory(c);
    r->tasks = cpu_tasks(c, mgx_shape_elements(c->out), 1 << 14, r->batch * r->height);
    c->detail = r->linear ? "linear" : "nearest";
    c->state = r;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct resize *r;
    const struct mgx_plan_args *args;
};

static void copy_row(const struct resize *r, const char *x, char *y, const struct place *row)
{
    assert(row->first >= 0 && r->width > 0);
    const char *from = x + row->first * r->x_row * r->size;
    for (int64_t i = 0; i < r->width; i++)
        memcpy(y + i * r->y_col * r->size, from + r->cols[i].first * r->x_col * r->size,
               (size_t)(r->channels * r->size));
}

static void blend_row(const struct resize *r, const float *x, float *y, const struct place *row)
{
    assert(row->first <= row->second && r->linear);
    const float *top = x + row->first * r->x_row, *bottom = x + row->second * r->x_row;
    for (int64_t i = 0; i < r->width; i++) {
        const struct place *col = &r->cols[i];
        const float *const p[4] = {top + col->first * r->x_col, top + col->second * r->x_col,
                                   bottom + col->first * r->x_col, bottom + col->second * r->x_col};
        const float v = row->weight, u = col->weight;
        const float w[4] = {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u};
        r->blend(p, w, y + i * r->y_col, r->channels);
    }
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct resize *r = job->r;
    const int64_t rows = r->batch * r->height, end = rows * (task + 1) / r->tasks;
    for (int64_t i = rows * task / r->tasks; i < end; i++) {
        const int64_t n = i / r->height, line = i % r->height;
        const char *x = (const char *)job->args->in[0] + n * r->x_batch * r->size;
        char *y = (char *)job->args->out + (n * r->y_batch + line * r->y_row) * r->size;
        if (r->linear)
            blend_row(r, (const float *)(const void *)x, (float *)(void *)y, &r->rows[line]);
        else
            copy_row(r, x, y, &r->rows[line]);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(cpu_pool(args), job.r->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(resize, 130)
const struct mgx_plan_kernel cpu_kernel_resize = {.name = "resize", .prepare = prepare, .run = run};
