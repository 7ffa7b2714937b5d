// SPDX-License-Identifier: MIT
// pooling (maximum and average) of channels-last images with one or two spatial axes.
#include "base/size.h"
#include "op/op.h"
#include "target/cpu/cpu.h"
#include "target/cpu/kernel/pool.h"

struct axis {
    int64_t in, out, length, stride, dilation, before, x, y; // x, y: strides in memory
    int64_t padded;                                          // end of what counts as padding
};

struct pooling {
    mgx_pool_pixel pixel;
    bool max, count_pad;
    int64_t batch, x_batch, y_batch, channels;
    struct axis axis[2];
    int row_tasks, channel_tasks;
};

// Fewer rows than tasks (a global pooling has one) are cut along the channels, in pieces of lines.
enum { LEAST_ELEMENTS = 1 << 14, PIECE = 64 };

static void divide(struct pooling *p, int64_t elements, int threads)
{
    const int64_t rows = p->batch * p->axis[0].out, tasks = 4 * (int64_t)threads;
    p->row_tasks = p->channel_tasks = 1;
    if (elements < LEAST_ELEMENTS || threads < 2)
        return;
    p->row_tasks = (int)mgx_min_i64(rows, tasks);
    if (rows < threads)
        p->channel_tasks =
            (int)mgx_max_i64(mgx_min_i64(p->channels / PIECE, tasks / p->row_tasks), 1);
}

static int64_t at(struct mgx_ints list, int i, int64_t otherwise)
{
    return i < list.count ? list.v[i] : otherwise;
}

static bool suits(struct cpu_prepare *c)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    c->why = x->type != MGX_FLOAT                               ? "not float"
             : x->rank < 3 || x->rank > 4                       ? "not one or two spatial axes"
             : !mgx_shape_elements(y) || !mgx_shape_elements(x) ? "empty"
             : mgx_ins_int(c->ins, "mode") > 1                  ? "lpnorm"
             : mgx_ins_int(c->ins, "padding_mode") != 0         ? "automatic padding"
             : x->strides[1] != 1 && x->lens[1] != 1            ? "channels are not contiguous"
             : y->strides[1] != 1 && y->lens[1] != 1 ? "channels of the result are not contiguous"
                                                     : NULL;
    return !c->why;
}

static void describe_axis(struct axis *a, const struct mgx_ins *ins, const struct mgx_shape *x,
                          const struct mgx_shape *y, int i)
{
    const int spatial = x->rank - 2;
    const struct mgx_ints pads = mgx_ins_ints(ins, "padding");
    const bool global = mgx_ins_int(ins, "dyn_global");
    a->in = x->lens[i + 2];
    a->out = y->lens[i + 2];
    a->length = global ? a->in : at(mgx_ins_ints(ins, "lengths"), i, 1);
    a->stride = global ? 1 : at(mgx_ins_ints(ins, "stride"), i, 1);
    a->dilation = global ? 1 : at(mgx_ins_ints(ins, "dilations"), i, 1);
    a->before = global ? 0 : at(pads, i, 0);
    const int64_t after = global                      ? 0
                          : pads.count >= 2 * spatial ? at(pads, i + spatial, 0)
                                                      : a->before;
    a->padded = a->in + after;
    a->x = x->strides[i + 2];
    a->y = y->strides[i + 2];
}

static bool prepare(struct cpu_prepare *c)
{
    if (c->ins->op != &mgx_op_pooling || !suits(c))
        return false;
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    struct pooling *p = MGX_NEW(&c->plan->arena, struct pooling);
    if (!p) {
        mgx_fail_memory(c->diag);
        return false;
    }
    p->pixel = mgx_pool_of(c->plan->isa);
    p->max = mgx_ins_int(c->ins, "mode") == 1;
    p->count_pad = mgx_ins_int(c->ins, "count_include_pad");
    p->batch = x->lens[0];
    p->x_batch = x->strides[0];
    p->y_batch = y->strides[0];
    p->channels = x->lens[1];
    p->axis[0] = (struct axis){1, 1, 1, 1, 1, 0, 0, 0, 1};
    for (int i = 0; i < x->rank - 2; i++)
        describe_axis(&p->axis[i + (x->rank == 3)], c->ins, x, y, i);
    divide(p, mgx_shape_elements(x), c->plan->threads);
    c->state = p;
    return true;
}

struct window {
    int64_t first, count, counted; // inside the image; what an average divides by
};

static struct window window_at(const struct axis *a, int64_t o, bool count_pad)
{
    const int64_t start = o * a->stride - a->before;
    int64_t low = start < 0 ? (-start + a->dilation - 1) / a->dilation : 0, high = a->length;
    if (start + (high - 1) * a->dilation >= a->in)
        high = start >= a->in ? 0 : (a->in - 1 - start) / a->dilation + 1;
    struct window w = {start + low * a->dilation, mgx_max_i64(high - low, 0), 0};
    w.counted = w.count;
    if (count_pad) { // as far as the padding reaches
        int64_t end = a->length;
        if (start + (end - 1) * a->dilation >= a->padded)
            end = (a->padded - 1 - start) / a->dilation + 1;
        w.counted = end;
    }
    return w;
}

struct job {
    const struct pooling *p;
    const struct cpu_args *args;
};

// Channels [begin, end) of a row.
static void run_row(const struct job *job, int64_t image, int64_t oy, int64_t begin, int64_t end)
{
    const struct pooling *p = job->p;
    const struct axis *h = &p->axis[0], *v = &p->axis[1];
    const float *x = (const float *)job->args->in[0] + image * p->x_batch + begin;
    float *y = (float *)job->args->out + image * p->y_batch + oy * h->y + begin;
    const struct window wy = window_at(h, oy, p->count_pad);
    for (int64_t ox = 0; ox < v->out; ox++) {
        const struct window wx = window_at(v, ox, p->count_pad);
        const int64_t counted = wy.counted * wx.counted;
        const struct mgx_pool_args a = {.x = x + wy.first * h->x + wx.first * v->x,
                                        .rows = wy.count,
                                        .cols = wx.count,
                                        .row_stride = h->x * h->dilation,
                                        .col_stride = v->x * v->dilation,
                                        .scale = 1 / (float)counted,
                                        .max = p->max,
                                        .y = y + ox * v->y,
                                        .channels = end - begin};
        p->pixel(&a);
    }
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct pooling *p = job->p;
    const int r = task / p->channel_tasks, c = task % p->channel_tasks;
    const int64_t rows = p->batch * p->axis[0].out, end = rows * (r + 1) / p->row_tasks;
    const int64_t pieces = mgx_max_i64(p->channels / PIECE, 1);
    const int64_t first = pieces * c / p->channel_tasks * PIECE,
                  last = c + 1 < p->channel_tasks ? pieces * (c + 1) / p->channel_tasks * PIECE
                                                  : p->channels;
    for (int64_t i = rows * r / p->row_tasks; i < end; i++)
        run_row(job, i / p->axis[0].out, i % p->axis[0].out, first, last);
}

static enum mgx_status run(const struct cpu_step *step, const struct cpu_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(args->context->plan->pool, job.p->row_tasks * job.p->channel_tasks, run_part,
                 &job);
    return MGX_OK;
}

const struct cpu_kernel cpu_kernel_pooling = {.name = "pooling", .prepare = prepare, .run = run};
