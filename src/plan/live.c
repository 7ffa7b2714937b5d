// SPDX-License-Identifier: MIT
// Live ranges: between which steps the bytes of a root must stay, which results take over the bytes
// of an input that dies, and which slots values of unknown size get and when they are dropped.
//
// Holds afterwards: every root that a step touches has first <= last; no step reads a root before
// its first writer; a result that took over an input's bytes is a view of that root; what a step of
// a bundle touches lives as long as the bundle works.
#include <assert.h>

#include "plan/build.h"

int mgx_plan_bundle_first(const struct mgx_plan *plan, int s)
{
    for (int k = s; k >= 0 && k > s - MGX_PLAN_BUNDLE_MOST; k--)
        if (plan->steps[k].bundle)
            return k + plan->steps[k].bundle->count > s ? k : s;
    return s;
}

int mgx_plan_bundle_last(const struct mgx_plan *plan, int s)
{
    const int first = mgx_plan_bundle_first(plan, s);
    const struct mgx_plan_bundle *bundle = plan->steps[first].bundle;
    assert(!bundle || bundle->count <= MGX_PLAN_BUNDLE_MOST);
    return bundle ? first + bundle->count - 1 : s;
}

static void touch(struct mgx_plan_value *v, int step)
{
    v = mgx_plan_root(v, NULL);
    if (v->first > step)
        v->first = step;
    if (v->last < step)
        v->last = step;
}

static void find_ranges(struct mgx_build *b)
{
    const struct mgx_plan *plan = b->plan;
    for (int i = 0; i < b->all.count; i++) {
        b->all.v[i]->first = plan->step_count;
        b->all.v[i]->last = -1;
    }
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_step *step = &plan->steps[s];
        touch(step->out_value, s);
        for (int i = 0; i < step->in_count; i++)
            if (!step->skip[i])
                touch(step->in_value[i], s);
    }
    for (int k = 0; k < plan->result_count; k++)
        if (plan->results[k].value->dynamic)
            touch(plan->results[k].value, plan->step_count);
}

// The root lives through the whole of a bundle whose steps touch it.
static void widen(const struct mgx_plan *plan, struct mgx_plan_value *v, int s)
{
    touch(v, mgx_plan_bundle_first(plan, s));
    touch(v, mgx_plan_bundle_last(plan, s));
}

static void widen_ranges(const struct mgx_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_step *step = &plan->steps[s];
        if (mgx_plan_bundle_first(plan, s) == mgx_plan_bundle_last(plan, s))
            continue;
        widen(plan, step->out_value, s);
        for (int i = 0; i < step->in_count; i++)
            if (!step->skip[i])
                widen(plan, step->in_value[i], s);
    }
}

// Does another step of its bundle read the root?
static bool read_beside(const struct mgx_plan *plan, int s, const struct mgx_plan_value *root)
{
    for (int k = mgx_plan_bundle_first(plan, s); k <= mgx_plan_bundle_last(plan, s); k++)
        for (int i = 0; i < plan->steps[k].in_count && k != s; i++)
            if (!plan->steps[k].skip[i] && mgx_plan_root(plan->steps[k].in_value[i], NULL) == root)
                return true;
    return false;
}

// Does another operand of this step lie in the same root?
static bool shared(const struct mgx_plan_step *step, int slot, const struct mgx_plan_value *root)
{
    for (int i = 0; i < step->in_count; i++)
        if (i != slot && !step->skip[i] && mgx_plan_root(step->in_value[i], NULL) == root)
            return true;
    return false;
}

static void take_over(struct mgx_build *b, int s)
{
    const struct mgx_plan_step *step = &b->plan->steps[s];
    struct mgx_plan_value *out = step->out_value, *in = step->in_value[step->in_place];
    int64_t offset;
    struct mgx_plan_value *root = mgx_plan_root(in, &offset);
    if (in->dynamic || out->dynamic || out->root != out || out->place != MGX_PLAN_SCRATCH ||
        root->place != MGX_PLAN_SCRATCH || root->side != out->side || root->last != s ||
        offset != 0 || mgx_shape_bytes(&root->shape) != mgx_shape_bytes(&out->shape) ||
        shared(step, step->in_place, root) || read_beside(b->plan, s, root) || out == root ||
        out->first != mgx_plan_bundle_first(b->plan, s))
        return;
    assert(out->last >= s);
    root->last = out->last;
    out->root = root;
    out->offset = 0;
}

