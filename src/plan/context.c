// SPDX-License-Identifier: MIT
// The pool of contexts; see context.h.
#include "plan/context.h"

#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/memory.h"
#include "plan/record.h"
#include "plan/shared.h"

enum { BEHIND = 4096 }; // kernels may read (never write) a vector beyond the end of a value

static void *allocate_host(size_t bytes)
{
    return mgx_memory_aligned(64, mgx_memory_rounded((bytes ? bytes : 1) + BEHIND));
}

static void spread(const void *who, int tasks, void (*fn)(void *user, int task, int thread),
                   void *user)
{
    mgx_plan_spread(who, tasks, fn, user);
}

static enum mgx_status allocate_device(struct mgx_context *x, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = x->plan->machine->memory;
    const size_t bytes = x->plan->block[MGX_PLAN_DEVICE].bytes;
    x->queue = memory->queue_create(memory);
    if (!x->queue)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a queue of %s", memory->name);
    if (memory->help)
        memory->help(x->queue, &(struct mgx_memory_help){spread, x->plan->machine});
    x->scratch[MGX_PLAN_DEVICE] = memory->allocate(memory, (bytes ? bytes : 1) + BEHIND);
    if (!x->scratch[MGX_PLAN_DEVICE])
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: scratch of %zu bytes on %s", bytes,
                        memory->name);
    return MGX_OK;
}

// The host's scratch: the context's own, or for this run one of those that several plans share.
static enum mgx_status take_scratch(struct mgx_context *x, struct mgx_diag *diag)
{
    struct mgx_plan_scratch *shared = mgx_plan_shared_scratch(&x->plan->store);
    const size_t bytes = x->plan->block[MGX_PLAN_HOST].bytes;
    const bool may = mgx_budget_take(bytes); // of this run, whoever had it before
    if (may && !x->scratch[MGX_PLAN_HOST])
        x->scratch[MGX_PLAN_HOST] =
            shared ? mgx_plan_scratch_take(shared, bytes + BEHIND) : allocate_host(bytes);
    return may && x->scratch[MGX_PLAN_HOST]
               ? MGX_OK
               : mgx_fail(diag, MGX_NO_MEMORY, "out of memory: scratch of %zu bytes", bytes);
}

static void give_scratch(struct mgx_context *x)
{
    struct mgx_plan_scratch *shared = mgx_plan_shared_scratch(&x->plan->store);
    if (!shared)
        return;
    mgx_plan_scratch_give(shared, x->scratch[MGX_PLAN_HOST]);
    x->scratch[MGX_PLAN_HOST] = NULL;
}

static enum mgx_status allocate(struct mgx_context *x, struct mgx_diag *diag)
{
    const struct mgx_plan *plan = x->plan;
    x->in = calloc((size_t)plan->max_in + 1, sizeof *x->in);
    x->dynamic = calloc((size_t)plan->dynamic_count + 1, sizeof *x->dynamic);
    x->values = calloc((size_t)plan->value_count + 1, sizeof *x->values);
    x->results = calloc((size_t)plan->result_count + 1, sizeof *x->results);
    x->out = calloc((size_t)plan->result_count + 1, sizeof *x->out);
    if (!x->in || !x->dynamic || !x->values || !x->results || !x->out)
        return mgx_fail_memory(diag);
    return plan->machine->memory ? allocate_device(x, diag) : MGX_OK;
}

void mgx_body_state_unbind(struct mgx_body_state *s)
{
    for (int i = 0; i < s->bound_count; i++)
        mgx_tensor_release(&s->bound[i]);
    s->call = 0;
}

void mgx_body_state_fini(struct mgx_body_state *s)
{
    assert(!s->context);
    mgx_body_state_unbind(s);
    free(s->params);
    free(s->bound);
    free(s->made);
    *s = (struct mgx_body_state){0};
}

// Their contexts serve other runs now.
static void leave_bodies(struct mgx_context *x)
{
    for (int i = 0; x->bodies && i < x->plan->body_count; i++) {
        struct mgx_context *of = x->bodies[i].context;
        mgx_body_state_unbind(&x->bodies[i]);
        x->bodies[i].context = NULL;
        if (of)
            mgx_context_give(of);
    }
}

void mgx_context_destroy(struct mgx_context *x)
{
    if (!x)
        return;
    const struct mgx_memory *memory = x->plan->machine->memory;
    assert(!x->busy);
    for (int i = 0; x->bodies && i < x->plan->body_count; i++)
        mgx_body_state_fini(&x->bodies[i]);
    mgx_plan_drop_recordings(x);
    if (memory)
        memory->queue_destroy(x->queue);
    for (int i = 0; x->results && i < x->plan->result_count; i++)
        mgx_storage_release(x->results[i]);
    for (int i = 0; x->dynamic && i < x->plan->dynamic_count; i++)
        mgx_tensor_release(&x->dynamic[i]);
    mgx_arena_fini(&x->strings);
    mgx_arena_fini(&x->work);
    free(x->scratch[MGX_PLAN_HOST]);
    if (memory)
        memory->free(memory, x->scratch[MGX_PLAN_DEVICE]);
    free(x->in);
    free(x->dynamic);
    free(x->values);
    free(x->results);
    free(x->out);
    free(x->bodies);
    free(x);
}

static enum mgx_status create(struct mgx_plan *plan, struct mgx_context **out,
                              struct mgx_diag *diag)
{
    struct mgx_context *x = calloc(1, sizeof *x);
    if (!x)
        return mgx_fail_memory(diag);
    x->plan = plan;
    x->late.late = &plan->late;
    mgx_arena_init(&x->strings);
    mgx_arena_init(&x->work);
    const enum mgx_status status = allocate(x, diag);
    if (status == MGX_OK)
        *out = x;
    else
        mgx_context_destroy(x);
    return status;
}

enum mgx_status mgx_context_take(struct mgx_plan *plan, struct mgx_context **out,
                                 struct mgx_diag *diag)
{
    pthread_mutex_lock(&plan->lock);
    struct mgx_context *x = plan->contexts;
    if (x)
        plan->contexts = x->next;
    pthread_mutex_unlock(&plan->lock);
    *out = x;
    assert(!x || (x->plan == plan && !x->busy));
    if (!x)
        TRY(create(plan, out, diag));
    const enum mgx_status status = take_scratch(*out, diag);
    if (status == MGX_OK)
        return MGX_OK;
    mgx_context_give(*out);
    *out = NULL;
    return status;
}

void mgx_context_give(struct mgx_context *x)
{
    struct mgx_plan *plan = x->plan;
    assert(!x->busy && !x->eval.frame);
    leave_bodies(x);
    for (int i = 0; i < plan->dynamic_count; i++)
        mgx_tensor_release(&x->dynamic[i]);
    mgx_arena_fini(&x->strings);
    mgx_arena_fini(&x->work);
    give_scratch(x);
    pthread_mutex_lock(&plan->lock);
    x->next = plan->contexts;
    plan->contexts = x;
    pthread_mutex_unlock(&plan->lock);
}

enum mgx_status mgx_context_wait(struct mgx_context *x, struct mgx_diag *diag)
{
    if (!x->busy)
        return MGX_OK;
    x->busy = false;
    return x->plan->machine->memory->wait(x->queue, diag);
}
