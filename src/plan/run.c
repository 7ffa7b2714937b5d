// SPDX-License-Identifier: MIT
// Running a plan: a context from the pool, parameters in, the steps one after the other, results
// out.
//
// Steps of the machine's own side are given to the queue; before a step of the host runs, the queue
// is empty. So bytes of both sides are touched in the order of the steps.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "op/op.h"
#include "plan/body.h"
#include "plan/context.h"
#include "plan/join.h"
#include "plan/record.h"
#include "plan/witness.h"

// The kernel's work; in a debug build with a witness beside it in the context's first run.
static enum mgx_status call(const struct mgx_context *x, const struct mgx_plan_step *step,
                            const struct mgx_plan_args *args, struct mgx_diag *diag)
{
#ifndef NDEBUG
    struct mgx_plan_witness witness;
    if (!x->ran) {
        TRY(mgx_plan_witness_hear(&witness, step, args, diag));
        const enum mgx_status status = step->kernel->run(step, args, diag);
        if (status == MGX_OK)
            return mgx_plan_witness_compare(&witness, step, args, diag);
        mgx_tensor_release(&witness.want);
        return status;
    }
#endif
    (void)x;
    return step->kernel->run(step, args, diag);
}

static enum mgx_status run_step(struct mgx_context *x, const struct mgx_plan_step *step,
                                struct mgx_diag *diag)
{
    if (step->side == MGX_PLAN_DEVICE)
        x->busy = true;
    else if (x->busy)
        TRY(mgx_context_wait(x, diag));
    assert(step->in_count <= x->plan->max_in && (step->side == MGX_PLAN_DEVICE || !x->busy));
    for (int i = 0; i < step->in_count; i++)
        x->in[i] = step->skip[i] ? NULL : mgx_context_address(x, &step->in[i]);
    const struct mgx_plan_args args = {.in = x->in,
                                       .out = mgx_context_address(x, &step->out),
                                       .workspace =
                                           x->scratch[step->side] + step->workspace_scratch,
                                       .machine = x->plan->machine,
                                       .queue = x->queue,
                                       .context = x};
    const enum mgx_status status = call(x, step, &args, diag);
    assert((status == MGX_OK) == (diag->status == MGX_OK));
    for (int i = 0; i < step->drop_count; i++)
        mgx_tensor_release(&x->dynamic[step->drop[i]]);
    return status;
}

// --- tracing ---

// The value on the host, when the step was the machine's own.
static enum mgx_status fetch(struct mgx_context *x, const struct mgx_shape *shape, const void *from,
                             struct mgx_tensor *out, struct mgx_diag *diag)
{
    TRY(mgx_tensor_create(out, shape, diag));
    x->busy = true;
    enum mgx_status status =
        x->plan->machine->memory->copy_out(x->queue, out->data, from, mgx_shape_bytes(shape), diag);
    if (status == MGX_OK)
        status = mgx_context_wait(x, diag);
    if (status != MGX_OK)
        mgx_tensor_release(out);
    return status;
}

// A view of joined weights shows nothing yet.
static void fill_shown(struct mgx_context *x, const struct mgx_tensor *value)
{
    pthread_mutex_lock(&x->late.late->lock);
    mgx_plan_join_fill(&x->plan->store, value->data, true);
    pthread_mutex_unlock(&x->late.late->lock);
}

static enum mgx_status trace(struct mgx_context *x, const struct mgx_plan_step *step,
                             struct mgx_run *run, struct mgx_diag *diag)
{
    const struct mgx_plan_value *v = step->out_value;
    if (v->ins != step->ins)
        return MGX_OK;                   // a copy on the way to another step
    if (step->out.side == MGX_PLAN_HOST) // a copy from the device is on its way
        TRY(mgx_context_wait(x, diag));
    const void *at = mgx_context_address(x, &step->out);
    struct mgx_tensor value;
    if (!v->dynamic && step->out.side == MGX_PLAN_DEVICE && mgx_shape_bytes(&v->shape))
        TRY(fetch(x, &v->shape, at, &value, diag));
    else
        value = v->dynamic ? mgx_tensor_share(mgx_context_dynamic(x, v))
                           : mgx_tensor_borrow(&v->shape, at);
    fill_shown(x, &value);
    const enum mgx_status status = run->trace(run->trace_user, step->ins, &value, diag);
    mgx_tensor_release(&value);
    return status;
}

