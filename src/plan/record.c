// SPDX-License-Identifier: MIT
// Recordings of a context; record.h says what they are.
#include "plan/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "plan/context.h"
#include "plan/transfer.h"

struct recording {
    void *graph;    // NULL: these addresses were met once
    void **address; // of what the stretch touches of the caller's
};

struct mgx_plan_recordings { // of one stretch
    struct recording kept[MGX_PLAN_RECORDINGS];
    int count, next; // next: whose place a new one takes when all are taken
    bool hopeless;   // the machine could not record it
};

// --- at compile time ---

static bool is_recordable(const struct mgx_plan_step *step)
{
    bool fixed = step->side == MGX_PLAN_DEVICE && !step->kernel->host && !step->drop_count &&
                 !mgx_plan_is_transfer(step) && !step->out_value->dynamic;
    for (int i = 0; i < step->in_count && fixed; i++)
        fixed = !step->in_value[i]->dynamic;
    return fixed;
}

static bool is_callers(const struct mgx_plan_ref *ref)
{
    return ref->place == MGX_PLAN_PARAM || ref->place == MGX_PLAN_RESULT;
}

static int list_callers(const struct mgx_plan *plan, const struct mgx_plan_stretch *s,
                        const struct mgx_plan_ref **list)
{
    int count = 0;
    for (int i = s->first; i <= s->last; i++) {
        const struct mgx_plan_step *step = &plan->steps[i];
        for (int k = 0; k <= step->in_count; k++) {
            const struct mgx_plan_ref *ref = k < step->in_count ? &step->in[k] : &step->out;
            if (!is_callers(ref) || (k < step->in_count && step->skip[k]))
                continue;
            if (list)
                list[count] = ref;
            count++;
        }
    }
    return count;
}

static bool add_stretch(struct mgx_plan *plan, int first, int last)
{
    if (last - first + 1 < MGX_PLAN_STRETCH)
        return true;
    assert(!plan->stretch_count || plan->stretches[plan->stretch_count - 1].last < first);
    struct mgx_plan_stretch *s = &plan->stretches[plan->stretch_count++];
    *s = (struct mgx_plan_stretch){.first = first, .last = last};
    s->caller_count = list_callers(plan, s, NULL);
    s->caller = MGX_NEW_ARRAY(&plan->store.arena, const struct mgx_plan_ref *, s->caller_count + 1);
    if (!s->caller)
        return false;
    const int listed = list_callers(plan, s, s->caller);
    assert(listed == s->caller_count);
    (void)listed;
    return true;
}

enum mgx_status mgx_plan_build_stretches(struct mgx_plan *plan, struct mgx_diag *diag)
{
    int first = -1;
    plan->stretches = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_plan_stretch,
                                    plan->machine->recorder ? plan->step_count + 1 : 1);
    if (!plan->stretches)
        return mgx_fail_memory(diag);
    for (int i = 0; plan->machine->recorder && i <= plan->step_count; i++) {
        const bool records = i < plan->step_count && is_recordable(&plan->steps[i]);
        if (records && first < 0)
            first = i;
        if (records || first < 0)
            continue;
        if (!add_stretch(plan, first, i - 1))
            return mgx_fail_memory(diag);
        first = -1;
    }
    return MGX_OK;
}

// --- in a run ---

static struct mgx_plan_recordings *recordings_of(struct mgx_context *x, int stretch)
{
    if (!x->recordings)
        x->recordings = calloc((size_t)x->plan->stretch_count, sizeof *x->recordings);
    return x->recordings ? &x->recordings[stretch] : NULL;
}

static bool recording_fits(const struct mgx_context *x, const struct mgx_plan_stretch *s,
                           const struct recording *r)
{
    for (int i = 0; i < s->caller_count; i++)
        if (r->address[i] != mgx_context_address(x, s->caller[i]))
            return false;
    return true;
}

static void forget(const struct mgx_context *x, struct recording *r)
{
    if (r->graph)
        x->plan->machine->recorder->drop(x->plan->machine, r->graph);
    free(r->address);
    *r = (struct recording){0};
}

// The place of a new set of addresses. False when out of memory: then it is met again.
static bool note(struct mgx_context *x, const struct mgx_plan_stretch *s,
                 struct mgx_plan_recordings *all)
{
    void **address = calloc((size_t)s->caller_count + 1, sizeof *address);
    if (!address)
        return false;
    for (int i = 0; i < s->caller_count; i++)
        address[i] = mgx_context_address(x, s->caller[i]);
    struct recording *r = &all->kept[all->next];
    forget(x, r);
    r->address = address;
    all->count = all->count < MGX_PLAN_RECORDINGS ? all->count + 1 : all->count;
    all->next = (all->next + 1) % MGX_PLAN_RECORDINGS;
    return true;
}

static struct recording *find_recording(struct mgx_context *x, const struct mgx_plan_stretch *s,
                                        struct mgx_plan_recordings *all)
{
    for (int i = 0; i < all->count; i++)
        if (recording_fits(x, s, &all->kept[i]))
            return &all->kept[i];
    return NULL;
}

enum mgx_status mgx_plan_play(struct mgx_context *x, int stretch, enum mgx_plan_played *what,
                              struct mgx_diag *diag)
{
    const struct mgx_plan_stretch *s = &x->plan->stretches[stretch];
    const struct mgx_plan_recorder *recorder = x->plan->machine->recorder;
    struct mgx_plan_recordings *all = recordings_of(x, stretch);
    *what = MGX_PLAN_STEP_BY_STEP;
    if (!all || all->hopeless)
        return MGX_OK;
    struct recording *r = find_recording(x, s, all);
    if (r && r->graph) {
        *what = MGX_PLAN_PLAYED;
        x->busy = true;
        return recorder->play(x->queue, r->graph, diag);
    }
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!r)
        (void)note(x, s, all);
    else if (recorder->begin(x->queue, &quiet) == MGX_OK)
        *what = MGX_PLAN_RECORD;
    else
        all->hopeless = true;
    return MGX_OK;
}

bool mgx_plan_recorded(struct mgx_context *x, int stretch, bool failed)
{
    const struct mgx_plan_recorder *recorder = x->plan->machine->recorder;
    struct mgx_plan_recordings *all = recordings_of(x, stretch);
    struct recording *r = find_recording(x, &x->plan->stretches[stretch], all);
    struct mgx_diag quiet = {.status = MGX_OK};
    void *graph = NULL;
    assert(r && !r->graph);
    const bool kept = recorder->end(x->queue, &graph, &quiet) == MGX_OK && !failed;
    if (kept && recorder->play(x->queue, graph, &quiet) == MGX_OK) {
        r->graph = graph;
        return true;
    }
    if (graph)
        recorder->drop(x->plan->machine, graph);
    all->hopeless = !mgx_cancelled(); // a run that was ended says nothing of the machine
    return false;
}

void mgx_plan_drop_recordings(struct mgx_context *x)
{
    for (int i = 0; x->recordings && i < x->plan->stretch_count; i++)
        for (int k = 0; k < x->recordings[i].count; k++)
            forget(x, &x->recordings[i].kept[k]);
    free(x->recordings);
}
