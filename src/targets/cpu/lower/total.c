// SPDX-License-Identifier: MIT
// group[tag=total]: a value made of the least and the largest of a tensor, f(min(x), max(x), ...).
//
//     task: a range of x; blocks that stay in L1 while both are found
//     then f, once, over what the tasks found
//
// x is packed in any order of memory. f is compiled as any element-wise body is, for one element.
#include "targets/cpu/lower/total.h"

#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/region.h"
#include "targets/cpu/kernel/rows/byte_range.h"
#include "targets/cpu/kernel/rows/rows.h"
#include "targets/cpu/lower/body.h"
#include "targets/cpu/lower/typed.h"

enum {
    MOST = MGX_REGION_INPUTS,
    BLOCK = 4096,       // floats, of x at a time
    PARALLEL = 1 << 15, // floats that are dealt to several threads
    LINE = 64 / 4,      // floats of a thread's findings: a line of the cache
};

// What f reads: a total, or an input of the group.
struct operand {
    int input; // -1: a total
    enum mgx_fold kind;
};

struct total {
    const struct mgx_rows_kernel *kernels;
    mgx_isa isa;
    int x, operand_count, tasks;
    int64_t elements;
    bool wants[MGX_FOLD_PROD + 1]; // which totals
    struct operand operand[MOST];
    const struct cpu_body *body; // or:
    const struct cpu_typed *typed;
    struct cpu_total known; // or neither is needed
    size_t scratch;         // where f works, in the workspace
};

static enum mgx_fold kind_of(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_reduce_min ? MGX_FOLD_MIN : MGX_FOLD_MAX;
}

static bool find_operands(const struct mgx_ins *f, struct total *t)
{
    t->x = -1;
    if (f->in_count > MOST)
        return false;
    for (int i = 0; i < f->in_count; i++) {
        const struct mgx_ins *in = f->in[i];
        const bool total = in->op == &mgx_op_reduce_min || in->op == &mgx_op_reduce_max;
        const int input = mgx_parameter_index(total ? in->in[0] : in);
        if (input < 0 || (total && t->x >= 0 && t->x != input))
            return false;
        t->operand[i].input = total ? -1 : input;
        if (!total)
            continue;
        t->operand[i].kind = kind_of(in);
        t->wants[kind_of(in)] = true;
        t->x = input;
    }
    t->operand_count = f->in_count;
    return t->x >= 0;
}

static bool compile(struct mgx_plan_offer *c, const struct mgx_ins *f, struct total *t)
{
    t->body = cpu_body_compile(c, f);
    if (t->body && (t->body->out_count != 1 || t->body->in_count != f->in_count))
        return mgx_plan_unfit(c, "the body has several results");
    if (!t->body && c->diag->status == MGX_OK)
        t->typed = cpu_typed_compile(c, f);
    return t->body || t->typed;
}

static size_t room_of(const struct total *t)
{
    return t->typed ? cpu_typed_scratch(t->typed)
                    : ((size_t)mgx_block_scratch(&t->body->block) +
                       (size_t)(t->operand_count + 1) * MGX_BLOCK) *
                          sizeof(float);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (!mgx_is_group(c->ins, "total"))
        return mgx_plan_refuse(c);
    struct total *t = MGX_NEW(c->arena, struct total);
    if (!t)
        return mgx_plan_no_memory(c);
    const struct mgx_ins *f = mgx_module_result(c->ins->mod[0], 0);
    if (!find_operands(f, t) || c->in[t->x].type != MGX_FLOAT || !mgx_shape_elements(&c->in[t->x]))
        return mgx_plan_decline(c, "the body is not in the form known");
    if (!mgx_shape_is_packed(&c->in[t->x])) {
        (void)mgx_plan_wish(c, t->x, MGX_PLAN_ROW_MAJOR, "the tensor has gaps");
        return mgx_plan_refuse(c);
    }
    if (!compile(c, f, t))
        return mgx_plan_refuse(c);
    t->known = cpu_total_form(f, t->x);
    t->isa = cpu_offered(c)->isa;
    t->kernels = mgx_rows_kernel(t->isa);
    t->elements = mgx_shape_elements(&c->in[t->x]);
    t->tasks = cpu_tasks(c, t->elements, PARALLEL, c->machine->threads);
    t->scratch = (size_t)t->tasks * LINE * sizeof(float);
    c->workspace = t->scratch + room_of(t);
    c->state = t;
    return MGX_PLAN_TAKEN;
}