// A model's weights push what says how to run a step out of the caches before it runs again. So the
// step after next comes back while this one works, and what the next one, here by now, points at.
// (A function of its own, with nothing but hints in it, gcc takes for one without effect.)
static inline __attribute__((always_inline)) void fetch_steps(const struct mgx_plan *plan, int s)
{
    enum { LINE = 64, STATE = 4 * LINE };
    if (s + 2 < plan->step_count)
        for (size_t i = 0; i < sizeof *plan->steps; i += LINE)
            __builtin_prefetch((const char *)&plan->steps[s + 2] + i);
    if (s + 1 == plan->step_count)
        return;
    const struct mgx_plan_step *next = &plan->steps[s + 1];
    __builtin_prefetch(next->in);
    __builtin_prefetch(next->skip);
    for (uintptr_t i = 0; i < STATE; i += LINE) // a number: there may be no state
        __builtin_prefetch((const void *)((uintptr_t)next->state + i));
}

// What step s is one call with, or by; NULL where somebody wants what each step leaves, and not its
// time alone.
static const struct mgx_plan_bundle *together(const struct mgx_context *x,
                                              const struct mgx_run *run, int s)
{
#ifndef NDEBUG
    if (!x->ran) // each has a witness
        return NULL;
#endif
    return !run->trace || run->time ? x->plan->steps[s].bundle : NULL;
}

// All of them in one call, or one by one after all.
static enum mgx_status run_bundle(struct mgx_context *x, const struct mgx_plan_step *first,
                                  struct mgx_diag *diag)
{
    const struct mgx_plan_bundle *bundle = first->bundle;
    bool done = false;
    if (first->side == MGX_PLAN_DEVICE)
        x->busy = true;
    else if (x->busy)
        TRY(mgx_context_wait(x, diag));
    TRY(bundle->run(bundle->state, x, &done, diag));
    for (int i = 0; i < bundle->count && !done; i++)
        TRY(run_step(x, first + i, diag));
    return MGX_OK;
}

static enum mgx_status run_steps(struct mgx_context *x, struct mgx_run *run, int first, int last,
                                 struct mgx_diag *diag)
{
    for (int s = first, count; s <= last; s += count) {
        const struct mgx_plan_step *step = &x->plan->steps[s];
        enum mgx_status status = MGX_OK;
        const struct mgx_plan_bundle *bundle = together(x, run, s);
        count = bundle ? bundle->count : 1;
        fetch_steps(x->plan, s + count - 1);
        status = bundle ? run_bundle(x, step, diag) : run_step(x, step, diag);
        if (status == MGX_OK)
            status = mgx_cancel_check(diag);
        if (status == MGX_OK && run->trace)
            status = trace(x, step, run, diag);
        if (status != MGX_OK) {
            mgx_ins_blame(step->ins, diag);
            return status;
        }
    }
    return MGX_OK;
}

// --- timing ---

// Marks 2 s and 2 s + 1 are around step s, if it is the machine's.
static enum mgx_status time_step(struct mgx_context *x, struct mgx_run *run, int s, void **marks,
                                 struct mgx_diag *diag)
{
    const struct mgx_memory *memory = x->plan->machine->memory;
    const struct mgx_plan_step *step = &x->plan->steps[s];
    if (step->side == MGX_PLAN_DEVICE) {
        TRY(memory->mark(x->queue, &marks[2 * s], diag));
        TRY(run_steps(x, run, s, s, diag));
        return memory->mark(x->queue, &marks[2 * s + 1], diag);
    }
    TRY(mgx_context_wait(x, diag));
    const double start = mgx_clock_seconds();
    TRY(run_steps(x, run, s, s, diag));
    run->time(run->time_user, step->ins, 1e6 * (mgx_clock_seconds() - start));
    return MGX_OK;
}

static enum mgx_status tell_times(struct mgx_context *x, struct mgx_run *run, void *const *marks,
                                  struct mgx_diag *diag)
{
    for (int s = 0; s < x->plan->step_count; s++) { // of a bundle the first has all
        double took = 0;
        if (!marks[2 * s + 1])
            continue;
        TRY(x->plan->machine->memory->elapsed(x->queue, marks[2 * s], marks[2 * s + 1], &took,
                                              diag));
        run->time(run->time_user, x->plan->steps[s].ins, took);
    }
    return MGX_OK;
}

