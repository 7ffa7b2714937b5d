// SPDX-License-Identifier: MIT
// What the parts of a plan that is quantized while it runs ask of it, and say; range_bundle.h.
#include "targets/gpu/lower/range_bundle.h"

#include <assert.h>

const struct gpu_call *gpu_range_call(const struct gpu_range_plan *p, int s)
{
    const struct mgx_plan_step *step = &p->plan->steps[s];
    const struct gpu_range_action *action = &p->actions[s];
    const struct gpu_call *call = action->product ? &action->product->base : step->state;
    const bool leaves = step->kernel == &gpu_kernel_wgmma || step->kernel->run == gpu_run_call;
    return leaves && gpu_step_is_plain(step) && action->how != GPU_RANGE_LEFT_OUT && call->ranges
               ? call
               : NULL;
}

int gpu_range_parts(const struct gpu_range_plan *p, int range, int *first)
{
    const struct gpu_range_action *action = &p->actions[range];
    int ranges = 0;
    assert(action->producers > 0);
    *first = 0;
    for (int i = action->producers - 1; i >= 0; i--) {
        const struct gpu_call *call = gpu_range_call(p, action->producer[i]);
        *first = call ? call->ranges : 0;
        ranges += *first;
    }
    return ranges;
}

int gpu_range_step_of(const struct gpu_range_plan *p, const struct mgx_ins *ins, int s, int end)
{
    assert(s >= 0);
    for (s++; s < end && s < p->plan->step_count; s++)
        if (p->plan->steps[s].ins == ins)
            return s;
    return 0;
}

void gpu_range_say(const struct gpu_range_plan *p, int s, const char *detail)
{
    struct gpu_range_action *action = &p->actions[s];
    if (!action->said)
        action->before = p->plan->steps[s].detail;
    action->said = true;
    p->plan->steps[s].detail = detail;
}

void gpu_range_add(const struct gpu_range_plan *p, int s, const char *more)
{
    const char *detail = p->plan->steps[s].detail;
    assert(more && *more);
    gpu_range_say(p, s,
                  mgx_arena_printf(&p->plan->store.arena, "%s; %s", detail ? detail : "", more));
}

void gpu_range_tie(const struct gpu_range_plan *p, int first, int last)
{
    assert(first >= 0 && first <= last && last < p->plan->step_count);
    if (p->actions[first].until < last)
        p->actions[first].until = last;
}
