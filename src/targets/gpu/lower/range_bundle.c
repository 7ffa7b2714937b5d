// SPDX-License-Identifier: MIT
// What is quantized while it runs, in fewer launches. Steps stay what they are; some are done otherwise:
//
//     p = producer(...)                  leaves ranges beside its results (ranged.h)
//     r = byte_range(p)                  is done by the first that reads it, or joins those, one block
//     q = quantize(pad(p), r)            one kernel (range_bytes.gpu), or nothing: then its readers
//     y = product(q, w)                  read p and make the bytes on their way (wgmma_quantize.gpu)
//     z = product(x, w) - sums of x      is one product (range_sums.c)
//
// Holds: producers of a range stand in front of it, not far, and write all that it reads; of what is left undone
// all readers do it. Steps that are done otherwise are one bundle, and what it cannot hold is done step by step.
// Producers know nothing of it: what they leave has room until the end of the run.
#include "targets/gpu/lower/range_bundle.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "plan/context.h"
#include "plan/transfer.h"
#include "targets/gpu/kernel/text.h"

enum { WIDTH = 1024, NARROW = 256 };

struct bundle {
    struct gpu_range_plan p;
    int first, count;
};

// --- ranges ---

static bool is_range(const struct mgx_plan_step *step)
{
    return step->kernel == &gpu_kernel_byte_range && gpu_step_is_plain(step);
}

// The steps in front of a range that write what it reads, all of it, in order; none: others do. There may be
// steps between that have nothing to do with it.
static int producers_of(const struct gpu_range_plan *p, int s, int *producer)
{
    enum { FAR = 12 };
    const struct mgx_plan_step *range = &p->plan->steps[s];
    int64_t missing = mgx_shape_elements(&range->in_value[0]->shape);
    const struct mgx_plan_value *root = mgx_plan_root(range->in_value[0], NULL);
    int count = 0, ranges = 0;
    for (int i = s - 1; i >= 0 && i >= s - FAR && missing > 0; i--) {
        const struct mgx_plan_step *step = &p->plan->steps[i];
        const struct gpu_call *call = gpu_range_call(p, i);
        if (mgx_plan_root(step->out_value, NULL) != root)
            continue;
        if (!call || count == GPU_RANGE_PRODUCERS)
            return 0;
        missing -= mgx_shape_elements(&step->out_value->shape);
        ranges += call->ranges;
        producer[count++] = i;
    }
    for (int i = 0; i < count / 2; i++) {
        const int other = producer[i];
        producer[i] = producer[count - 1 - i];
        producer[count - 1 - i] = other;
    }
    return missing == 0 && ranges <= GPU_RANGES_MOST ? count : 0;
}

static void find_producers(const struct gpu_range_plan *p, int s)
{
    struct gpu_range_action *action = &p->actions[s];
    const int producers = producers_of(p, s, action->producer);
    if (!producers)
        return;
    action->how = GPU_RANGE_JOINED;
    action->producers = producers;
    action->parts = gpu_range_parts(p, s, &action->first_parts);
    gpu_range_say(p, s, "joins what the steps in front leave");
    if (producers == 1 && gpu_range_call(p, action->producer[0])->ranges_alone) {
        p->actions[action->producer[0]].unread = true;
        gpu_range_add(p, action->producer[0], "leaves its range alone");
        gpu_range_tie(p, action->producer[0], s);
    }
}

// Producers leave their ranges in room of their own, from now on: behind all else in a run's block.
static void keep(const struct gpu_range_plan *p, int range)
{
    size_t *bytes = &p->plan->block[MGX_PLAN_DEVICE].bytes;
    for (int i = 0; i < p->actions[range].producers; i++) {
        const int s = p->actions[range].producer[i];
        struct gpu_call *call = (struct gpu_call *)(uintptr_t)gpu_range_call(p, s);
        call->kept = true;
        call->kept_at = mgx_align64(*bytes);
        *bytes = call->kept_at + (size_t)call->ranges * 2 * sizeof(float);
    }
}

static enum mgx_status join(const struct gpu_range_plan *p, int s, struct mgx_diag *diag)
{
    struct gpu_machine *m = gpu_machine(p->plan->machine);
    const struct gpu_properties *card = &m->device->properties;
    struct gpu_call *call = &p->actions[s].call;
    struct mgx_str text = {0};
    int first;
    const int ranges = gpu_range_parts(p, s, &first);
    const int width = ranges > NARROW && card->max_threads >= WIDTH ? WIDTH : NARROW;
    mgx_str_printf(&text, "#define PARTS %d\n#define FIRST_PARTS %d\n#define WIDTH %d\n", ranges,
                   first, width);
    GPU_PUT(&text, ordered_bits);
    GPU_PUT(&text, extremes);
    GPU_PUT(&text, range_scale);
    GPU_PUT(&text, byte_range_join);
    call->how = (struct gpu_launch){.grid = {1, 1, 1},
                                    .block = {(unsigned)width, 1, 1},
                                    .dependent = card->features & GPU_DEPENDENT};
    call->unit = gpu_unit_of(m, "byte_range", &text);
    mgx_str_fini(&text);
    return call->unit ? MGX_OK : mgx_fail_memory(diag);
}