// --- running ---

struct job {
    const struct total *t;
    const float *x;
    float *found; // by task: a line, in it by kind
};

static void find_extreme(const struct job *job, enum mgx_fold kind, const float *x, int64_t n,
                         bool first, float *found)
{
    if (!job->t->wants[kind])
        return;
    float pair[] = {found[kind], job->t->kernels->fold(kind, x, n)};
    found[kind] = first ? pair[1] : job->t->kernels->fold(kind, pair, 2);
}

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct total *t = job->t;
    const int64_t begin = mgx_part_begin(t->elements, task, t->tasks),
                  end = mgx_part_begin(t->elements, task + 1, t->tasks);
    float *found = job->found + (int64_t)task * LINE;
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t n = mgx_min_i64(BLOCK, end - at);
        find_extreme(job, MGX_FOLD_MIN, job->x + at, n, at == begin, found);
        find_extreme(job, MGX_FOLD_MAX, job->x + at, n, at == begin, found);
    }
}

// What the first task found, and all others, in the first one's place.
static void join(const struct job *job)
{
    for (int task = 1; task < job->t->tasks; task++)
        for (int kind = MGX_FOLD_MAX; kind <= MGX_FOLD_MIN; kind++)
            find_extreme(job, (enum mgx_fold)kind, job->found + task * LINE + kind, 1, false,
                         job->found);
}

// A form that is known; false: none is.
static bool finish_known(const struct job *job, const struct mgx_plan_args *args)
{
    const struct cpu_total *known = &job->t->known;
    struct mgx_byte_range range = {0, 0};
    if (known->form == CPU_TOTAL_ANY)
        return false;
    for (int kind = MGX_FOLD_MAX; kind <= MGX_FOLD_MIN; kind++)
        if (job->t->wants[kind])
            mgx_byte_range_widen(job->t->isa, &job->found[kind], 1, &range);
    if (known->form == CPU_TOTAL_SCALE)
        *(float *)args->out = mgx_byte_range_scale(&range);
    else
        *(uint8_t *)args->out =
            (uint8_t)mgx_byte_range_zero(&range, *(const float *)args->in[known->scale]);
    return true;
}

static void finish(const struct job *job, const struct mgx_plan_args *args)
{
    static const int64_t nowhere[MOST] = {0};
    const struct total *t = job->t;
    void *in[MOST], *scratch = (char *)args->workspace + t->scratch;
    if (finish_known(job, args))
        return;
    for (int i = 0; i < t->operand_count; i++)
        in[i] = t->operand[i].input < 0 ? (void *)&job->found[t->operand[i].kind]
                                        : args->in[t->operand[i].input];
    if (t->typed) {
        const struct cpu_typed_args typed = {
            .in = in, .offset = nowhere, .step = nowhere, .out = args->out, .out_step = 1};
        cpu_typed_run(t->typed, &typed, 1, scratch);
        return;
    }
    float *room = (float *)scratch + mgx_block_scratch(&t->body->block), out, *to = &out;
    struct mgx_block_operand operand[MOST];
    for (int i = 0; i < t->operand_count; i++)
        operand[i] = cpu_body_load(t->body->isa, in[i], t->body->in_type[i], 0, 0, 1,
                                   room + (size_t)i * MGX_BLOCK);
    mgx_block_run(&t->body->block, operand, &to, 1, scratch);
    cpu_body_store(t->body->isa, args->out, t->body->out_type[0], 0, 1, 1, &out);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct total *t = step->state;
    const struct job job = {t, args->in[t->x], args->workspace};
    mgx_pool_run(cpu_pool(args), t->tasks, run_part, (void *)&job);
    join(&job);
    finish(&job, args);
    return MGX_OK;
}

struct cpu_total cpu_total_of(const struct mgx_plan_step *step)
{
    const struct total *t = step->kernel == &cpu_kernel_total ? step->state : NULL;
    return t && t->tasks == 1 ? t->known : (struct cpu_total){CPU_TOTAL_ANY, -1, -1};
}

CPU_KERNEL(total, 55)
const struct mgx_plan_kernel cpu_kernel_total = {.name = "total", .prepare = prepare, .run = run};
