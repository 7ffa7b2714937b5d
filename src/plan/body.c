// SPDX-License-Identifier: MIT
// Bodies as plans of their own; see body.h.
#include "plan/body.h"

#include <assert.h>
#include <stdlib.h>

#include "op/op.h"
#include "plan/context.h"

// --- planning ---

static bool has_bodies(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_if || ins->op == &mgx_op_loop || ins->op == &mgx_op_scan;
}

bool mgx_plan_has_bodies(const struct mgx_program *p)
{
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (has_bodies(ins))
            return true;
    return false;
}

static bool are_numbers(const struct mgx_module *m)
{
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_param && !mgx_type_is_number(ins->shape.type))
            return false;
    for (int i = 0; i < mgx_module_result_count(m); i++)
        if (!mgx_type_is_number(mgx_module_result(m, i)->shape.type))
            return false;
    return true;
}

static bool are_of_main(const struct mgx_plan *plan, const struct mgx_plan_body *b)
{
    for (int i = 0; i < b->outside_count; i++)
        if (!mgx_plan_value_of(plan, b->outside[i]))
            return false;
    return true;
}

// Results that are parameters are handed on; the program returns the others.
static enum mgx_status split_results(struct mgx_plan *plan, struct mgx_plan_body *b,
                                     struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(b->program);
    b->result_count = mgx_module_result_count(m);
    b->from = MGX_NEW_ARRAY(&plan->store.arena, int, b->result_count);
    struct mgx_ins **made = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_ins *, b->result_count);
    if (!b->from || !made)
        return mgx_fail_memory(diag);
    for (int i = 0; i < b->result_count; i++) {
        struct mgx_ins *result = mgx_module_result(m, i);
        const int parameter = mgx_parameter_index(result);
        b->from[i] = parameter >= 0 ? -1 - parameter : b->made_count;
        if (parameter < 0)
            made[b->made_count++] = result;
    }
    if (b->made_count == b->result_count || mgx_add_return(m, made, b->made_count))
        return MGX_OK;
    return mgx_program_status(b->program, diag);
}

static enum mgx_status plan_body(struct mgx_plan *plan, struct mgx_plan_body *b,
                                 const struct mgx_plan_settings *settings,
                                 mgx_plan_compile_body compile, struct mgx_diag *diag)
{
    const struct mgx_plan_settings own = {
        .offload_copy = true, .shared = settings->shared, .around = plan};
    TRY(compile(b->program, plan->machine, &own, diag));
    b->plan = (struct mgx_plan *)b->program->executable;
    mgx_program_main(b->program)->name = b->module->name; // by which failures are found
    assert(b->plan->param_count == b->own_count + b->outside_count &&
           b->plan->result_count == b->made_count);
    return MGX_OK;
}

// *taken: it has a plan now. One that makes nothing is evaluated as fast.
static enum mgx_status build_body(struct mgx_plan *plan, struct mgx_plan_body *b,
                                  const struct mgx_plan_settings *settings,
                                  mgx_plan_compile_body compile, bool *taken, struct mgx_diag *diag)
{
    *taken = are_numbers(b->module);
    if (!*taken)
        return MGX_OK;
    b->own_count = mgx_module_parameters(b->module, NULL, 0);
    TRY(mgx_program_of_body(&b->program, b->module, &plan->store.arena, &b->outside,
                            &b->outside_count, diag));
    enum mgx_status status = split_results(plan, b, diag);
    *taken = b->made_count > 0 && are_numbers(mgx_program_main(b->program)) && are_of_main(plan, b);
    if (*taken && status == MGX_OK)
        status = plan_body(plan, b, settings, compile, diag);
    if (*taken && status == MGX_OK)
        return MGX_OK;
    mgx_program_destroy(b->program);
    b->program = NULL;
    return status;
}

