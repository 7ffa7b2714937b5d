// SPDX-License-Identifier: MIT
// See linear.h: states in pieces of columns, dealt to threads.
#include "targets/cpu/kernel/product/linear.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/split.h"

enum { ROOM = 16 }; // floats, to which lines are rounded up

struct job {
    const struct mgx_linear_desc *desc;
    const struct mgx_linear_args *args;
    const struct mgx_linear_kernel *kernel;
    int64_t units, pieces; // pieces of one state
    int tasks;
};

static int64_t line_of(const struct mgx_linear_desc *d)
{
    return mgx_ceil_div(d->rows, ROOM) * ROOM;
}

static int64_t thread_floats(const struct mgx_linear_desc *d)
{
    return line_of(d) * (MGX_LINEAR_COLUMNS + 2);
}

size_t mgx_linear_workspace(const struct mgx_linear_desc *desc)
{
    return (size_t)(thread_floats(desc) * mgx_max_i64(desc->threads, 1)) * sizeof(float);
}

static int64_t offset_of(const int64_t stride[3], int64_t entry, int64_t head)
{
    return entry * stride[0] + head * stride[1];
}

// The part's columns of `past`, or zeros.
static void load(const struct mgx_linear_part *p, const float *past, int64_t row)
{
    const size_t bytes = (size_t)p->columns * sizeof *past;
    if (!past || p->columns < MGX_LINEAR_COLUMNS)
        memset(p->s, 0, (size_t)(p->rows * MGX_LINEAR_COLUMNS) * sizeof *p->s);
    for (int64_t i = 0; past && i < p->rows; i++)
        memcpy(p->s + i * MGX_LINEAR_COLUMNS, past + i * row, bytes);
}

static void store(const struct mgx_linear_part *p, float *state, int64_t row)
{
    for (int64_t i = 0; i < p->rows; i++)
        memcpy(state + i * row, p->s + i * MGX_LINEAR_COLUMNS, (size_t)p->columns * sizeof *state);
}

static void run_part(const struct job *job, int64_t entry, int64_t head, int64_t column,
                     float *room)
{
    const struct mgx_linear_desc *d = job->desc;
    const struct mgx_linear_args *a = job->args;
    const int64_t reader = head * d->share;
    const struct mgx_linear_part p = {
        .s = room,
        .by = room + line_of(d) * MGX_LINEAR_COLUMNS,
        .seen_by = room + line_of(d) * (MGX_LINEAR_COLUMNS + 1),
        .columns = (int)mgx_min_i64(d->columns - column, MGX_LINEAR_COLUMNS),
        .rows = d->rows,
        .steps = d->steps,
        .share = d->share,
        .q = a->q + offset_of(d->q, entry, reader),
        .k = a->k + offset_of(d->k, entry, head),
        .v = a->v + offset_of(d->v, entry, head) + column,
        .decay = a->decay ? a->decay + offset_of(d->decay, entry, head) : NULL,
        .beta = a->beta ? a->beta + offset_of(d->beta, entry, head) : NULL,
        .q_head = d->q[1],
        .q_step = d->q[2],
        .k_step = d->k[2],
        .v_step = d->v[2],
        .decay_step = d->decay[2],
        .beta_step = d->beta[2],
        .y = a->y + offset_of(d->y, entry, reader) + column,
        .y_head = d->y[1],
        .y_step = d->y[2],
        .scale = d->scale,
        .decay_each = d->decay_each,
        .delta = d->delta};
    assert(p.columns > 0 && p.seen_by + d->rows <= room + thread_floats(d));
    assert(!d->delta || a->beta);
    load(&p, a->past ? a->past + offset_of(d->past, entry, head) + column : NULL, d->past[2]);
    job->kernel->run(&p);
    store(&p, a->state + offset_of(d->state, entry, head) + column, d->state[2]);
}

static void run_units(void *user, int task, int thread)
{
    const struct job *job = user;
    const int64_t end = mgx_part_begin(job->units, task + 1, job->tasks);
    float *room = (float *)job->args->workspace + thread * thread_floats(job->desc);
    for (int64_t i = mgx_part_begin(job->units, task, job->tasks); i < end; i++) {
        const int64_t state = i / job->pieces;
        run_part(job, state / job->desc->heads, state % job->desc->heads,
                 i % job->pieces * MGX_LINEAR_COLUMNS, room);
    }
}

void mgx_linear_run(const struct mgx_linear_desc *desc, const struct mgx_linear_args *args,
                    struct mgx_pool *pool)
{
    struct job job = {.desc = desc, .args = args, .kernel = mgx_linear_kernel(desc->isa)};
    job.pieces = mgx_ceil_div(desc->columns, MGX_LINEAR_COLUMNS);
    job.units = desc->batch * desc->heads * job.pieces;
    const double walks = (double)(desc->share + 1 + desc->delta) * (double)(desc->steps + 1);
    const double work =
        2.0 * walks * (double)(desc->batch * desc->heads * desc->rows) * (double)desc->columns;
    if (!job.units)
        return;
    job.tasks = (int)mgx_min_i64(mgx_split_tasks(work, desc->threads), job.units);
    mgx_pool_run(pool, job.tasks, run_units, &job);
}