static enum mgx_status run_timed(struct mgx_context *x, const struct mgx_run *run,
                                 struct mgx_diag *diag)
{
    const int count = x->plan->step_count;
    struct mgx_run blind = *run;
    void **marks = calloc(2 * (size_t)count + 1, sizeof *marks);
    enum mgx_status status = marks ? MGX_OK : mgx_fail_memory(diag);
    blind.trace = NULL;
    for (int s = 0, next; s < count && status == MGX_OK; s = next) {
        const struct mgx_plan_bundle *bundle = together(x, &blind, s);
        next = s + (bundle ? bundle->count : 1);
        status = time_step(x, &blind, s, marks, diag);
    }
    if (status == MGX_OK)
        status = mgx_context_wait(x, diag);
    if (status == MGX_OK)
        status = tell_times(x, &blind, marks, diag);
    for (int i = 0; marks && i < 2 * count; i++)
        x->plan->machine->memory->unmark(x->queue, marks[i]);
    free(marks);
    return status;
}

static enum mgx_status run_stretch(struct mgx_context *x, struct mgx_run *run, int number,
                                   struct mgx_diag *diag)
{
    const struct mgx_plan_stretch *s = &x->plan->stretches[number];
    enum mgx_plan_played what;
    TRY(mgx_plan_play(x, number, &what, diag));
    if (what == MGX_PLAN_RECORD) {
        struct mgx_diag quiet = {.status = MGX_OK};
        const bool failed = run_steps(x, run, s->first, s->last, &quiet) != MGX_OK;
        if (mgx_plan_recorded(x, number, failed))
            what = MGX_PLAN_PLAYED;
    }
    return what == MGX_PLAN_PLAYED ? mgx_cancel_check(diag)
                                   : run_steps(x, run, s->first, s->last, diag);
}

// Whoever traces sees every step.
static enum mgx_status run_all(struct mgx_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    const struct mgx_plan *plan = x->plan;
    const struct mgx_memory *memory = plan->machine->memory;
    int next = 0;
    if (run->time && memory && memory->mark)
        return run_timed(x, run, diag);
    for (int i = 0; i < plan->stretch_count && !run->trace; i++) {
        TRY(run_steps(x, run, next, plan->stretches[i].first - 1, diag));
        TRY(run_stretch(x, run, i, diag));
        next = plan->stretches[i].last + 1;
    }
    return run_steps(x, run, next, plan->step_count - 1, diag);
}

// --- results ---

// What the caller brought for it; NULL if nothing.
static const struct mgx_tensor *brought(const struct mgx_context *x,
                                        const struct mgx_plan_result *result)
{
    const struct mgx_tensor *t = result->param >= 0 ? &x->params[result->param].tensor : NULL;
    return t && t->data ? t : NULL;
}

// A storage the caller has released since the last run serves again.
static enum mgx_status make_result(struct mgx_context *x, int k, struct mgx_diag *diag)
{
    const struct mgx_plan_result *result = &x->plan->results[k];
    const bool device = result->value->side == MGX_PLAN_DEVICE;
    struct mgx_storage *old = x->results[k];
    if (!old || atomic_load_explicit(&old->refs, memory_order_acquire) != 1) {
        const size_t bytes = mgx_shape_bytes(&result->shape); // which the plan has looked at
        struct mgx_storage *fresh =
            mgx_storage_create(device ? x->plan->machine->memory : NULL, bytes);
        if (!fresh)
            return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes%s%s", bytes,
                            device ? " on " : "", device ? x->plan->machine->memory->name : "");
        mgx_storage_release(old);
        x->results[k] = fresh;
    }
    x->out[k] = x->results[k]->data;
    return MGX_OK;
}

// The caller's bytes for it; NULL if there are none.
static void *placed(const struct mgx_context *x, const struct mgx_run *run, int k)
{
    if (!run->place || x->plan->machine->memory)
        return NULL;
    if (!run->placed[k])
        run->placed[k] = run->place(run->place_user, k, &x->plan->results[k].shape);
    return run->placed[k];
}

