// SPDX-License-Identifier: MIT
// gather (embedding look-up among others) as copies of contiguous runs.
//
//     y[outer][i...][inner] = x[outer][index[i...]][inner]
//
// Indices are checked before anything is read; a negative one counts from the end.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/lower/lower.h"

struct gather {
    int64_t outer, count, length; // rows of x per outer step: length; indices: count
    size_t run;                   // bytes of the inner axes
    bool wide;                    // indices are int64
    int tasks;
};

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *index = &c->in[1];
    if (mgx_shape_is_standard(x) && mgx_shape_is_standard(index) && mgx_shape_is_standard(c->out) &&
        (index->type == MGX_INT64 || index->type == MGX_INT32))
        return true;
    c->want_in[1] = MGX_PLAN_ROW_MAJOR;
    return mgx_plan_wish(c, 0, MGX_PLAN_ROW_MAJOR,
                         "operands are not row-major, or indices of another type");
}

static void split(struct gather *g, const struct mgx_plan_offer *c, int axis)
{
    const struct mgx_shape *x = &c->in[0];
    g->outer = mgx_product(x->lens, axis);
    g->length = x->lens[axis];
    g->run = mgx_type_size(x->type) * (size_t)mgx_product(x->lens + axis + 1, x->rank - axis - 1);
    assert(g->run * (size_t)(g->outer * g->length) == mgx_shape_bytes(x));
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_gather || !suits(c))
        return mgx_plan_refuse(c);
    struct gather *g = MGX_NEW(c->arena, struct gather);
    if (!g)
        return mgx_plan_no_memory(c);
    split(g, c, mgx_wrap_axis(mgx_ins_int(c->ins, "axis"), c->in[0].rank));
    g->count = mgx_shape_elements(&c->in[1]);
    g->wide = c->in[1].type == MGX_INT64;
    const size_t bytes = g->run * (size_t)g->count * (size_t)g->outer;
    assert(bytes == mgx_shape_bytes(c->out));
    g->tasks = cpu_tasks(c, (int64_t)bytes, 1 << 16, g->outer * g->count);
    c->state = g;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct gather *g;
    const unsigned char *x;
    const void *index;
    unsigned char *y;
};

static int64_t index_at(const struct gather *g, const void *index, int64_t i)
{
    assert(i >= 0);
    const int64_t at = cpu_integer(index, g->wide, i);
    return at < 0 ? at + g->length : at;
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct gather *g = job->g;
    const int64_t total = g->outer * g->count, end = total * (task + 1) / g->tasks;
    for (int64_t i = total * task / g->tasks; i < end; i++) {
        const int64_t row = i / g->count * g->length + index_at(g, job->index, i % g->count);
        assert(row >= 0 && row < g->outer * g->length);
        memcpy(job->y + (size_t)i * g->run, job->x + (size_t)row * g->run, g->run);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct gather *g = step->state;
    struct job job = {g, args->in[0], args->in[1], args->out};
    for (int64_t i = 0; i < g->count; i++) {
        const int64_t at = index_at(g, job.index, i);
        if (at < 0 || at >= g->length)
            return mgx_fail(diag, MGX_INVALID,
                            "gather: index %" PRId64
                            " is out of range for an axis of length %" PRId64,
                            at < 0 ? at - g->length : at, g->length);
    }
    if (g->run && g->count && g->outer)
        mgx_pool_run(cpu_pool(args), g->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(gather, 100)
const struct mgx_plan_kernel cpu_kernel_gather = {
    .name = "gather", .any_address = 1, .prepare = prepare, .run = run};