// --- the call ---

// Where byte_range's numbers go, and what its producers have left, in two places.
struct places {
    void *range, *found[GPU_RANGE_PRODUCERS];
};

static void find_places(const struct bundle *k, const struct mgx_context *x, int range,
                        struct places *to)
{
    const struct gpu_range_action *action = &k->p.actions[range];
    const int last = action->producers - 1;
    to->range = mgx_context_address(x, &k->p.plan->steps[range].out);
    for (int i = 0; i < GPU_RANGE_PRODUCERS; i++) {
        const int s = last < 0 ? 0 : action->producer[i < last ? i : last];
        const struct gpu_call *call = last < 0 ? NULL : gpu_range_call(&k->p, s);
        to->found[i] = call ? x->scratch[MGX_PLAN_DEVICE] + call->kept_at : to->range;
    }
}

static enum mgx_status run_join(const struct bundle *k, const struct mgx_context *x, int s,
                                struct mgx_diag *diag)
{
    const struct gpu_call *call = &k->p.actions[s].call;
    struct gpu_device *d = gpu_machine(k->p.plan->machine)->device;
    struct places at;
    find_places(k, x, s, &at);
    const struct gpu_arg list[] = {{&at.range, sizeof(void *), true},
                                   {&at.found[0], sizeof(void *), true},
                                   {&at.found[1], sizeof(void *), true}};
    return d->api->launch(d, gpu_queue_stream(x->queue), call->kernel, &call->how, list,
                          MGX_COUNT(list), diag);
}

static enum mgx_status run_bytes(const struct bundle *k, const struct mgx_context *x, int s,
                                 struct mgx_diag *diag)
{
    const struct gpu_range_action *action = &k->p.actions[s];
    const struct mgx_plan_step *step = &k->p.plan->steps[s];
    struct gpu_device *d = gpu_machine(k->p.plan->machine)->device;
    void *out = mgx_context_address(x, &step->out);
    void *from = mgx_context_address(x, &k->p.plan->steps[action->from].in[action->x]);
    struct places at;
    find_places(k, x, action->range, &at);
    const struct gpu_arg list[] = {{&out, sizeof(void *), true},
                                   {&at.range, sizeof(void *), true},
                                   {&at.found[0], sizeof(void *), true},
                                   {&at.found[1], sizeof(void *), true},
                                   {&from, sizeof(void *), true}};
    return d->api->launch(d, gpu_queue_stream(x->queue), action->call.kernel, &action->call.how,
                          list, MGX_COUNT(list), diag);
}

// Where a step's results go; of those that nobody reads, to its ranges.
static void *place_of(const struct bundle *k, const struct mgx_context *x, int s)
{
    return k->p.actions[s].unread ? x->scratch[MGX_PLAN_DEVICE] + gpu_range_call(&k->p, s)->kept_at
                                  : mgx_context_address(x, &k->p.plan->steps[s].out);
}

static enum mgx_status run_step(const struct bundle *k, const struct mgx_context *x, int s,
                                struct mgx_diag *diag)
{
    const struct mgx_plan_step *step = &k->p.plan->steps[s];
    const struct gpu_range_action *action = &k->p.actions[s];
    for (int i = 0; i < step->in_count; i++)
        x->in[i] = step->skip[i] ? NULL : mgx_context_address(x, &step->in[i]);
    const struct mgx_plan_args args = {.in = x->in,
                                       .out = place_of(k, x, s),
                                       .workspace =
                                           x->scratch[step->side] + step->workspace_scratch,
                                       .machine = k->p.plan->machine,
                                       .queue = x->queue,
                                       .context = (struct mgx_context *)(uintptr_t)x};
    if (!action->product)
        return step->kernel->run(step, &args, diag);
    if (action->how == GPU_RANGE_SUMMING)
        return gpu_wgmma_run(action->product, &args, NULL, 0, diag);
    const struct mgx_plan_step *from = &k->p.plan->steps[action->from];
    struct places at;
    find_places(k, x, action->range, &at);
    void *const more[] = {at.range, at.found[0], at.found[1]};
    x->in[action->product->g.p.operand[0]] = mgx_context_address(x, &from->in[action->x]);
    return gpu_wgmma_run(action->product, &args, more, MGX_COUNT(more), diag);
}

static enum mgx_status run_one(const struct bundle *k, const struct mgx_context *x, int s,
                               struct mgx_diag *diag)
{
    switch (k->p.actions[s].how) {
    case GPU_RANGE_LEFT_OUT:
        return MGX_OK;
    case GPU_RANGE_JOINED:
        return run_join(k, x, s, diag);
    case GPU_RANGE_BYTES:
        return run_bytes(k, x, s, diag);
    default:
        return run_step(k, x, s, diag);
    }
}

