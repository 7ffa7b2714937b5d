// SPDX-License-Identifier: MIT
// The operator's own compute; see reference.h.
//
// Also the way of values whose size is known only at run time: they live as tensors in slots of the
// context. Bodies of if, loop and scan read what they capture through a frame of borrowed tensors.
#include "plan/reference.h"

#include <assert.h>

#include "op/op.h"
#include "plan/context.h"

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (!c->ins->op->compute) {
        mgx_fail(c->diag, MGX_UNSUPPORTED, "%s: has no reference compute", c->ins->op->name);
        return MGX_PLAN_FAILED;
    }
    // A kernel may take it once its sizes are known.
    c->detail = c->dynamic ? "by size, or reference" : "reference";
    return MGX_PLAN_TAKEN;
}

static struct mgx_tensor operand(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 int i)
{
    const struct mgx_plan_value *v = step->in_value[i];
    return v->dynamic ? *mgx_context_dynamic(args->context, v)
                      : mgx_tensor_borrow(&v->shape, args->in[i]);
}

// Inputs that are dropped after the step and that it reads once.
static unsigned dying(const struct mgx_plan_step *step)
{
    unsigned bits = 0;
    for (int i = 0; i < step->own_count && i < 32; i++) {
        const struct mgx_plan_value *v = step->in_value[i];
        bool drops = false;
        for (int k = 0; k < step->drop_count && v->place == MGX_PLAN_DYNAMIC; k++)
            drops |= step->drop[k] == v->index;
        for (int k = 0; k < step->in_count; k++)
            drops &= k == i || step->in_value[k] != v;
        bits |= (unsigned)drops << i;
    }
    return bits;
}

// A result may be a view of a planned value, whose bytes will be another's: such a one is copied.
static enum mgx_status keep(const struct mgx_context *x, struct mgx_tensor *t,
                            struct mgx_diag *diag)
{
    for (int i = 0; i < t->sub_count; i++)
        TRY(keep(x, &t->sub[i], diag));
    const unsigned char *data = t->data;
    const unsigned char *scratch = x->scratch[MGX_PLAN_HOST];
    const bool planned = !t->sub && data >= scratch &&
                         data < scratch + x->plan->block[MGX_PLAN_HOST].bytes &&
                         mgx_shape_elements(&t->shape) > 0;
    if (!planned)
        return MGX_OK;
    struct mgx_tensor own;
    TRY(mgx_tensor_clone(&own, t, diag));
    mgx_tensor_release(t);
    *t = own;
    return MGX_OK;
}

// Computes into memory of its own, then copies: for results that the reference would not lay out as
// planned.
static enum mgx_status run_apart(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 const struct mgx_tensor *const *in, struct mgx_diag *diag)
{
    const struct mgx_plan_value *out = step->out_value;
    const struct mgx_ins *ins = step->ins;
    struct mgx_tensor value;
    args->context->late.dying = dying(step);
    TRY(mgx_eval_op(&args->context->eval, ins->op, ins->attr, in, step->own_count, ins->mod,
                    ins->mod_count, &ins->shape, &value, diag));
    if (out->dynamic) {
        const enum mgx_status status = keep(args->context, &value, diag);
        args->context->dynamic[out->index] = value;
        return status;
    }
    struct mgx_tensor to = mgx_tensor_borrow(&out->shape, args->out);
    mgx_tensor_copy(&value, &to);
    mgx_tensor_release(&value);
    return MGX_OK;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    struct mgx_context *x = args->context;
    assert(x && !x->busy && step->side == MGX_PLAN_HOST);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_tensor *values = MGX_NEW_ARRAY(&arena, struct mgx_tensor, step->own_count);
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(&arena, const struct mgx_tensor *, step->own_count);
    enum mgx_status status = values && in ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; status == MGX_OK && i < step->own_count; i++) {
        values[i] = operand(step, args, i);
        in[i] = &values[i];
    }
    for (int i = step->own_count; status == MGX_OK && i < step->in_count; i++)
        x->values[step->in_value[i]->ins->index] = operand(step, args, i);
    const struct mgx_frame frame = {.module = step->ins->owner, .values = x->values};
    x->eval.frame = &frame;
    x->eval.depth = 1;
    if (status == MGX_OK)
        status = run_apart(step, args, in, diag);
    x->eval.frame = NULL;
    x->eval.depth = 0;
    mgx_arena_fini(&arena);
    return status;
}

const struct mgx_plan_kernel mgx_plan_reference = {
    .name = "ref", .host = true, .prepare = prepare, .run = run};