static enum mgx_status prepare_results(struct mgx_context *x, const struct mgx_run *run,
                                       struct mgx_diag *diag)
{
    for (int k = 0; k < x->plan->result_count; k++) {
        const struct mgx_plan_result *result = &x->plan->results[k];
        if (result->value->dynamic)
            continue;
        if (brought(x, result))
            x->out[k] = brought(x, result)->data;
        else if (!(x->out[k] = placed(x, run, k)))
            TRY(make_result(x, k, diag));
    }
    return MGX_OK;
}

// Bytes of strings lie in the run's arena; members of a tuple may be strings too.
static bool holds_text(const struct mgx_tensor *t)
{
    bool text = t->shape.type == MGX_STRING || t->shape.type == MGX_SEQUENCE;
    for (int i = 0; t->sub && i < t->sub_count && !text; i++)
        text = holds_text(&t->sub[i]);
    return text;
}

static enum mgx_status hand_out_one(struct mgx_context *x, const struct mgx_run *run, int k,
                                    struct mgx_tensor *out, struct mgx_diag *diag)
{
    const struct mgx_plan_result *result = &x->plan->results[k];
    if (result->value->dynamic) {
        const struct mgx_tensor *value = mgx_context_dynamic(x, result->value);
        if (holds_text(value))
            return mgx_tensor_clone(out, value, diag);
        *out = mgx_tensor_share(value);
    } else if (brought(x, result)) {
        *out = mgx_tensor_share(brought(x, result));
    } else if (run->place && run->placed[k]) {
        *out = mgx_tensor_borrow(&result->shape, run->placed[k]);
    } else {
        *out = (struct mgx_tensor){.shape = result->shape,
                                   .data = x->results[k]->data,
                                   .storage = mgx_storage_retain(x->results[k])};
    }
    return MGX_OK;
}

// All of them, or none.
static enum mgx_status hand_out(struct mgx_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    int done = 0;
    while (done < x->plan->result_count && status == MGX_OK) {
        status = hand_out_one(x, run, done, &run->results[done], diag);
        done += status == MGX_OK;
    }
    while (status != MGX_OK && done > 0)
        mgx_tensor_release(&run->results[--done]);
    return status;
}

// --- a run ---

// Two cards may have one name.
static enum mgx_status fail_side(const char *name, const struct mgx_memory *has,
                                 const struct mgx_memory *want, struct mgx_diag *diag)
{
    const struct mgx_memory *side[] = {has, want};
    struct mgx_str text[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        mgx_str_put(&text[i], side[i] ? side[i]->name : "the host");
        if (side[i] && side[i]->device)
            mgx_str_printf(&text[i], " (%s)", side[i]->device);
    }
    mgx_fail(diag, MGX_INVALID, "parameter %s lies in memory of %s, not of %s", name,
             mgx_str_text(&text[0]), mgx_str_text(&text[1]));
    mgx_str_fini(&text[0]);
    mgx_str_fini(&text[1]);
    return diag->status;
}

// A parameter lies where the plan reads it.
static enum mgx_status check_sides(const struct mgx_context *x, struct mgx_diag *diag)
{
    const struct mgx_plan *plan = x->plan;
    for (int i = 0; i < plan->param_count; i++) {
        const struct mgx_plan_value *v = mgx_plan_value_of(plan, plan->params[i]);
        const struct mgx_memory *want = v->side == MGX_PLAN_DEVICE ? plan->machine->memory : NULL,
                                *has = mgx_tensor_memory(&x->params[i].tensor);
        if (!x->params[i].tensor.storage && want) // only the caller knows
            continue;
        if (has != want && !v->dynamic && mgx_shape_elements(&v->shape) > 0)
            return fail_side(x->params[i].name, has, want, diag);
    }
    return MGX_OK;
}

// The work of the run is on the queue: waits for it, unless a caller's stream may go on.
static enum mgx_status end_run(struct mgx_context *x, const struct mgx_run *run,
                               struct mgx_diag *diag)
{
    if (!run->on_stream || !x->plan->device_only || !x->busy)
        return mgx_context_wait(x, diag);
    x->busy = false;
    return x->plan->machine->memory->leave(x->queue, diag);
}

static enum mgx_status run_round(struct mgx_context *x, struct mgx_run *run, struct mgx_eval *outer,
                                 struct mgx_diag *diag);

// mgx_eval's hook; `user` is the context.
static enum mgx_status run_body(void *user, const struct mgx_module *m,
                                const struct mgx_tensor *args, int arg_count,
                                struct mgx_tensor *results, bool *done, struct mgx_diag *diag)
{
    const struct mgx_plan_body_call call = {m, args, arg_count, results, run_round};
    return mgx_plan_run_body(user, &call, done, diag);
}