static enum mgx_status add_body(struct mgx_plan *plan, const struct mgx_module *m,
                                const struct mgx_plan_settings *settings,
                                mgx_plan_compile_body compile, struct mgx_diag *diag)
{
    struct mgx_plan_body body = {.module = m};
    bool taken;
    if (mgx_map_find_pointer(&plan->body_of, m))
        return MGX_OK;
    TRY(build_body(plan, &body, settings, compile, &taken, diag));
    if (!taken)
        return MGX_OK;
    struct mgx_plan_body *b = &plan->bodies[plan->body_count];
    *b = body;
    plan->body_count++;
    return mgx_map_put_pointer(&plan->body_of, m, b) ? MGX_OK : mgx_fail_memory(diag);
}

static int count_bodies(const struct mgx_program *p)
{
    int count = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        count += has_bodies(ins) ? ins->mod_count : 0;
    return count;
}

enum mgx_status mgx_plan_build_bodies(struct mgx_plan *plan,
                                      const struct mgx_plan_settings *settings,
                                      mgx_plan_compile_body compile, struct mgx_diag *diag)
{
    const struct mgx_program *p = plan->program;
    if (plan->machine->memory || !mgx_plan_has_bodies(p))
        return MGX_OK;
    plan->bodies = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_plan_body, count_bodies(p));
    if (!plan->bodies)
        return mgx_fail_memory(diag);
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        for (int i = 0; has_bodies(ins) && i < ins->mod_count; i++)
            TRY(add_body(plan, ins->mod[i], settings, compile, diag));
    return MGX_OK;
}

void mgx_plan_drop_bodies(struct mgx_plan *plan)
{
    for (int i = 0; i < plan->body_count; i++)
        mgx_program_destroy(plan->bodies[i].program);
    mgx_map_fini(&plan->body_of);
}

// --- a run's states ---

static enum mgx_status allocate(const struct mgx_plan_body *b, struct mgx_body_state *s,
                                struct mgx_diag *diag)
{
    s->params = calloc((size_t)b->plan->param_count + 1, sizeof *s->params);
    s->bound = calloc((size_t)b->outside_count + 1, sizeof *s->bound);
    s->made = calloc((size_t)b->made_count + 1, sizeof *s->made);
    if (!s->params || !s->bound || !s->made)
        return mgx_fail_memory(diag); // what there is goes with the context
    for (int i = 0; i < b->plan->param_count; i++)
        s->params[i].name = mgx_parameter_name(b->plan->params[i]);
    s->bound_count = b->outside_count;
    s->ready = true;
    return MGX_OK;
}

// The state of a body, ready to run.
static enum mgx_status enter(struct mgx_context *x, const struct mgx_plan_body *b,
                             struct mgx_body_state **out, struct mgx_diag *diag)
{
    if (!x->bodies)
        x->bodies = calloc((size_t)x->plan->body_count, sizeof *x->bodies);
    if (!x->bodies)
        return mgx_fail_memory(diag);
    struct mgx_body_state *s = *out = &x->bodies[b - x->plan->bodies];
    if (!s->ready) {
        mgx_body_state_fini(s);
        TRY(allocate(b, s, diag));
    }
    return s->context ? MGX_OK : mgx_context_take(b->plan, &s->context, diag);
}

// --- what a body is handed ---

// Of this type and these lengths, in this order of memory.
static bool lies_as(const struct mgx_tensor *t, const struct mgx_shape *want)
{
    const struct mgx_shape *s = &t->shape;
    if (s->type != want->type || s->rank != want->rank || s->dims)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] != want->lens[i] || (s->lens[i] > 1 && s->strides[i] != want->strides[i]))
            return false;
    return mgx_tensor_is_aligned(t);
}

