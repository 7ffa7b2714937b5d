// SPDX-License-Identifier: MIT
// The operator's own compute; see reference.h.
//
// Also the way of values whose size is known only at run time: they live as tensors in slots of the
// context. Bodies of if, loop and scan read what they capture through a frame of borrowed tensors.
#include "plan/reference.h"

#include <assert.h>

#include "op/op.h"
#include "plan/choice.h"
#include "plan/context.h"
#include "plan/join.h"

// Of a step that recurs: what its calls have in common. False when out of memory.
static bool make_site(struct mgx_plan_offer *c)
{
    struct mgx_plan_site site;
    if (!mgx_plan_late_recurs(c->ins, &site))
        return true;
    c->state = mgx_arena_memdup(c->arena, &site, sizeof site);
    return c->state != NULL;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (!c->ins->op->compute) {
        mgx_fail(c->diag, MGX_UNSUPPORTED, "%s: has no reference compute", c->ins->op->name);
        return MGX_PLAN_FAILED;
    }
    // A kernel may take it once its sizes are known.
    if (c->dynamic && !make_site(c))
        return mgx_plan_no_memory(c);
    c->detail = c->dynamic ? "by size, or reference" : "reference";
    return MGX_PLAN_TAKEN;
}

static enum mgx_plan_answer prepare_hand_on(struct mgx_plan_offer *c)
{
    if (c->copy_only || !c->dynamic || !(c->ins->op->flags & MGX_OP_HANDS_ON))
        return MGX_PLAN_DECLINED;
    c->detail = "members as they are";
    return MGX_PLAN_TAKEN;
}

// --- who owns what an operand shows ---

static bool holds(const struct mgx_storage *storage, const void *data)
{
    return storage && (uintptr_t)data - (uintptr_t)storage->data < storage->bytes;
}

// Of a constant: its literal's storage, or a chunk of the store when it was moved.
static struct mgx_storage *keeper_of_constant(const struct mgx_context *x,
                                              const struct mgx_plan_value *root, const void *data)
{
    if (root->ins->literal && holds(root->ins->literal->storage, data))
        return root->ins->literal->storage;
    const struct mgx_kept *packed = &x->plan->store.packed;
    for (int64_t i = 0; i < packed->count; i++)
        if (!packed->v[i]->memory && holds(packed->v[i], data))
            return packed->v[i];
    return mgx_plan_join_keeper(&x->plan->store, data);
}

// The storage of a planned value's bytes, which a view that leaves the step takes a share in; NULL
// for scratch, and for bytes that the caller lent.
static struct mgx_storage *keeper_of(const struct mgx_context *x, struct mgx_plan_value *v,
                                     const void *data)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    if (root->place == MGX_PLAN_PARAM)
        return x->params[root->index].tensor.storage;
    if (root->place == MGX_PLAN_CONST)
        return keeper_of_constant(x, root, data);
    if (root->place != MGX_PLAN_RESULT)
        return NULL;
    const int param = x->plan->results[root->index].param;
    struct mgx_storage *given = param >= 0 ? x->params[param].tensor.storage : NULL;
    return holds(given, data)                     ? given
           : holds(x->results[root->index], data) ? x->results[root->index]
                                                  : NULL;
}