static void give_slots(struct mgx_build *b)
{
    struct mgx_plan *plan = b->plan;
    for (int i = 0; i < b->all.count; i++) {
        struct mgx_plan_value *v = b->all.v[i];
        v->bytes = v->dynamic ? 0 : mgx_shape_bytes(&v->shape);
        if (v->dynamic && v->place == MGX_PLAN_SCRATCH) {
            v->place = MGX_PLAN_DYNAMIC;
            v->index = plan->dynamic_count++;
        }
    }
}

static enum mgx_status find_drops(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_plan *plan = b->plan;
    int *count = MGX_NEW_ARRAY(&plan->store.arena, int, plan->step_count + 1);
    if (!count)
        return mgx_fail_memory(diag);
    for (int i = 0; i < b->all.count; i++)
        if (b->all.v[i]->place == MGX_PLAN_DYNAMIC && b->all.v[i]->last >= 0 &&
            b->all.v[i]->last < plan->step_count)
            count[b->all.v[i]->last]++;
    for (int s = 0; s < plan->step_count; s++)
        if (count[s] && !(plan->steps[s].drop = MGX_NEW_ARRAY(&plan->store.arena, int, count[s])))
            return mgx_fail_memory(diag);
    for (int i = 0; i < b->all.count; i++) {
        const struct mgx_plan_value *v = b->all.v[i];
        if (v->place == MGX_PLAN_DYNAMIC && v->last >= 0 && v->last < plan->step_count)
            plan->steps[v->last].drop[plan->steps[v->last].drop_count++] = v->index;
    }
    return MGX_OK;
}

// No step reads bytes that nobody has written yet: constants and parameters are there, all else is
// some step's.
__attribute__((unused)) static bool is_written(const struct mgx_build *b)
{
    for (int i = 0; i < b->all.count; i++)
        b->all.v[i]->writes = 0;
    for (int s = 0; s < b->plan->step_count; s++) {
        const struct mgx_plan_step *step = &b->plan->steps[s];
        for (int i = 0; i < step->in_count; i++) {
            const struct mgx_plan_value *root = mgx_plan_root(step->in_value[i], NULL);
            const bool given = root->place == MGX_PLAN_CONST || root->place == MGX_PLAN_PARAM;
            const bool empty = !root->dynamic && !mgx_shape_elements(&root->shape);
            if (!step->skip[i] && !given && !empty && !root->writes)
                return false;
        }
        mgx_plan_root(step->out_value, NULL)->writes++;
    }
    return true;
}

// Is the root alive at this step?
static bool lives(struct mgx_plan_value *v, int step)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    return root->first <= step && step <= root->last;
}

// Is all that a step touches alive then, and what the caller gets until the end?
__attribute__((unused)) static bool are_alive(const struct mgx_build *b)
{
    const struct mgx_plan *plan = b->plan;
    bool good = true;
    for (int s = 0; s < plan->step_count && good; s++) {
        const struct mgx_plan_step *step = &plan->steps[s];
        good = lives(step->out_value, s);
        for (int i = 0; i < step->in_count && good; i++)
            good = step->skip[i] || lives(step->in_value[i], s);
    }
    for (int k = 0; k < plan->result_count && good; k++)
        good = !plan->results[k].value->dynamic || lives(plan->results[k].value, plan->step_count);
    return good;
}

enum mgx_status mgx_plan_build_live(struct mgx_build *b, struct mgx_diag *diag)
{
    give_slots(b);
    assert(is_written(b));
    if (b->plan->machine->target->gather)
        TRY(b->plan->machine->target->gather(b->plan, diag));
    find_ranges(b);
    widen_ranges(b->plan);
    for (int s = 0; s < b->plan->step_count; s++)
        if (b->plan->steps[s].in_place >= 0)
            take_over(b, s);
    assert(are_alive(b));
    return find_drops(b, diag);
}
