// SPDX-License-Identifier: MIT
// Kernels of the far target: the reference's own arithmetic, on its queues, on its memory.
#include "far/far.h"

#include <string.h>

#include "op/eval/eval.h"
#include "op/op.h"
#include "plan/plan.h"
#include "plan/reference.h"

enum { MAX_IN = 16 };

struct call {
    const struct mgx_plan_step *step;
    void *in[MAX_IN], *out, *workspace;
};

static enum mgx_status submit(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                              far_work work, struct mgx_diag *diag)
{
    struct call c = {.step = step, .out = args->out, .workspace = args->workspace};
    memcpy(c.in, args->in, (size_t)step->in_count * sizeof *c.in);
    return far_submit(args->queue, work, &c, sizeof c, diag);
}

static struct mgx_tensor operand(const struct call *c, int i)
{
    return mgx_tensor_borrow(&c->step->in_value[i]->shape, far_look(c->in[i]));
}

// --- copies ---

static enum mgx_status copy_now(void *arguments, struct mgx_diag *diag)
{
    (void)diag;
    const struct call *c = arguments;
    const struct mgx_tensor from = operand(c, 0);
    struct mgx_tensor to = mgx_tensor_borrow(&c->step->out_value->shape, far_look(c->out));
    if (mgx_shape_elements(&to.shape))
        mgx_tensor_copy(&from, &to);
    return MGX_OK;
}

static enum mgx_plan_answer prepare_copy(struct mgx_plan_offer *c)
{
    return c->copy_only || (c->ins->op == &mgx_op_contiguous && c->in_count == 1)
               ? MGX_PLAN_TAKEN
               : MGX_PLAN_DECLINED;
}

static enum mgx_status run_copy(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                struct mgx_diag *diag)
{
    return submit(step, args, copy_now, diag);
}

const struct mgx_plan_kernel far_kernel_copy = {
    .name = "far copy", .prepare = prepare_copy, .run = run_copy};

// --- instructions that the reference computes, by way of the workspace ---

static enum mgx_status compute_now(void *arguments, struct mgx_diag *diag)
{
    const struct call *c = arguments;
    const struct mgx_ins *ins = c->step->ins;
    struct mgx_arena strings;
    struct mgx_eval eval = {.strings = &strings};
    struct mgx_tensor values[MAX_IN], made = {0};
    const struct mgx_tensor *in[MAX_IN];
    for (int i = 0; i < c->step->in_count; i++) {
        values[i] = operand(c, i);
        in[i] = &values[i];
    }
    mgx_arena_init(&strings);
    enum mgx_status status = mgx_eval_op(&eval, ins->op, ins->attr, in, c->step->in_count, ins->mod,
                                         ins->mod_count, &ins->shape, &made, diag);
    if (status == MGX_OK && mgx_shape_elements(&made.shape)) {
        const struct mgx_shape packed =
            mgx_shape_make(made.shape.type, made.shape.rank, made.shape.lens);
        struct mgx_tensor room = mgx_tensor_borrow(&packed, far_look(c->workspace)),
                          to = mgx_tensor_borrow(&c->step->out_value->shape, far_look(c->out));
        mgx_tensor_copy(&made, &room);
        mgx_tensor_copy(&room, &to);
    }
    mgx_tensor_release(&made);
    mgx_arena_fini(&strings);
    return status;
}

static bool is_plain(const struct mgx_plan_offer *c)
{
    bool plain = c->in_count > 0 && c->in_count <= MAX_IN && mgx_type_is_number(c->out->type);
    for (int i = 0; i < c->in_count; i++)
        plain = plain && mgx_type_is_number(c->in[i].type) && mgx_shape_is_static(&c->in[i]);
    return plain;
}

static bool is_known(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || ins->op == &mgx_op_convert || ins->op == &mgx_op_dot ||
           (ins->op->flags & (MGX_OP_POINTWISE | MGX_OP_REDUCE)) ||
           (ins->op == &mgx_op_group &&
            strcmp(mgx_attr_text(ins->op, ins->attr, "tag"), "epilogue") == 0);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (!is_known(c->ins))
        return MGX_PLAN_DECLINED;
    if (!is_plain(c)) {
        c->why = "operands are not numbers";
        return MGX_PLAN_DECLINED;
    }
    // Constants are packed to nothing else: as a check that their values are the host's to read.
    for (int i = 0; i < c->in_count; i++)
        if (c->constant[i] && mgx_shape_elements(&c->constant[i]->shape))
            (void)mgx_load_double(c->constant[i]->shape.type, c->constant[i]->data, 0);
    for (int i = 0; i < c->in_count && c->in_place < 0; i++)
        if (mgx_shape_equal(&c->in[i], c->out) && mgx_shape_is_packed(c->out))
            c->in_place = i;
    c->workspace = mgx_shape_bytes(&c->ins->shape);
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    return submit(step, args, compute_now, diag);
}

static const struct mgx_plan_kernel far_kernel_compute = {
    .name = "far", .prepare = prepare, .run = run};

const struct mgx_plan_kernel *const far_kernels[] = {&far_kernel_copy, &far_kernel_compute,
                                                     &mgx_plan_reference, NULL};