static enum mgx_status run(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag)
{
    const struct bundle *k = state;
    *done = true;
    for (int s = k->first; s < k->first + k->count; s++)
        TRY(run_one(k, x, s, diag));
    return MGX_OK;
}

// --- bundles ---

static bool is_free(const struct mgx_plan *plan, int first, int last)
{
    bool one = last - first < MGX_PLAN_BUNDLE_MOST;
    for (int i = first; i <= last && one; i++)
        one = !plan->steps[i].bundle && mgx_plan_bundle_first(plan, i) == i &&
              gpu_step_is_plain(&plan->steps[i]) && !mgx_plan_is_transfer(&plan->steps[i]);
    return one;
}

// The last step of what begins with step s, and with all that begins in that.
static int last_of(const struct gpu_range_plan *p, int s)
{
    int last = s;
    for (int k = s; k <= last; k++)
        last = p->actions[k].until > last ? p->actions[k].until : last;
    return last;
}

static void drop(const struct gpu_range_plan *p, int first, int last)
{
    for (int s = first; s <= last; s++) {
        if (p->actions[s].said)
            p->plan->steps[s].detail = p->actions[s].before;
        p->actions[s] = (struct gpu_range_action){.how = GPU_RANGE_AS_IT_IS};
    }
}

// Do all ranges from step `first` on have the producers that their kernels were written for?
static bool is_sound(const struct gpu_range_plan *p, int first, int last)
{
    int of_first;
    for (int s = first; s <= last; s++) {
        const struct gpu_range_action *action = &p->actions[s];
        const int parts = action->producers ? gpu_range_parts(p, s, &of_first) : 0;
        if (parts != action->parts || (parts && of_first != action->first_parts))
            return false;
    }
    return true;
}

// What no bundle can hold is done step by step, and so is what joins ranges of it. False: nothing was.
static bool drop_some(const struct gpu_range_plan *p)
{
    bool any = false;
    for (int s = 0, last; s < p->plan->step_count; s = last + 1) {
        last = last_of(p, s);
        if (last == s || (is_free(p->plan, s, last) && is_sound(p, s, last)))
            continue;
        drop(p, s, last);
        any = true;
    }
    return any;
}

static enum mgx_status bundle(const struct gpu_range_plan *p, int s, int last,
                              struct mgx_diag *diag)
{
    struct mgx_arena *arena = &p->plan->store.arena;
    struct bundle *k = MGX_NEW(arena, struct bundle);
    struct mgx_plan_bundle *bundle = MGX_NEW(arena, struct mgx_plan_bundle);
    if (!k || !bundle)
        return mgx_fail_memory(diag);
    *k = (struct bundle){*p, s, last - s + 1};
    *bundle = (struct mgx_plan_bundle){k->count, run, k};
    p->plan->steps[s].bundle = bundle;
    for (int i = s; i <= last; i++)
        if (p->actions[i].how == GPU_RANGE_JOINED)
            TRY(join(p, i, diag));
    return MGX_OK;
}

enum mgx_status gpu_range_bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    const size_t bytes = (size_t)plan->step_count * sizeof(struct gpu_range_action);
    const struct gpu_range_plan p = {plan, mgx_arena_alloc(&plan->store.arena, bytes)};
    if (!p.actions)
        return mgx_fail_memory(diag);
    memset(p.actions, 0, bytes);
    for (int s = 0; s < plan->step_count; s++)
        gpu_range_sums(&p, s);
    for (int s = 0; s < plan->step_count; s++) {
        TRY(gpu_range_sum(&p, s, diag));
        if (is_range(&plan->steps[s]))
            find_producers(&p, s);
        else
            TRY(gpu_range_bytes(&p, s, diag));
    }
    while (drop_some(&p)) {
    }
    for (int s = 0, last; s < plan->step_count; s = last + 1)
        if ((last = last_of(&p, s)) > s || p.actions[s].how == GPU_RANGE_JOINED)
            TRY(bundle(&p, s, last, diag));
    return MGX_OK;
}

enum mgx_status gpu_range_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_bundle *bundle = plan->steps[s].bundle;
        if (!bundle || bundle->run != run)
            continue;
        const struct bundle *k = bundle->state;
        for (int i = k->first; i < k->first + k->count; i++) {
            struct gpu_range_action *a = &k->p.actions[i];
            keep(&k->p, i);
            if (a->how == GPU_RANGE_JOINED)
                TRY(gpu_unit_kernel(a->call.unit, "run1", 0, &a->call.kernel, diag));
            if (a->how == GPU_RANGE_BYTES)
                TRY(gpu_unit_kernel(a->call.unit, "run", 0, &a->call.kernel, diag));
            if (a->product)
                TRY(gpu_wgmma_finish(plan, a->product, diag));
        }
    }
    return MGX_OK;
}
