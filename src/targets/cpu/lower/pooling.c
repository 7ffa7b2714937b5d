// SPDX-License-Identifier: MIT
// pooling (maximum and average; of bytes maximum) of channels-last images with one to three spatial
// axes.
#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/pool.h"
#include "targets/cpu/kernel/image/byte_pool.h"
#include "targets/cpu/kernel/image/pool.h"
#include "targets/cpu/lower/lower.h"

enum { DIMS = 3 };

struct axis {
    struct mgx_window window;
    int64_t x, y; // strides in memory
};

struct pooling {
    mgx_pool_pixel pixel;
    mgx_byte_pool_fn bytes; // of bytes
    bool is_signed;
    bool max, count_pad;
    int64_t batch, x_batch, y_batch, channels;
    struct axis axis[DIMS];
    int row_tasks, channel_tasks;
};

// Fewer rows than tasks (a global pooling has one) are cut along the channels, in pieces of lines.
enum { LEAST_ELEMENTS = 1 << 14, PIECE = 64 };

// Rows of the result, all images together.
static int64_t rows_of(const struct pooling *p)
{
    assert(p->batch > 0 && p->axis[0].window.out > 0 && p->axis[1].window.out > 0);
    return p->batch * p->axis[0].window.out * p->axis[1].window.out;
}

// Do images, channels and axes go from end to end of the image and of the result?
__attribute__((unused)) static bool covers(const struct pooling *p, const struct mgx_shape *x,
                                           const struct mgx_shape *y)
{
    int64_t in = (p->batch - 1) * p->x_batch + p->channels - 1,
            out = (p->batch - 1) * p->y_batch + p->channels - 1;
    for (int i = 0; i < DIMS; i++) {
        in += (p->axis[i].window.in - 1) * p->axis[i].x;
        out += (p->axis[i].window.out - 1) * p->axis[i].y;
    }
    return cpu_reaches(x, in) && cpu_reaches(y, out);
}

static void divide(struct pooling *p, int64_t elements, int threads)
{
    assert(elements > 0 && threads > 0);
    const int64_t rows = rows_of(p), tasks = 4 * (int64_t)threads;
    p->row_tasks = p->channel_tasks = 1;
    if (elements < LEAST_ELEMENTS || threads < 2)
        return;
    p->row_tasks = (int)mgx_min_i64(rows, tasks);
    if (rows < threads)
        p->channel_tasks =
            (int)mgx_max_i64(mgx_min_i64(p->channels / PIECE, tasks / p->row_tasks), 1);
}

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    const bool bytes = mgx_type_is_byte(x->type) && mgx_ins_int(c->ins, "mode") == 1;
    c->why = x->type != MGX_FLOAT && !bytes      ? "neither float nor a maximum of bytes"
             : x->rank < 3 || x->rank > DIMS + 2 ? "not one to three spatial axes"
             : !mgx_shape_elements(y) || !mgx_shape_elements(x) ? "empty"
             : mgx_ins_int(c->ins, "mode") > 1                  ? "lpnorm"
             : y->strides[1] != 1 && y->lens[1] != 1 ? "channels of the result are not contiguous"
                                                     : NULL;
    if (!c->why && x->strides[1] != 1 && x->lens[1] != 1) {
        c->why = "channels are not contiguous";
        c->want_in[0] = MGX_PLAN_LIKE_RESULT;
    }
    return !c->why;
}

static void describe_axes(struct pooling *p, const struct mgx_ins *ins, const struct mgx_shape *x,
                          const struct mgx_shape *y)
{
    const struct mgx_pool_attr attr = mgx_pool_of(ins);
    struct mgx_pool_walk walk;
    mgx_pool_walk_init(&walk, &attr, x, y);
    const int missing = DIMS - walk.rank;
    assert(walk.rank == x->rank - 2 && missing >= 0);
    for (int i = 0; i < missing; i++)
        p->axis[i].window = (struct mgx_window){1, 1, 1, 1, 0, 0, 1};
    for (int i = 0; i < walk.rank; i++)
        p->axis[missing + i] = (struct axis){walk.axis[i], x->strides[i + 2], y->strides[i + 2]};
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_pooling || !suits(c))
        return mgx_plan_refuse(c);
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    struct pooling *p = MGX_NEW(c->arena, struct pooling);
    if (!p)
        return mgx_plan_no_memory(c);
    p->pixel = mgx_pool_kernel(cpu_offered(c)->isa)->pixel;
    p->bytes = mgx_type_is_byte(x->type) ? mgx_byte_pool_kernel(cpu_offered(c)->isa)->run : NULL;
    p->is_signed = x->type == MGX_INT8;
    p->max = mgx_ins_int(c->ins, "mode") == 1;
    p->count_pad = mgx_ins_int(c->ins, "count_include_pad");
    p->batch = x->lens[0];
    p->x_batch = x->strides[0];
    p->y_batch = y->strides[0];
    p->channels = x->lens[1];
    describe_axes(p, c->ins, x, y);
    assert(covers(p, x, y));
    divide(p, mgx_shape_elements(x), c->machine->threads);
    c->state = p;
    return MGX_PLAN_TAKEN;
}

