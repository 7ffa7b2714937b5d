// SPDX-License-Identifier: MIT
// Products whose results become bytes by their own range, in one launch (kernel/wgmma_meet.gpu):
//
//     p = product(...)                  its blocks meet, and leave bytes, floats where others read them
//     r = byte_range(p)                 nothing: the first block leaves it
//     q = quantize(p, r)                nothing
//
// Holds: all of p's blocks are at work at once. What q and r are is there from p's step on: they are moved to where
// nothing else lies then, p's operands included.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan/context.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/range_bundle.h"

enum {
    MEETING = 64,
    NEAR = 8,
    ALIGNED = 256
}; // bytes of one in a run's block; steps from a product to its bytes

struct place { // bytes of a run's block on the card
    size_t first, end;
};

static struct place place_of(const struct mgx_plan_value *root)
{
    const bool in_block = root->place == MGX_PLAN_SCRATCH && root->side == MGX_PLAN_DEVICE;
    return (struct place){in_block ? root->scratch : 0, in_block ? root->scratch + root->bytes : 0};
}

static void add_value(struct place *list, int *count, struct mgx_plan_value *v, int first, int last,
                      const struct mgx_plan_value *but)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    if (root != but && root->first <= last && root->last >= first)
        list[(*count)++] = place_of(root);
}

