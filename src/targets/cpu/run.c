// SPDX-License-Identifier: MIT
// Running a plan: a context from the pool, parameters in, the steps one after the other, results
// out.
//
// A context is made by the first run that finds none free and goes back to the pool, so steady runs
// allocate nothing: even results are reused once the caller has let go of those of an earlier run.
#include <stdlib.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "op/op.h"
#include "targets/cpu/lower/dynamic.h"

// --- contexts ---

static enum mgx_status allocate(struct cpu_context *x, struct mgx_diag *diag)
{
    const struct cpu_plan *plan = x->plan;
    const size_t scratch = plan->scratch_bytes ? plan->scratch_bytes : 1;
    // 4 KiB on top: kernels may read (never write) a vector beyond the end of a value.
    x->scratch = mgx_memory_aligned(64, scratch + 4096);
    if (!x->scratch)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: scratch of %zu bytes", scratch);
    x->in = calloc((size_t)plan->max_in + 1, sizeof *x->in);
    x->dynamic = calloc((size_t)plan->dynamic_count + 1, sizeof *x->dynamic);
    x->values = calloc((size_t)plan->value_count + 1, sizeof *x->values);
    x->results = calloc((size_t)plan->result_count + 1, sizeof *x->results);
    if (!x->in || !x->dynamic || !x->values || !x->results)
        return mgx_fail_memory(diag);
    return MGX_OK;
}

void cpu_context_destroy(struct cpu_context *x)
{
    if (!x)
        return;
    for (int i = 0; x->results && i < x->plan->result_count; i++)
        mgx_storage_release(x->results[i]);
    for (int i = 0; x->dynamic && i < x->plan->dynamic_count; i++)
        mgx_tensor_release(&x->dynamic[i]);
    mgx_arena_fini(&x->strings);
    free(x->scratch);
    free(x->in);
    free(x->dynamic);
    free(x->values);
    free(x->results);
    free(x);
}

static enum mgx_status take_context(struct cpu_plan *plan, struct cpu_context **out,
                                    struct mgx_diag *diag)
{
    pthread_mutex_lock(&plan->lock);
    struct cpu_context *x = plan->pool_of_contexts;
    if (x)
        plan->pool_of_contexts = x->next;
    pthread_mutex_unlock(&plan->lock);
    if (!x) {
        x = calloc(1, sizeof *x);
        if (!x)
            return mgx_fail_memory(diag);
        x->plan = plan;
        mgx_arena_init(&x->strings);
        const enum mgx_status status = allocate(x, diag);
        if (status != MGX_OK) {
            cpu_context_destroy(x);
            return status;
        }
    }
    *out = x;
    return MGX_OK;
}

static void give_context(struct cpu_context *x)
{
    struct cpu_plan *plan = x->plan;
    for (int i = 0; i < plan->dynamic_count; i++)
        mgx_tensor_release(&x->dynamic[i]);
    mgx_arena_fini(&x->strings);
    pthread_mutex_lock(&plan->lock);
    x->next = plan->pool_of_contexts;
    plan->pool_of_contexts = x;
    pthread_mutex_unlock(&plan->lock);
}

// --- operands ---

static void *address(const struct cpu_context *x, const struct cpu_ref *ref)
{
    switch (ref->place) {
    case CPU_SCRATCH:
        return x->scratch + ref->offset;
    case CPU_CONST:
        return (unsigned char *)ref->data + ref->offset;
    case CPU_PARAM:
        return (unsigned char *)x->params[ref->index].tensor.data + ref->offset;
    case CPU_RESULT:
        return (unsigned char *)x->results[ref->index]->data + ref->offset;
    default:
        return NULL; // dynamic: the kernel takes the tensor
    }
}

static enum mgx_status run_step(struct cpu_context *x, const struct cpu_step *step,
                                struct mgx_diag *diag)
{
    for (int i = 0; i < step->in_count; i++)
        x->in[i] = step->skip[i] ? NULL : address(x, &step->in[i]);
    const struct cpu_args args = {.in = x->in,
                                  .out = address(x, &step->out),
                                  .workspace = x->scratch + step->workspace_scratch,
                                  .context = x};
    const enum mgx_status status = step->kernel->run(step, &args, diag);
    for (int i = 0; i < step->drop_count; i++)
        mgx_tensor_release(&x->dynamic[step->drop[i]]);
    return status;
}

static enum mgx_status trace(const struct cpu_context *x, const struct cpu_step *step,
                             struct mgx_run *run, struct mgx_diag *diag)
{
    const struct cpu_value *v = step->out_value;
    if (v->ins != step->ins)
        return MGX_OK; // a copy on the way to another step
    const struct mgx_tensor value = v->dynamic
                                        ? *cpu_dynamic_tensor(x, v)
                                        : mgx_tensor_borrow(&v->shape, address(x, &step->out));
    return run->trace(run->trace_user, step->ins, &value, diag);
}

static enum mgx_status run_steps(struct cpu_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    const struct cpu_plan *plan = x->plan;
    for (int s = 0; s < plan->step_count; s++) {
        const struct cpu_step *step = &plan->steps[s];
        enum mgx_status status = run_step(x, step, diag);
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

// --- results ---

// A storage the caller has released since the last run serves again.
static enum mgx_status prepare_results(struct cpu_context *x, struct mgx_diag *diag)
{
    for (int k = 0; k < x->plan->result_count; k++) {
        const struct cpu_result *result = &x->plan->results[k];
        struct mgx_storage *old = x->results[k];
        if (result->value->dynamic ||
            (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1))
            continue;
        struct mgx_tensor fresh;
        TRY(mgx_tensor_create(&fresh, &result->shape, diag));
        mgx_storage_release(old);
        x->results[k] = fresh.storage;
    }
    return MGX_OK;
}

static enum mgx_status hand_out(struct cpu_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    for (int k = 0; k < x->plan->result_count; k++) {
        const struct cpu_result *result = &x->plan->results[k];
        if (result->value->dynamic) {
            const struct mgx_tensor *value = cpu_dynamic_tensor(x, result->value);
            if (value->shape.type == MGX_STRING ||
                value->shape.type == MGX_SEQUENCE) // bytes of the run's arena
                TRY(mgx_tensor_clone(&run->results[k], value, diag));
            else
                run->results[k] = mgx_tensor_share(value);
            continue;
        }
        run->results[k] = (struct mgx_tensor){.shape = result->shape,
                                              .data = x->results[k]->data,
                                              .storage = mgx_storage_retain(x->results[k])};
    }
    return MGX_OK;
}

static enum mgx_status run_in(struct cpu_context *x, struct mgx_run *run, struct mgx_diag *diag)
{
    x->params = run->params; // in order of creation, which is the plan's
    x->eval = (struct mgx_eval){.strings = &x->strings,
                                .seed = run->seed,
                                .offer = cpu_dynamic_offer,
                                .knows = cpu_dynamic_knows,
                                .create = cpu_dynamic_create,
                                .offer_user = x};
    TRY(prepare_results(x, diag));
    TRY(run_steps(x, run, diag));
    return hand_out(x, run, diag);
}

enum mgx_status cpu_run(const struct mgx_program *p, struct mgx_run *run, struct mgx_diag *diag)
{
    struct cpu_context *x = NULL;
    TRY(take_context((struct cpu_plan *)p->executable, &x, diag));
    mgx_pool_begin(x->plan->pool);
    const enum mgx_status status = run_in(x, run, diag);
    mgx_pool_end(x->plan->pool);
    cpu_grow(x->plan, x);
    give_context(x);
    return status;
}
