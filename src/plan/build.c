// SPDX-License-Identifier: MIT
// One more step of a plan; see build.h.
#include "plan/build.h"

struct mgx_plan_step *mgx_plan_build_step(struct mgx_build *b, const struct mgx_ins *ins,
                                          int in_count, struct mgx_plan_value *out)
{
    struct mgx_plan *plan = b->plan;
    struct mgx_arena *arena = &plan->store.arena;
    struct mgx_plan_step *step = MGX_ADD(&b->steps, arena);
    if (!step)
        return NULL;
    *step =
        (struct mgx_plan_step){.ins = ins,
                               .in_count = in_count,
                               .own_count = in_count,
                               .in_place = -1,
                               .out_value = out,
                               .in_value = MGX_NEW_ARRAY(arena, struct mgx_plan_value *, in_count),
                               .in = MGX_NEW_ARRAY(arena, struct mgx_plan_ref, in_count),
                               .skip = MGX_NEW_ARRAY(arena, bool, in_count)};
    plan->steps = b->steps.v;
    plan->step_count = (int)b->steps.count;
    if (!step->in_value || !step->in || !step->skip)
        return NULL;
    if (in_count > plan->max_in)
        plan->max_in = in_count;
    mgx_plan_root(out, NULL)->writes++;
    return step;
}