// mgx_eval's hook, for results whose sizes come with the run: known by whose shape was declared.
static void *wanted(void *user, const struct mgx_compute_call *c)
{
    const struct mgx_context *x = user;
    const struct mgx_run *run = x->run;
    for (int k = 0; k < x->plan->result_count; k++) {
        const struct mgx_plan_value *v = x->plan->results[k].value;
        if (v->dynamic && c->declared == &v->ins->shape)
            return run->placed[k] = run->place(run->place_user, k, c->out_shape);
    }
    return NULL;
}

static void begin_run(struct mgx_context *x, const struct mgx_run *run)
{
    x->params = run->params; // in order of creation, which is the plan's
    x->run = run;
    x->eval = (struct mgx_eval){.strings = &x->strings,
                                .scratch = &x->work,
                                .seed = run->seed,
                                .offer = mgx_plan_late_offer,
                                .knows = mgx_plan_late_knows,
                                .create = mgx_plan_late_create,
                                .offer_user = &x->late,
                                .wanted = run->place && !x->plan->machine->memory ? wanted : NULL,
                                .wanted_user = x,
                                .body = x->plan->body_count ? run_body : NULL,
                                .body_user = x};
    assert(run->param_count == x->plan->param_count);
}

// What counts in all of a run, wherever it happens.
static void carry_counts(struct mgx_eval *to, const struct mgx_eval *from)
{
    to->seed = from->seed;
    to->rounds = from->rounds;
    to->members = from->members;
    to->created = from->created;
}

// A body's run, in a context that its caller holds on to.
static enum mgx_status run_round(struct mgx_context *x, struct mgx_run *run, struct mgx_eval *outer,
                                 struct mgx_diag *diag)
{
    assert(!x->plan->machine->memory && x->plan->around);
    begin_run(x, run);
    x->eval.strings = outer->strings;
    carry_counts(&x->eval, outer);
    enum mgx_status status = prepare_results(x, run, diag);
    if (status == MGX_OK)
        status = run_all(x, run, diag);
    x->ran |= status == MGX_OK;
    if (status == MGX_OK)
        status = hand_out(x, run, diag);
    carry_counts(outer, &x->eval);
    for (int i = 0; i < x->plan->dynamic_count; i++)
        mgx_tensor_release(&x->dynamic[i]);
    return status;
}

static enum mgx_status run_in(struct mgx_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    begin_run(x, run);
    const struct mgx_memory *memory = x->plan->machine->memory;
    if (memory)
        TRY(check_sides(x, diag));
    if (memory && memory->enter)
        TRY(memory->enter(x->queue, !run->on_stream, run->stream, diag));
    TRY(prepare_results(x, run, diag));
    TRY(run_all(x, run, diag));
    x->ran = true;
    TRY(end_run(x, run, diag));
    return hand_out(x, run, diag);
}

static void begin_steps(const struct mgx_plan *plan)
{
    const struct mgx_plan_machine *machine = plan->machine;
    if (machine->target->begin)
        machine->target->begin(machine);
    if (plan->on_host && machine->host->target->begin)
        machine->host->target->begin(machine->host);
}

static void end_steps(const struct mgx_plan *plan)
{
    const struct mgx_plan_machine *machine = plan->machine;
    if (plan->on_host && machine->host->target->end)
        machine->host->target->end(machine->host);
    if (machine->target->end)
        machine->target->end(machine);
}

enum mgx_status mgx_plan_run(const struct mgx_program *p, struct mgx_run *run,
                             struct mgx_diag *diag)
{
    struct mgx_plan *plan = (struct mgx_plan *)p->executable;
    const struct mgx_plan_target *target = plan->machine->target;
    struct mgx_context *x = NULL;
    TRY(mgx_context_take(plan, &x, diag));
    begin_steps(plan);
    const enum mgx_status status = run_in(x, run, diag);
    if (status != MGX_OK) { // whatever is on its way ends before anything else does
        struct mgx_diag quiet = {.status = MGX_OK};
        (void)!mgx_context_wait(x, &quiet);
    }
    end_steps(plan);
    if (target->after)
        target->after(plan, x);
    mgx_context_give(x);
    return status;
}
