// SPDX-License-Identifier: MIT
// Which weights come next: every step is told what the one after it reads first of its own, for
// each thread (kernel/product/ahead.h). Steps without weights in between are passed over, if their
// results are few bytes: what is fetched must still be in L2 when its time comes.
#include "targets/cpu/lower/lower.h"

enum { PASSED_OVER = 2, PASSED_SMALL = 12 };

static const struct mgx_ahead *first_reads(struct mgx_plan *plan, const struct mgx_plan_step *step,
                                           struct mgx_diag *diag)
{
    const struct cpu_reader *reader = step->kernel->more;
    const int threads = plan->machine->threads;
    struct mgx_ahead *list = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_ahead, threads);
    for (int t = 0; list && t < threads; t++)
        list[t] = reader->first_read(step->state, t);
    if (!list)
        mgx_fail_memory(diag);
    return list;
}

static bool is_small(const struct mgx_plan_step *step)
{
    enum { BYTES = 16 << 10 };
    const struct mgx_plan_value *v = step->out_value;
    return !v->dynamic && mgx_shape_bytes(&v->shape) <= BYTES;
}

enum mgx_status cpu_look_ahead(struct mgx_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_ahead *next = NULL;
    int distance = 0, small = 0; // steps passed over
    for (int s = plan->step_count - 1; s >= 0; s--) {
        struct mgx_plan_step *step = &plan->steps[s];
        step->next = distance <= PASSED_OVER && small <= PASSED_SMALL ? next : NULL;
        if (is_small(step))
            small++;
        else
            distance++;
        if (!step->kernel->more)
            continue;
        next = first_reads(plan, step, diag);
        if (!next)
            return diag->status;
        distance = small = 0;
    }
    return MGX_OK;
}
