// SPDX-License-Identifier: MIT
// Steps that nobody needs: all that would read their results skips them (a depthwise convolution
// that takes its weights' zero point off does without the sums of its windows), or is such a step.
//
// Holds: what has no reader at all stays; it may be there for what it does. Cost: O(steps).
#include <assert.h>

#include "plan/build.h"

static struct mgx_plan_value *root_of(struct mgx_plan_value *v)
{
    return mgx_plan_root(v, NULL);
}

// Of each root: how many would read it (first), and how many do (last).
static void count_readers(const struct mgx_build *b)
{
    for (int i = 0; i < b->all.count; i++)
        b->all.v[i]->first = b->all.v[i]->last = 0;
    for (int s = 0; s < b->plan->step_count; s++) {
        const struct mgx_plan_step *step = &b->plan->steps[s];
        for (int i = 0; i < step->in_count; i++) {
            root_of(step->in_value[i])->first++;
            root_of(step->in_value[i])->last += !step->skip[i];
        }
    }
    for (int k = 0; k < b->plan->result_count; k++)
        root_of(b->plan->results[k].value)->last++;
}

static bool is_unread(const struct mgx_plan_step *step)
{
    const struct mgx_plan_value *root = root_of(step->out_value);
    return root->place == MGX_PLAN_SCRATCH && !root->dynamic && root->first > 0 && root->last == 0;
}

void mgx_plan_build_unread(struct mgx_build *b)
{
    struct mgx_plan *plan = b->plan;
    int end = plan->step_count;
    count_readers(b);
    for (int s = plan->step_count - 1; s >= 0; s--) {
        const struct mgx_plan_step step = plan->steps[s];
        if (!is_unread(&step)) {
            plan->steps[--end] = step;
            continue;
        }
        for (int i = 0; i < step.in_count; i++)
            if (!step.skip[i])
                root_of(step.in_value[i])->last--;
    }
    plan->step_count -= end;
    for (int s = 0; s < plan->step_count; s++)
        plan->steps[s] = plan->steps[end + s];
}
