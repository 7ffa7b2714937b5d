// SPDX-License-Identifier: MIT
// argmax and argmin of floats.
//
//     long lines whose values lie side by side: line by line
//     else MGX_ARG_LANES of them at once, along an axis that lies so or is the longest
//
// Cost: one look at every value.
#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/kernel/rows/arg.h"
#include "targets/cpu/lower/lower.h"

struct arg {
    const struct mgx_arg_kernel *kernel;
    struct mgx_arg how;
    int64_t n, step;          // along the axis
    int64_t lanes;            // looked at together, 1: none
    int64_t apart, lane_step; // of their first values, and of their results
    int64_t pieces;           // that the lanes are cut into
    int64_t lines, from, to;  // of the axis that is walked innermost, and its steps
    struct mgx_shape x, y;    // the other axes
    int64_t count;            // of positions of those
    int tasks;
};

static int longest_axis(const struct mgx_shape *x, int but)
{
    int longest = -1;
    for (int i = 0; i < x->rank; i++)
        if (i != but && (longest < 0 || x->lens[i] >= x->lens[longest]))
            longest = i;
    return longest;
}

// An axis beside `axis` whose positions are looked at together; -1: line by line is better.
static int lane_axis(const struct mgx_shape *x, int axis)
{
    enum { FEW = 4 };
    for (int i = x->rank - 1; i >= 0; i--)
        if (i != axis && x->lens[i] > FEW && x->strides[i] == 1 && x->strides[axis] != 1)
            return i;
    const int longest = longest_axis(x, axis);
    return longest >= 0 && x->lens[axis] <= MGX_ARG_SHORT && x->lens[longest] > FEW ? longest : -1;
}

static void split(struct arg *a, const struct mgx_plan_offer *c, int axis)
{
    const int lane = lane_axis(&c->in[0], axis);
    a->x = c->in[0];
    a->y = *c->out;
    a->n = a->x.lens[axis];
    a->step = a->x.strides[axis];
    a->lanes = a->pieces = 1;
    a->x.lens[axis] = 1;
    if (lane >= 0) {
        a->lanes = a->x.lens[lane];
        a->apart = a->x.strides[lane];
        a->lane_step = a->y.strides[lane];
        a->pieces = (a->lanes + MGX_ARG_LANES - 1) / MGX_ARG_LANES;
        a->x.lens[lane] = a->y.lens[lane] = 1;
    }
    const int line = longest_axis(&a->x, -1);
    a->lines = a->x.lens[line];
    a->from = a->x.strides[line];
    a->to = a->y.strides[line];
    a->x.lens[line] = a->y.lens[line] = 1;
    a->count = mgx_shape_elements(&a->x);
    assert(a->count == mgx_shape_elements(&a->y));
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const bool largest = c->ins->op == &mgx_op_argmax;
    if (!largest && c->ins->op != &mgx_op_argmin)
        return mgx_plan_refuse(c);
    const int64_t elements = mgx_shape_elements(&c->in[0]);
    if (!c->in[0].rank)
        return mgx_plan_decline(c, "a single value");
    const int axis = mgx_wrap_axis(mgx_ins_int(c->ins, "axis"), c->in[0].rank);
    if (c->in[0].type != MGX_FLOAT || !elements || c->in[0].lens[axis] > INT32_MAX)
        return mgx_plan_decline(c, "no floats, or too many");
    struct arg *a = MGX_NEW(c->arena, struct arg);
    if (!a)
        return mgx_plan_no_memory(c);
    a->kernel = mgx_arg_kernel(cpu_offered(c)->isa);
    a->how = (struct mgx_arg){largest, mgx_ins_int(c->ins, "select_last_index") != 0};
    split(a, c, axis);
    a->tasks = cpu_tasks(c, elements, 1 << 15, a->count * a->lines * a->pieces);
    c->state = a;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct arg *a;
    const float *x;
    int64_t *out;
};

static void find_lanes(const struct arg *a, const float *x, int64_t *out, int64_t piece)
{
    int32_t places[MGX_ARG_LANES];
    const int64_t begin = piece * MGX_ARG_LANES;
    const int lanes = (int)mgx_min_i64(MGX_ARG_LANES, a->lanes - begin);
    a->kernel->lanes(&a->how, x + begin * a->apart, a->n, a->step, lanes, a->apart, places);
    for (int j = 0; j < lanes; j++)
        out[(begin + j) * a->lane_step] = places[j];
}

// From line `first` of a position, at most `most` lines of it; how many there were.
static int64_t find_lines(const struct job *job, int64_t position, int64_t first, int64_t most)
{
    const struct arg *a = job->a;
    const int64_t end = mgx_min_i64(a->lines, first + most);
    const float *x = job->x + mgx_shape_index(&a->x, position);
    int64_t *out = job->out + mgx_shape_index(&a->y, position);
    for (int64_t i = first; i < end; i++)
        out[i * a->to] = a->kernel->line(&a->how, x + i * a->from, a->n, a->step);
    return end - first;
}

static void run_part(void *user, int task, int thread)
{
    const struct job *job = user;
    const struct arg *a = job->a;
    const int64_t total = a->count * a->lines * a->pieces,
                  end = mgx_part_begin(total, task + 1, a->tasks);
    (void)thread;
    for (int64_t i = mgx_part_begin(total, task, a->tasks); i < end;) {
        const int64_t line = i / a->pieces, position = line / a->lines, at = line % a->lines;
        if (a->lanes > 1) {
            find_lanes(a, job->x + mgx_shape_index(&a->x, position) + at * a->from,
                       job->out + mgx_shape_index(&a->y, position) + at * a->to, i % a->pieces);
            i++;
        } else {
            i += find_lines(job, position, at, end - i);
        }
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct arg *a = step->state;
    struct job job = {a, args->in[0], args->out};
    (void)diag;
    mgx_pool_run(cpu_pool(args), a->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(argmax, 85)
const struct mgx_plan_kernel cpu_kernel_argmax = {.name = "argmax", .prepare = prepare, .run = run};
