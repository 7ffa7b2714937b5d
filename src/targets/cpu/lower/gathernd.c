// SPDX-License-Identifier: MIT
// gathernd as copies of contiguous slabs.
//
//     y[batch][place] = x[batch][index[batch][place][0], index[..][1], ...]
//
// Tuples of indices become offsets, checked before anything is read; a negative index counts from
// the end of its axis.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/lower/lower.h"

struct gathernd {
    int64_t places, per_batch; // slabs; slabs of one batch position
    int64_t batch_step;        // of x between batch positions, in bytes
    int depth;
    int64_t lens[MGX_MAX_RANK], steps[MGX_MAX_RANK]; // of the indexed axes; steps in bytes
    size_t slab;                                     // bytes
    bool wide;                                       // indices are int64
    int tasks;
};

static void plan_axes(struct gathernd *g, const struct mgx_shape *x, const struct mgx_shape *at,
                      int batch_dims)
{
    assert(batch_dims >= 0 && batch_dims < at->rank && at->rank > 0);
    const int64_t size = (int64_t)mgx_type_size(x->type);
    g->depth = (int)at->lens[at->rank - 1];
    assert(batch_dims + g->depth <= x->rank);
    g->places = mgx_product(at->lens, at->rank - 1);
    g->per_batch = mgx_product(at->lens + batch_dims, at->rank - 1 - batch_dims);
    g->batch_step = batch_dims ? x->strides[batch_dims - 1] * size : 0;
    for (int k = 0; k < g->depth; k++) {
        g->lens[k] = x->lens[batch_dims + k];
        g->steps[k] = x->strides[batch_dims + k] * size;
    }
    const int first = batch_dims + g->depth; // of a slab's axes
    g->slab = (size_t)(size * mgx_product(x->lens + first, x->rank - first));
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_gathernd)
        return mgx_plan_refuse(c);
    const struct mgx_shape *x = &c->in[0], *at = &c->in[1];
    if (!mgx_shape_is_standard(x) || !mgx_shape_is_standard(at) || !mgx_shape_is_standard(c->out) ||
        (at->type != MGX_INT64 && at->type != MGX_INT32) || !mgx_shape_elements(c->out)) {
        c->why = "operands are not row-major, empty, or indices of another type";
        c->want_in[0] = c->want_in[1] = MGX_PLAN_ROW_MAJOR;
        return mgx_plan_refuse(c);
    }
    struct gathernd *g = MGX_NEW(c->arena, struct gathernd);
    if (!g)
        return mgx_plan_no_memory(c);
    plan_axes(g, x, at, (int)mgx_ins_int(c->ins, "batch_dims"));
    g->wide = at->type == MGX_INT64;
    g->tasks = cpu_tasks(c, (int64_t)g->slab * g->places, 1 << 16, g->places);
    c->state = g;
    return MGX_PLAN_TAKEN;
}

static int64_t index_at(const struct gathernd *g, const void *index, int64_t i, int k)
{
    assert(k >= 0 && k < g->depth && i >= 0 && i < g->places);
    const int64_t n = i * g->depth + k;
    const int64_t at = cpu_integer(index, g->wide, n);
    return at < 0 ? at + g->lens[k] : at;
}

struct job {
    const struct gathernd *g;
    const unsigned char *x;
    const void *index;
    unsigned char *y;
};

#define SLABS(size)                                                                                \
    for (int64_t i = first; i < end; i++)                                                          \
    memcpy(job->y + (size_t)i * (size), job->x + offset_of(job, i), (size))

static int64_t offset_of(const struct job *job, int64_t i)
{
    const struct gathernd *g = job->g;
    int64_t offset = i / g->per_batch * g->batch_step;
    for (int k = 0; k < g->depth; k++)
        offset += index_at(g, job->index, i, k) * g->steps[k];
    return offset;
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct gathernd *g = job->g;
    const int64_t first = g->places * task / g->tasks, end = g->places * (task + 1) / g->tasks;
    if (g->slab == 4)
        SLABS(4);
    else if (g->slab == 8)
        SLABS(8);
    else if (g->slab == 16)
        SLABS(16);
    else
        SLABS(g->slab);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct gathernd *g = step->state;
    struct job job = {g, args->in[0], args->in[1], args->out};
    for (int64_t i = 0; i < g->places; i++)
        for (int k = 0; k < g->depth; k++) {
            const int64_t at = index_at(g, job.index, i, k);
            if (at < 0 || at >= g->lens[k])
                return mgx_fail(diag, MGX_INVALID,
                                "gathernd: index %" PRId64
                                " is out of range for an axis of length %" PRId64,
                                at, g->lens[k]);
        }
    mgx_pool_run(cpu_pool(args), g->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(gathernd, 110)
const struct mgx_plan_kernel cpu_kernel_gathernd = {
    .name = "gathernd", .prepare = prepare, .run = run};