static int by_first(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

// Where in a run's block nothing lies from step `first` to `last`, but for `but`: from `at` on if that is such a
// place. Values that are only counted once more do no harm. False: out of memory.
static bool find_room(const struct gpu_range_plan *p, int first, int last,
                      const struct mgx_plan_value *but, size_t *at)
{
    int most = 0, count = 0;
    for (int s = 0; s < p->plan->step_count; s++)
        most += p->plan->steps[s].in_count + 2;
    struct place *list = malloc((size_t)most * sizeof *list);
    if (!list)
        return false;
    for (int s = 0; s < p->plan->step_count; s++) {
        const struct mgx_plan_step *step = &p->plan->steps[s];
        add_value(list, &count, step->out_value, first, last, but);
        for (int i = 0; i < step->in_count; i++)
            add_value(list, &count, step->in_value[i], first, last, but);
        if (step->workspace && s >= first && s <= last)
            list[count++] =
                (struct place){step->workspace_scratch, step->workspace_scratch + step->workspace};
    }
    qsort(list, (size_t)count, sizeof *list, by_first);
    bool free_there = true;
    size_t room = 0;
    for (int i = 0; i < count; i++) {
        free_there = free_there && (list[i].end <= *at || list[i].first >= *at + but->bytes);
        if (list[i].first < room + but->bytes && list[i].end > room)
            room = (list[i].end + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    *at = free_there ? *at : room;
    free(list);
    return true;
}

static void move_ref(struct mgx_plan_ref *ref, struct mgx_plan_value *v,
                     const struct mgx_plan_value *moved)
{
    int64_t offset = 0;
    if (mgx_plan_root(v, &offset) == moved)
        ref->offset = (int64_t)moved->scratch + offset;
}

// A value that is there from step `first` on, earlier than it was planned: elsewhere, where others' bytes lie then.
static bool bring_forward(const struct gpu_range_plan *p, struct mgx_plan_value *v, int first)
{
    size_t *bytes = &p->plan->block[MGX_PLAN_DEVICE].bytes, at = v->scratch;
    if (!find_room(p, first, v->last, v, &at))
        return false;
    v->scratch = at;
    v->first = first;
    *bytes = *bytes > at + v->bytes ? *bytes : at + v->bytes;
    for (int s = 0; s < p->plan->step_count; s++) {
        struct mgx_plan_step *step = &p->plan->steps[s];
        for (int i = 0; i < step->in_count; i++)
            move_ref(&step->in[i], step->in_value[i], v);
        move_ref(&step->out, step->out_value, v);
    }
    return true;
}

// Is it in a run's block, and nobody's in place of others?
static bool can_move(const struct gpu_range_plan *p, struct mgx_plan_value *v)
{
    bool can = mgx_plan_root(v, NULL) == v && v->place == MGX_PLAN_SCRATCH &&
               v->side == MGX_PLAN_DEVICE && !v->bound;
    for (int s = 0; s < p->plan->step_count && can; s++) {
        const struct mgx_plan_step *step = &p->plan->steps[s];
        can = step->in_place < 0 || mgx_plan_root(step->in_value[step->in_place], NULL) != v;
    }
    return can;
}

// Does somebody read the floats, besides the range and the step that makes bytes?
static bool has_others(const struct gpu_range_plan *p, int product, int range, int made)
{
    const struct mgx_plan_value *floats = p->plan->steps[product].out_value;
    assert(floats->place == MGX_PLAN_SCRATCH);
    for (int s = product + 1; s < p->plan->step_count; s++)
        for (int i = 0; i < p->plan->steps[s].in_count; i++)
            if (s != range && s != made &&
                mgx_plan_root(p->plan->steps[s].in_value[i], NULL) == floats)
                return true;
    return false;
}

// Do words of 16 bytes of all that the end reads, but for numbers, begin at such?
static bool lies_well(const struct mgx_plan_step *step, const struct gpu_product *g)
{
    bool well = true;
    for (int e = 0; e < g->extra_count && well; e++) {
        int64_t begin = 0;
        struct mgx_plan_value *v = step->in_value[g->extra[e]];
        const enum mgx_plan_place place = mgx_plan_root(v, &begin)->place;
        well = gpu_is_number(&v->shape) ||
               (begin % 16 == 0 && (place == MGX_PLAN_CONST || place == MGX_PLAN_SCRATCH));
    }
    return well;
}

// The product in front that alone makes the floats of step `made`, whose range is that of step `range`; -1.
static int product_of(const struct gpu_range_plan *p, int range, int made,
                      struct mgx_plan_value *floats)
{
    const struct gpu_range_action *action = &p->actions[range];
    const bool one = action->how == GPU_RANGE_JOINED && action->producers == 1;
    const int s = one ? action->producer[0] : -1;
    if (s < 0 || made - s > NEAR || p->plan->steps[s].kernel != &gpu_kernel_wgmma)
        return -1;
    const struct mgx_plan_step *step = &p->plan->steps[s];
    const struct gpu_wgmma_product *g = &((const struct gpu_wgmma_call *)step->state)->g;
    const struct mgx_shape *bytes = &p->plan->steps[made].out_value->shape;
    struct mgx_shape same = floats->shape;
    int64_t begin = 0;
    same.type = bytes->type;
    const bool all = mgx_plan_root(floats, &begin) == step->out_value && begin == 0 &&
                     mgx_plan_root(step->out_value, NULL) == step->out_value &&
                     mgx_shape_elements(bytes) == mgx_shape_elements(&step->out_value->shape) &&
                     step->out_value->place == MGX_PLAN_SCRATCH;
    return all && gpu_product_is_bytes(&g->p) && mgx_shape_equal(&same, bytes) &&
                   mgx_shape_is_packed(bytes) && mgx_shape_is_packed(&step->out_value->shape) &&
                   gpu_wgmma_leaves_lines(&step->out_value->shape, g) && lies_well(step, &g->p)
               ? s
               : -1;
}

static void say(const struct gpu_range_plan *p, int s, const struct gpu_wgmma_meeting *m)
{
    gpu_range_add(p, s,
                  mgx_arena_printf(&p->plan->store.arena,
                                   "its blocks meet, and leave %sbytes, %.1f us, apart %.1f",
                                   m->keeps ? "floats and " : "", m->met, m->apart));
}

enum mgx_status gpu_range_meet(const struct gpu_range_plan *p, int range, int made, double apart,
                               struct mgx_plan_value *floats, bool *done, struct mgx_diag *diag)
{
    const struct mgx_plan_step *steps = p->plan->steps;
    const int s = product_of(p, range, made, floats);
    *done = false;
    if (s < 0 || !(gpu_machine(p->plan->machine)->device->properties.features & GPU_DEPENDENT) ||
        !can_move(p, steps[made].out_value) || !can_move(p, steps[range].out_value))
        return MGX_OK;
    struct gpu_range_action *action = &p->actions[s];
    const struct gpu_wgmma_call *product = action->product ? action->product : steps[s].state;
    struct gpu_wgmma_meeting m = {.keeps = has_others(p, s, range, made), .apart = apart};
    struct gpu_wgmma_call *met;
    TRY(gpu_wgmma_meet(p->plan, &steps[s], product, &m, &met, diag));
    if (!met)
        return MGX_OK;
    if (!bring_forward(p, steps[made].out_value, s) || !bring_forward(p, steps[range].out_value, s))
        return mgx_fail_memory(diag);
    action->product = met;
    action->met = made;
    action->met_range = range;
    p->actions[range] = (struct gpu_range_action){.how = GPU_RANGE_LEFT_OUT};
    p->actions[made].how = GPU_RANGE_LEFT_OUT;
    gpu_range_say(p, range, "done by the product in front");
    gpu_range_say(p, made, "done by the product in front");
    say(p, s, &m);
    gpu_range_tie(p, s, made);
    *done = true;
    return MGX_OK;
}

// --- meetings ---

static int meetings_of(const struct gpu_range_plan *p)
{
    int meetings = 0;
    for (int s = 0; s < p->plan->step_count; s++)
        meetings += p->actions[s].met > 0;
    return meetings;
}

enum mgx_status gpu_range_meetings(const struct gpu_range_plan *p, struct gpu_call *clear,
                                   struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    const int words = meetings_of(p) * (MEETING / (int)sizeof(uint32_t));
    if (!words)
        return MGX_OK;
    mgx_str_printf(&text, "#define COUNT %d\n", words);
    GPU_PUT(&text, clear_meetings);
    clear->how = gpu_launch_for(words);
    clear->how.dependent = true;
    clear->unit = gpu_unit_of(gpu_machine(p->plan->machine), "clear_meetings", &text);
    mgx_str_fini(&text);
    return clear->unit ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status gpu_range_meetings_finish(const struct gpu_range_plan *p, struct gpu_call *clear,
                                          struct mgx_diag *diag)
{
    size_t *bytes = &p->plan->block[MGX_PLAN_DEVICE].bytes;
    assert(clear->unit);
    clear->kept_at = *bytes = mgx_align64(*bytes);
    for (int s = 0; s < p->plan->step_count; s++) {
        struct gpu_range_action *action = &p->actions[s];
        struct gpu_call *call = action->product ? &action->product->base : &action->call;
        if (!action->met)
            continue;
        call->kept = true;
        call->kept_at = *bytes;
        *bytes += MEETING;
    }
    return gpu_unit_kernel(clear->unit, "run", 0, &clear->kernel, diag);
}

enum mgx_status gpu_range_meetings_run(const struct gpu_range_plan *p, const struct gpu_call *clear,
                                       const struct mgx_context *x, struct mgx_diag *diag)
{
    struct gpu_device *d = gpu_machine(p->plan->machine)->device;
    void *meetings = x->scratch[MGX_PLAN_DEVICE] + clear->kept_at;
    const struct gpu_arg list[] = {{&meetings, sizeof meetings, true}};
    return d->api->launch(d, gpu_queue_stream(x->queue), clear->kernel, &clear->how, list, 1, diag);
}