// The part of a window along one axis that lies inside the image.
struct span {
    int64_t offset, count, step; // elements to its first place; places, elements between them
    int64_t counted;             // places an average divides by
};

static struct span span_at(const struct axis *a, int64_t o, bool count_pad)
{
    assert(o >= 0 && o < a->window.out);
    int64_t first, last;
    const int64_t at = mgx_window_clip(&a->window, o, &first, &last);
    const int64_t count = last - first;
    assert(count >= 0 && (!count || (at >= 0 && at < a->window.in)));
    return (struct span){.offset = count ? at * a->x : 0,
                         .count = count,
                         .step = a->window.dilation * a->x,
                         .counted = count_pad ? mgx_window_padded(&a->window, o) : count};
}

struct job {
    const struct pooling *p;
    const struct mgx_plan_args *args;
};

// A pixel of bytes.
static void run_bytes(const struct job *job, const struct mgx_pool_args *floats, int64_t from,
                      int64_t to)
{
    assert(job->p->bytes && floats->channels > 0);
    const struct mgx_byte_pool_args args = {.x = (const uint8_t *)job->args->in[0] + from,
                                            .planes = floats->planes,
                                            .rows = floats->rows,
                                            .cols = floats->cols,
                                            .plane_stride = floats->plane_stride,
                                            .row_stride = floats->row_stride,
                                            .col_stride = floats->col_stride,
                                            .is_signed = job->p->is_signed,
                                            .y = (uint8_t *)job->args->out + to,
                                            .channels = floats->channels};
    job->p->bytes(&args);
}

// Channels [begin, end) of a row.
static void run_row(const struct job *job, int64_t row, int64_t begin, int64_t end)
{
    assert(begin < end && end <= job->p->channels && row < rows_of(job->p));
    const struct pooling *p = job->p;
    const struct axis *a = p->axis;
    const int64_t oy = row % a[1].window.out, plane = row / a[1].window.out,
                  oz = plane % a[0].window.out, image = plane / a[0].window.out;
    const struct span z = span_at(&a[0], oz, p->count_pad), y = span_at(&a[1], oy, p->count_pad);
    const int64_t first = image * p->x_batch + begin + z.offset + y.offset;
    const int64_t last = image * p->y_batch + oz * a[0].y + oy * a[1].y + begin;
    for (int64_t ox = 0; ox < a[2].window.out; ox++) {
        const struct span x = span_at(&a[2], ox, p->count_pad);
        const int64_t counted = z.counted * y.counted * x.counted;
        const int64_t from = first + x.offset, to = last + ox * a[2].y;
        const struct mgx_pool_args args = {.x = (const float *)job->args->in[0] +
                                                (p->bytes ? 0 : from),
                                           .planes = z.count,
                                           .rows = y.count,
                                           .cols = x.count,
                                           .plane_stride = z.step,
                                           .row_stride = y.step,
                                           .col_stride = x.step,
                                           .scale = counted ? 1 / (float)counted : 0,
                                           .max = p->max,
                                           .y = (float *)job->args->out + (p->bytes ? 0 : to),
                                           .channels = end - begin};
        if (p->bytes)
            run_bytes(job, &args, from, to);
        else
            p->pixel(&args);
    }
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct pooling *p = job->p;
    const int r = task / p->channel_tasks, c = task % p->channel_tasks;
    const int64_t rows = rows_of(p), end = rows * (r + 1) / p->row_tasks;
    const int64_t pieces = mgx_max_i64(p->channels / PIECE, 1);
    const int64_t first = pieces * c / p->channel_tasks * PIECE,
                  last = c + 1 < p->channel_tasks ? pieces * (c + 1) / p->channel_tasks * PIECE
                                                  : p->channels;
    for (int64_t i = rows * r / p->row_tasks; i < end; i++)
        run_row(job, i, first, last);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(cpu_pool(args), job.p->row_tasks * job.p->channel_tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(pooling, 80)
const struct mgx_plan_kernel cpu_kernel_pooling = {
    .name = "pooling", .prepare = prepare, .run = run};
