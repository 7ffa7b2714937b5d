// SPDX-License-Identifier: MIT
// group[tag=layer_norm] and group[tag=rms_norm]: rows over the last axes, on the kernels of
// kernel/rows/rows.h.
//
// The body is known to the pass that made it: a mean and a centred value, or neither, a root of the
// mean square plus epsilon, then perhaps a scale and a shift, and perhaps a rounding to bfloat16.
// What the kernel needs are x, epsilon, scale and shift, found by their places in it.
#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/rows/rows.h"
#include "targets/cpu/lower/lower.h"

struct norm {
    void (*kernel)(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                   int64_t n);
    int x, scale, shift; // inputs of the group, -1: none
    int axes;            // of a row: the last ones
    float epsilon;
    int64_t rows, n, x_row, y_row;
    int tasks;
    mgx_convert_fn round; // of a result that is bfloat16: rows are made in scratch; else NULL
};

static const struct mgx_ins *first_of(const struct mgx_module *body, const struct mgx_op *op)
{
    assert(body->bypass || body->count > 0);
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next)
        if (ins->op == op)
            return ins;
    return NULL;
}

// The operand of a final mul or add that is a parameter; *ins moves to the other operand.
static int peel(const struct mgx_op *op, const struct mgx_ins **ins)
{
    assert((*ins)->in_count == 2 || (*ins)->op != op);
    if ((*ins)->op != op)
        return -1;
    for (int i = 0; i < 2; i++) {
        const int input = mgx_parameter_index((*ins)->in[i]);
        if (input >= 0) {
            *ins = (*ins)->in[1 - i];
            return input;
        }
    }
    return -1;
}

// What is added to the mean square, a constant; nothing is 0.
static bool find_epsilon(const struct mgx_plan_offer *c, const struct mgx_ins *sum, float *value)
{
    *value = 0;
    if (sum->op != &mgx_op_add)
        return true;
    int epsilon = mgx_parameter_index(sum->in[1]);
    epsilon = epsilon >= 0 ? epsilon : mgx_parameter_index(sum->in[0]);
    if (epsilon < 0 || !c->constant[epsilon] || mgx_shape_space(&c->constant[epsilon]->shape) != 1)
        return false;
    *value = *(const float *)c->constant[epsilon]->data;
    return true;
}

static bool find_parts(struct mgx_plan_offer *c, struct norm *v, bool rms)
{
    const struct mgx_module *body = c->ins->mod[0];
    const struct mgx_ins *mean = first_of(body, &mgx_op_reduce_mean),
                         *root = first_of(body, &mgx_op_rsqrt);
    root = root ? root : first_of(body, &mgx_op_sqrt);
    if (!mean || !root || (rms && !mean->in[0]->in_count)) // a parameter is no square
        return false;
    v->x = mgx_parameter_index(rms ? mean->in[0]->in[0] : mean->in[0]);
    v->axes = mgx_ins_ints(mean, "axes").count;
    if (v->x < 0 || !find_epsilon(c, root->in[0], &v->epsilon))
        return false;
    const struct mgx_ins *last = mgx_module_result(body, 0);
    last = last->op == &mgx_op_convert ? last->in[0] : last;
    v->shift = peel(&mgx_op_add, &last);
    v->scale = peel(&mgx_op_mul, &last);
    if (rms && last->op == &mgx_op_multibroadcast) // what is left is the root: x was no scale
        v->scale = -1;
    return true;
}

// Rows over the last `axes`, contiguous, at one distance: all outer axes merge.
static bool row_stride(const struct mgx_shape *s, int axes, int64_t *stride)
{
    assert(axes > 0 && axes <= s->rank);
    int64_t expected = 0;
    *stride = 1;
    for (int i = s->rank - 1; i >= s->rank - axes; i--) {
        if (s->lens[i] != 1 && s->strides[i] != *stride)
            return false;
        *stride *= s->lens[i];
    }
    for (int i = s->rank - 1 - axes; i >= 0; i--) {
        if (s->lens[i] == 1)
            continue;
        if (expected == 0)
            *stride = s->strides[i];
        else if (s->strides[i] != expected)
            return false;
        expected = s->strides[i] * s->lens[i];
    }
    return true;
}

