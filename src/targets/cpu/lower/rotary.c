// SPDX-License-Identifier: MIT
// rotary_embedding of floats: heads are turned on their way.
//
//     task: a range of heads, every token of each
//
// Positions are checked before anything is written.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/cache.h"
#include "targets/cpu/lower/lower.h"

enum { X, COS, SIN, AT, PARALLEL = 1 << 15 };

struct rotary {
    int64_t batch, heads, tokens, size, half, positions;
    int64_t x[3], y[3];           // strides of batch, heads, tokens
    bool interleaved, each, wide; // each: every token has its position; wide: int64
    int tasks;
};

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[X], *at = &c->in[AT];
    for (int i = X; i <= SIN; i++)
        if (c->in[i].type != MGX_FLOAT)
            return mgx_plan_unfit(c, "not float");
    if ((at->type != MGX_INT64 && at->type != MGX_INT32) || !mgx_shape_elements(x) ||
        (c->out->strides[3] != 1 && c->out->lens[3] != 1))
        return mgx_plan_unfit(c, "positions of another type, an empty or turned result");
    for (int i = COS; i <= AT; i++)
        if (!mgx_shape_is_standard(&c->in[i]))
            return mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "tables are not row-major");
    if (x->strides[3] != 1 && x->lens[3] != 1)
        return mgx_plan_wish(c, X, MGX_PLAN_ROW_MAJOR, "heads are not contiguous");
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_rotary_embedding || !suits(c))
        return mgx_plan_refuse(c);
    struct rotary *r = MGX_NEW(c->arena, struct rotary);
    if (!r)
        return mgx_plan_no_memory(c);
    const struct mgx_shape *x = &c->in[X];
    *r = (struct rotary){.batch = x->lens[0],
                         .heads = x->lens[1],
                         .tokens = x->lens[2],
                         .size = x->lens[3],
                         .half = c->in[COS].lens[1],
                         .positions = c->in[COS].lens[0],
                         .interleaved = mgx_ins_int(c->ins, "interleaved") != 0,
                         .each = c->in[AT].rank == 2,
                         .wide = c->in[AT].type == MGX_INT64};
    memcpy(r->x, x->strides, sizeof r->x);
    memcpy(r->y, c->out->strides, sizeof r->y);
    r->tasks = cpu_tasks(c, mgx_shape_elements(x), PARALLEL, r->batch * r->heads);
    c->state = r;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct rotary *r;
    const float *x, *cosines, *sines;
    const void *at;
    float *y;
};

static int64_t position(const struct rotary *r, const void *at, int64_t b, int64_t i)
{
    const int64_t k = r->each ? b * r->tokens + i : b;
    const int64_t given = cpu_integer(at, r->wide, k);
    return r->each ? mgx_max_i64(given, 0) : mgx_cache_before(given, r->tokens) + i;
}

// The halves, or neighbours, of one head. x and y are the same or apart.
static void turn(const struct rotary *r, const float *x, const float *restrict c,
                 const float *restrict s, float *y)
{
    const int64_t half = r->half;
    for (int64_t i = 0; i < half && !r->interleaved; i++) {
        const float a = x[i], b = x[half + i];
        y[i] = a * c[i] - b * s[i];
        y[half + i] = b * c[i] + a * s[i];
    }
    for (int64_t i = 0; i < half && r->interleaved; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * c[i] - b * s[i];
        y[2 * i + 1] = b * c[i] + a * s[i];
    }
    if (x != y)
        memcpy(y + 2 * half, x + 2 * half, (size_t)(r->size - 2 * half) * sizeof *y);
}

static void run_heads(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct rotary *r = job->r;
    const int64_t all = r->batch * r->heads, end = mgx_part_begin(all, task + 1, r->tasks);
    for (int64_t k = mgx_part_begin(all, task, r->tasks); k < end; k++) {
        const int64_t b = k / r->heads, h = k % r->heads;
        for (int64_t i = 0; i < r->tokens; i++) {
            const int64_t at = position(r, job->at, b, i) * r->half;
            turn(r, job->x + b * r->x[0] + h * r->x[1] + i * r->x[2], job->cosines + at,
                 job->sines + at, job->y + b * r->y[0] + h * r->y[1] + i * r->y[2]);
        }
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct rotary *r = step->state;
    struct job job = {r, args->in[X], args->in[COS], args->in[SIN], args->in[AT], args->out};
    for (int64_t b = 0; b < r->batch; b++)
        for (int64_t i = 0; i < r->tokens; i++) {
            const int64_t at = position(r, job.at, b, i);
            if (at >= r->positions)
                return mgx_fail(diag, MGX_INVALID,
                                "rotary_embedding: position %" PRId64
                                " is out of range for a table of %" PRId64,
                                at, r->positions);
        }
    mgx_pool_run(cpu_pool(args), r->tasks, run_heads, &job);
    return MGX_OK;
}

CPU_KERNEL(rotary, 101)
const struct mgx_plan_kernel cpu_kernel_rotary = {.name = "rotary", .prepare = prepare, .run = run};