// `t` as the plan reads the parameter, or a copy of it; *fits: it may be handed over.
static enum mgx_status bind(const struct mgx_plan *plan, int i, const struct mgx_tensor *t,
                            struct mgx_tensor *packed, struct mgx_tensor *out, bool *fits,
                            struct mgx_diag *diag)
{
    const struct mgx_ins *param = plan->params[i];
    const struct mgx_plan_value *v = mgx_plan_value_of(plan, param);
    const bool lies = !v->dynamic && lies_as(t, &v->shape);
    *fits = lies || mgx_shape_may_be(&param->shape, &t->shape);
    *out = *t;
    if (!*fits || v->dynamic || lies)
        return MGX_OK;
    TRY(mgx_tensor_create(packed, &v->shape, diag));
    mgx_tensor_copy(t, packed);
    *out = *packed;
    return MGX_OK;
}

static const struct mgx_tensor *outside_value(const struct mgx_context *x,
                                              const struct mgx_ins *ins)
{
    const struct mgx_frame *frame = x->eval.frame;
    while (frame && frame->module != ins->owner)
        frame = frame->up;
    assert(frame); // main's, of the step that is running
    return &frame->values[ins->index];
}

// Values of main are the same for all rounds of a step.
static enum mgx_status bind_outside(struct mgx_context *x, const struct mgx_plan_body *b,
                                    struct mgx_body_state *s, bool *fits, struct mgx_diag *diag)
{
    *fits = true;
    if (s->call == x->call)
        return MGX_OK;
    mgx_body_state_unbind(s);
    for (int i = 0; i < b->outside_count && *fits; i++)
        TRY(bind(b->plan, b->own_count + i, outside_value(x, b->outside[i]), &s->bound[i],
                 &s->params[b->own_count + i].tensor, fits, diag));
    s->call = *fits ? x->call : 0;
    return MGX_OK;
}

// --- a round ---

static void hand_on(const struct mgx_context *x, const struct mgx_plan_body *b,
                    struct mgx_body_state *s, const struct mgx_tensor *args,
                    struct mgx_tensor *results)
{
    for (int i = 0; i < b->result_count; i++) {
        const int from = b->from[i], param = -1 - from;
        if (from >= 0)
            results[i] = s->made[from];
        else if (param < b->own_count)
            results[i] = mgx_tensor_share(&args[param]);
        else
            results[i] = mgx_tensor_share(outside_value(x, b->outside[param - b->own_count]));
    }
}

static enum mgx_status run(struct mgx_context *x, const struct mgx_plan_body *b,
                           struct mgx_body_state *s, const struct mgx_plan_body_call *call,
                           bool *fits, struct mgx_diag *diag)
{
    struct mgx_tensor *packed = MGX_NEW_ARRAY(x->eval.scratch, struct mgx_tensor, b->own_count);
    enum mgx_status status = packed ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; i < b->own_count && *fits && status == MGX_OK; i++)
        status = bind(b->plan, i, &call->args[i], &packed[i], &s->params[i].tensor, fits, diag);
    struct mgx_run round = {.params = s->params,
                            .param_count = b->plan->param_count,
                            .results = s->made,
                            .result_count = b->made_count};
    if (status == MGX_OK && *fits)
        status = call->round(s->context, &round, &x->eval, diag);
    for (int i = 0; packed && i < b->own_count; i++)
        mgx_tensor_release(&packed[i]);
    return status;
}

enum mgx_status mgx_plan_run_body(struct mgx_context *x, const struct mgx_plan_body_call *call,
                                  bool *done, struct mgx_diag *diag)
{
    const struct mgx_plan_body *b = mgx_map_find_pointer(&x->plan->body_of, call->module);
    struct mgx_body_state *s;
    bool fits;
    *done = false;
    if (!b || call->arg_count != b->own_count)
        return MGX_OK;
    TRY(enter(x, b, &s, diag));
    TRY(bind_outside(x, b, s, &fits, diag));
    if (fits)
        TRY(run(x, b, s, call, &fits, diag));
    if (fits)
        hand_on(x, b, s, call->args, call->results);
    *done = fits;
    return MGX_OK;
}