static bool lay_out(struct mgx_plan_offer *c, struct norm *v)
{
    const struct mgx_shape *x = &c->in[v->x];
    if (x->type != MGX_FLOAT || (c->out->type != MGX_FLOAT && c->out->type != MGX_BF16))
        return mgx_plan_unfit(c, "not float");
    if (!mgx_shape_elements(x) || !row_stride(c->out, v->axes, &v->y_row))
        return mgx_plan_unfit(c, "rows of the result do not lie at one distance");
    if (!row_stride(x, v->axes, &v->x_row))
        return mgx_plan_wish(c, v->x, MGX_PLAN_ROW_MAJOR, "rows do not lie at one distance");
    v->n = mgx_product(x->lens + x->rank - v->axes, v->axes);
    v->rows = mgx_shape_elements(x) / v->n;
    assert(v->n > 0 && v->rows * v->n == mgx_shape_elements(c->out));
    assert(cpu_reaches(x, (v->rows - 1) * v->x_row + v->n - 1) || v->rows == 1);
    return true;
}

// Bytes of a row in scratch.
static size_t room_of(const struct norm *v)
{
    return mgx_align64((size_t)v->n * sizeof(float));
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const bool rms = mgx_is_group(c->ins, "rms_norm");
    if (!rms && !mgx_is_group(c->ins, "layer_norm"))
        return mgx_plan_refuse(c);
    struct norm *v = MGX_NEW(c->arena, struct norm);
    if (!v)
        return mgx_plan_no_memory(c);
    if (!find_parts(c, v, rms))
        return mgx_plan_decline(c, "the body is not in the form known");
    if (!lay_out(c, v))
        return mgx_plan_refuse(c);
    const struct mgx_rows_kernel *kernels = mgx_rows_kernel(cpu_offered(c)->isa);
    v->kernel = rms ? kernels->rms : kernels->norm;
    c->detail = rms ? "root mean square" : "layer";
    v->tasks = cpu_tasks(c, v->rows * v->n, 1 << 14, v->rows);
    if (c->out->type == MGX_BF16) {
        v->round = mgx_convert(cpu_offered(c)->isa, MGX_KERNEL_F32, MGX_KERNEL_BF16);
        c->workspace = room_of(v) * (size_t)c->machine->threads;
    } else {
        c->in_place = v->x_row == v->y_row ? v->x : -1;
    }
    c->state = v;
    return MGX_PLAN_TAKEN;
}

struct job {
    const struct norm *v;
    const struct mgx_plan_args *args;
};

static void run_part(void *user, int task, int thread)
{
    assert(task >= 0 && task < ((const struct job *)user)->v->tasks);
    const struct job *job = user;
    const struct norm *v = job->v;
    const float *x = job->args->in[v->x];
    float *y = job->args->out;
    float *row = v->round
                     ? (float *)(void *)((char *)job->args->workspace + room_of(v) * (size_t)thread)
                     : NULL;
    const float *scale = v->scale >= 0 ? job->args->in[v->scale] : NULL;
    const float *shift = v->shift >= 0 ? job->args->in[v->shift] : NULL;
    const int64_t end = v->rows * (task + 1) / v->tasks;
    for (int64_t i = v->rows * task / v->tasks; i < end; i++) {
        float *to = row ? row : y + i * v->y_row;
        v->kernel(x + i * v->x_row, scale, shift, v->epsilon, to, v->n);
        if (row)
            v->round(row, (uint16_t *)job->args->out + i * v->y_row, v->n);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(cpu_pool(args), job.v->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(norm, 50)
const struct mgx_plan_kernel cpu_kernel_norm = {.name = "norm", .prepare = prepare, .run = run};
