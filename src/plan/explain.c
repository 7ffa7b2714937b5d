// SPDX-License-Identifier: MIT
// What a plan says of itself: kernel and layout of every step and why not a faster one, then the
// sums.
#include "plan/body.h"
#include "plan/context.h"
#include "plan/plan.h"
#include "plan/shared.h"

static void explain_step(const struct mgx_plan_step *step, struct mgx_str *out)
{
    mgx_str_printf(out, "%s:@%d %s: %s", step->ins->owner->name, step->ins->index,
                   step->ins->op->name, step->kernel->name);
    if (step->detail)
        mgx_str_printf(out, " (%s)", step->detail);
    mgx_str_put(out, " -> ");
    mgx_shape_print(out, &step->out_value->shape);
    if (step->why)
        mgx_str_printf(out, "; not %s", step->why);
    mgx_str_putc(out, '\n');
}

static void explain_block(const char *name, const struct mgx_plan_block *block, struct mgx_str *out)
{
    mgx_str_printf(
        out, "%s: %zu bytes, lower bound %zu, ratio %.4f\n", name, block->bytes,
        block->lower_bound_bytes,
        block->lower_bound_bytes ? (double)block->bytes / (double)block->lower_bound_bytes : 1.0);
}

// What runs add to while they choose kernels for sizes they meet.
static void explain_store(struct mgx_plan *plan, struct mgx_str *out)
{
    const struct mgx_carry *carry = plan->program->carry;
    pthread_mutex_lock(&plan->late.lock);
    mgx_str_printf(out, "packed constants: %zu bytes\n",
                   plan->store.packed_bytes + plan->host_store.packed_bytes);
    if (carry && carry->form)
        mgx_str_printf(out, "form: %s\n", carry->form);
    if (carry && carry->has_code && !carry->trusted)
        mgx_str_put(out, "the file's compiled kernels: not used, it is not trusted\n");
    if (plan->store.carry)
        mgx_str_printf(out, "from the file: %d packed constants, %zu bytes\n",
                       plan->store.carried_count, plan->store.carried_bytes);
    else if (carry && carry->why)
        mgx_str_printf(out, "warning: %s\n", carry->why);
    pthread_mutex_unlock(&plan->late.lock);
}

static void explain_tuning(const struct mgx_plan *plan, struct mgx_str *out)
{
    mgx_str_printf(out, "tuned: %d steps, %d problems measured\n", plan->tuned_count,
                   plan->measured_count);
    if (plan->skipped_count)
        mgx_str_printf(out,
                       "warning: the time for tuning was spent, %d problems are not measured\n",
                       plan->skipped_count);
    if (plan->tuning_lost)
        mgx_str_printf(out, "warning: %s\n", plan->tuning_lost);
}

static void explain_steps(const struct mgx_plan *plan, struct mgx_str *out)
{
    double flops = 0;
    for (int i = 0; i < plan->step_count; i++) {
        explain_step(&plan->steps[i], out);
        flops += plan->steps[i].flops;
    }
    mgx_str_printf(out, "steps: %d", plan->step_count);
    if (plan->machine->target->explain) {
        mgx_str_put(out, ", ");
        plan->machine->target->explain(plan->machine, out);
    }
    mgx_str_putc(out, '\n');
    mgx_str_printf(out, "products: %.4g GFLOP\n", flops * 1e-9);
}

// Of bodies that have plans, and of theirs: a body's name stands before its steps.
static void explain_bodies(const struct mgx_plan *plan, struct mgx_str *out)
{
    for (int i = 0; i < plan->body_count; i++) {
        const struct mgx_plan *body = plan->bodies[i].plan;
        mgx_str_printf(out, "body %s: %d steps\n", plan->bodies[i].module->name, body->step_count);
        for (int s = 0; s < body->step_count; s++)
            explain_step(&body->steps[s], out);
        explain_bodies(body, out);
    }
}

static void explain_shared(const struct mgx_plan *plan, struct mgx_str *out)
{
    int64_t shared;
    const size_t bytes = mgx_plan_shared_total(&plan->store, &shared);
    if (plan->store.sharing)
        mgx_str_printf(out, "shared by plans for sizes: %lld of them, %zu bytes\n",
                       (long long)shared, bytes);
}

void mgx_plan_explain(const struct mgx_program *p, struct mgx_str *out)
{
    struct mgx_plan *plan = (struct mgx_plan *)p->executable;
    explain_steps(plan, out);
    explain_bodies(plan, out);
    explain_tuning(plan, out);
    mgx_str_printf(out, "order: %zu bytes alive at most, %zu in the program's\n",
                   plan->order_peak_bytes, plan->given_peak_bytes);
    explain_store(plan, out);
    explain_shared(plan, out);
    explain_block("scratch", &plan->block[MGX_PLAN_HOST], out);
    if (!plan->machine->memory)
        return;
    explain_block(plan->machine->memory->name, &plan->block[MGX_PLAN_DEVICE], out);
    mgx_str_printf(out, "constants on %s: %zu bytes\n", plan->machine->memory->name,
                   plan->uploaded_bytes);
}

// Of one that stays in the pool, without scratch: slots, and what a run has worked in.
static size_t context_bytes(const struct mgx_plan *plan)
{
    enum { WORK = 2 << 12 }; // the blocks that its arenas keep
    const size_t slots = (size_t)(plan->dynamic_count + plan->value_count);
    return sizeof(struct mgx_context) + slots * sizeof(struct mgx_tensor) + WORK;
}

size_t mgx_plan_bytes(const struct mgx_program *p)
{
    struct mgx_plan *plan = (struct mgx_plan *)p->executable;
    size_t bytes =
        sizeof *p + sizeof *plan + mgx_arena_room(&p->arena) + mgx_arena_room(&p->module_arena);
    pthread_mutex_lock(&plan->late.lock);
    bytes += mgx_arena_room(&plan->store.arena) + plan->store.device_bytes;
    bytes += plan->late.choices.bytes;
    pthread_mutex_unlock(&plan->late.lock);
    bytes += context_bytes(plan);
    for (int i = 0; i < plan->body_count; i++)
        bytes += mgx_plan_bytes(plan->bodies[i].program);
    for (int i = 0; i < MGX_PLAN_SIDES; i++)
        if (i != MGX_PLAN_HOST || !plan->store.sharing)
            bytes += plan->block[i].bytes;
    for (int k = 0; k < plan->result_count; k++)
        if (!plan->results[k].value->dynamic)
            bytes += mgx_shape_bytes(&plan->results[k].shape);
    return bytes;
}