static struct mgx_tensor operand(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 int i)
{
    struct mgx_plan_value *v = step->in_value[i];
    assert(v->dynamic || args->in[i] || !mgx_shape_elements(&v->shape));
    if (v->dynamic)
        return *mgx_context_dynamic(args->context, v);
    struct mgx_tensor t = mgx_tensor_borrow(&v->shape, args->in[i]);
    if (mgx_shape_elements(&v->shape))
        t.storage = keeper_of(args->context, v, t.data);
    return t;
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

static bool is_lent(const struct mgx_context *x, const void *data)
{
    for (int i = 0; i < x->plan->param_count; i++) {
        const struct mgx_tensor *t = &x->params[i].tensor;
        if (!t->storage && t->data &&
            (uintptr_t)data - (uintptr_t)t->data < mgx_shape_bytes(&t->shape))
            return true;
    }
    return false;
}

// Does it lie where the caller wants a result?
static bool is_placed(const struct mgx_context *x, const void *data)
{
    for (int k = 0; x->run->place && k < x->plan->result_count; k++)
        if (x->plan->results[k].value->dynamic && x->run->placed[k] == data)
            return true;
    return false;
}

// A result may be a view of bytes that nobody keeps for it (scratch, which will be another's): such
// a one is copied. What the caller lent stays the caller's.
static enum mgx_status keep(const struct mgx_context *x, struct mgx_tensor *t,
                            struct mgx_diag *diag)
{
    for (int i = 0; i < t->sub_count; i++)
        TRY(keep(x, &t->sub[i], diag));
    if (t->sub || t->storage || !mgx_shape_elements(&t->shape) || is_lent(x, t->data) ||
        is_placed(x, t->data))
        return MGX_OK;
    struct mgx_tensor own;
    TRY(mgx_tensor_clone(&own, t, diag));
    mgx_tensor_release(t);
    *t = own;
    return MGX_OK;
}

static struct mgx_compute_call call_of(const struct mgx_plan_step *step, struct mgx_context *x,
                                       const struct mgx_tensor *const *in, struct mgx_tensor *value,
                                       struct mgx_diag *diag)
{
    const struct mgx_ins *ins = step->ins;
    return (struct mgx_compute_call){.op = ins->op,
                                     .attr = ins->attr,
                                     .in = in,
                                     .in_count = step->own_count,
                                     .out = value,
                                     .declared = &ins->shape,
                                     .mod = ins->mod,
                                     .mod_count = ins->mod_count,
                                     .eval = &x->eval,
                                     .scratch = &x->work,
                                     .diag = diag};
}

// The value of a step, where its readers look for it: a slot, or what was planned, into which it is
// copied unless it came there.
static enum mgx_status put(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_tensor *value, struct mgx_diag *diag)
{
    const struct mgx_plan_value *out = step->out_value;
    if (out->dynamic) {
        const enum mgx_status status = keep(args->context, value, diag);
        assert(out->place == MGX_PLAN_DYNAMIC && !args->context->dynamic[out->index].storage);
        args->context->dynamic[out->index] = *value;
        return status;
    }
    if (value->storage || value->data != args->out) {
        struct mgx_tensor to = mgx_tensor_borrow(&out->shape, args->out);
        mgx_tensor_copy(value, &to);
    }
    mgx_tensor_release(value);
    return MGX_OK;
}

// Computes into memory of its own, then copies: for results that the reference would not lay out as
// planned.
static enum mgx_status run_apart(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 const struct mgx_tensor *const *in, struct mgx_diag *diag)
{
    const struct mgx_ins *ins = step->ins;
    struct mgx_context *x = args->context;
    struct mgx_tensor value;
    x->late.dying = dying(step);
    x->late.site = step->state;
    TRY(mgx_eval_op(&x->eval, ins->op, ins->attr, in, step->own_count, ins->mod, ins->mod_count,
                    &ins->shape, &value, diag));
    if (step->state) {
        struct mgx_compute_call call = call_of(step, x, in, &value, diag);
        mgx_plan_late_note(&x->late, step->state, &call);
    }
    return put(step, args, &value, diag);
}

static bool is_constant(struct mgx_plan_value *v)
{
    return mgx_plan_root(v, NULL)->place == MGX_PLAN_CONST;
}

// As with these lengths before, if it ever had them.
static enum mgx_status run_again(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                 bool *done, struct mgx_diag *diag)
{
    struct mgx_context *x = args->context;
    const struct mgx_plan_value *out = step->out_value;
    const struct mgx_tensor *in[MGX_PLAN_CHOICE_INPUTS];
    struct mgx_tensor planned[MGX_PLAN_CHOICE_INPUTS], place, value;
    unsigned literals = 0;
    assert(step->in_count <= MGX_PLAN_CHOICE_INPUTS && step->in_count == step->own_count);
    for (int i = 0; i < step->in_count; i++)
        if (step->in_value[i]->dynamic) {
            in[i] = mgx_context_dynamic(x, step->in_value[i]);
        } else {
            planned[i] = operand(step, args, i);
            in[i] = &planned[i];
            literals |= (unsigned)is_constant(step->in_value[i]) << i;
        }
    if (!out->dynamic)
        place = mgx_tensor_borrow(&out->shape, args->out);
    struct mgx_compute_call call = call_of(step, x, in, &value, diag);
    x->late.dying = dying(step);
    x->eval.depth = 1;
    enum mgx_status status = mgx_plan_late_again(&x->late, step->state, literals,
                                                 out->dynamic ? NULL : &place, &call, done);
    x->eval.depth = 0;
    return status == MGX_OK && *done ? put(step, args, &value, diag) : status;
}

static enum mgx_status run_anew(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                                struct mgx_diag *diag)
{
    struct mgx_context *x = args->context;
    (void)!mgx_arena_alloc(&x->work, 1); // a block that stays for the run
    const struct mgx_arena_mark mark = mgx_arena_mark(&x->work);
    struct mgx_tensor *values = MGX_NEW_ARRAY(&x->work, struct mgx_tensor, step->own_count);
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(&x->work, const struct mgx_tensor *, step->own_count);
    enum mgx_status status = values && in ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; status == MGX_OK && i < step->own_count; i++) {
        values[i] = operand(step, args, i);
        in[i] = &values[i];
    }
    for (int i = step->own_count; status == MGX_OK && i < step->in_count; i++) {
        assert(step->in_value[i]->ins->index < x->plan->value_count);
        x->values[step->in_value[i]->ins->index] = operand(step, args, i);
    }
    const struct mgx_frame frame = {.module = step->ins->owner, .values = x->values};
    x->eval.frame = &frame;
    x->eval.depth = 1;
    x->call++;
    if (status == MGX_OK)
        status = run_apart(step, args, in, diag);
    x->eval.frame = NULL;
    x->eval.depth = 0;
    mgx_arena_rewind(&x->work, mark);
    return status;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    bool done = false;
    assert(args->context && !args->context->busy && step->side == MGX_PLAN_HOST);
    if (step->state && step->in_count == step->own_count)
        TRY(run_again(step, args, &done, diag));
    return done ? MGX_OK : run_anew(step, args, diag);
}

const struct mgx_plan_kernel mgx_plan_reference = {
    .name = "ref", .host = true, .prepare = prepare, .run = run};

const struct mgx_plan_kernel mgx_plan_hand_on = {
    .name = "hand_on", .host = true, .prepare = prepare_hand_on, .run = run};
