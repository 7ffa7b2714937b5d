// SPDX-License-Identifier: MIT
// What a decoder's attention does in a step, as one call: queries and the new key are turned, key and
// value appended, and the tokens look at the cache.
//
//     rotary_embedding(x)            q, k, or both; or none
//     cache_append(k), (v)           past and result one memory, which only the run knows
//     cache_attention(q, K, V)       reads q, k and v where they were before (kernel/cache_attention.gpu)
//
// Holds: nobody else reads what the rotation makes. A run whose caches lie apart does the steps one by
// one. Cost: two launches, where the steps take five or six.
#include <assert.h>

#include "op/op.h"
#include "plan/context.h"
#include "targets/gpu/lower/cache.h"

enum { NOW, ENDS, TOTAL, PAST }; // of cache_append
enum { Q, K, V, LAST, MORE };    // of cache_attention
enum { X, COS, SIN, AT };        // of rotary_embedding
enum { MOST_STEPS = 5 };

struct fused {
    struct gpu_cached g;
    const struct mgx_plan_machine *machine;
    const struct mgx_plan_step *append[2]; // of keys, of values
    struct mgx_plan_ref q, k, v, cos, sin, at, ends, bias, sink, out;
    bool turned;
    size_t work;
};

// Operand of a rotation, or of none: heads [head, ...) of `step`'s input `slot`.
struct origin {
    const struct mgx_plan_step *rotary; // NULL: nothing turned it
    const struct mgx_plan_step *step;
    int slot;
    int64_t head;
};

// --- finding the steps ---

static const struct mgx_plan_step *step_of(const struct mgx_plan *plan, int last,
                                           const struct mgx_ins *ins)
{
    for (int s = last; s >= 0 && s > last - MOST_STEPS; s--)
        if (plan->steps[s].ins == ins && !plan->steps[s].copies)
            return &plan->steps[s];
    return NULL;
}

static bool is_append(const struct mgx_plan_step *step)
{
    return step && step->kernel == &gpu_kernel_cache_append && step->in_count > PAST &&
           mgx_shape_equal(&step->in_value[PAST]->shape, &step->out_value->shape);
}

// The heads that a slice takes; false for one of other axes.
static bool takes_heads(const struct mgx_ins *ins, int64_t *first)
{
    if (ins->op != &mgx_op_slice || ins->in_count != 1)
        return false;
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes"), starts = mgx_ins_ints(ins, "starts");
    *first = starts.count ? starts.v[0] : -1;
    return axes.count == 1 && axes.v[0] == 1 && *first >= 0;
}

static struct origin origin_of(const struct mgx_plan *plan, int last,
                               const struct mgx_plan_step *reader, int slot)
{
    struct origin o = {.step = reader, .slot = slot};
    const struct mgx_ins *ins = reader->ins->in[slot];
    int64_t first = 0;
    if (takes_heads(ins, &first))
        ins = ins->in[0];
    const struct mgx_plan_step *rotary =
        ins->op == &mgx_op_rotary_embedding ? step_of(plan, last, ins) : NULL;
    if (rotary && rotary->kernel == &gpu_kernel_rotary)
        o = (struct origin){.rotary = rotary, .step = rotary, .slot = X, .head = first};
    return o;
}

// Does everything that reads the rotation, through slices of heads, belong to the call?
static bool is_inner(const struct mgx_ins *rotary, const struct mgx_ins *const *readers, int count)
{
    for (const struct mgx_use *use = rotary->uses; use; use = use->next) {
        bool inner = false;
        for (int i = 0; i < count; i++)
            inner |= use->user == readers[i];
        int64_t first;
        if (!inner && !(takes_heads(use->user, &first) && is_inner(use->user, readers, count)))
            return false;
    }
    return rotary->uses;
}

struct found {
    const struct mgx_plan_step *attention, *append[2];
    struct origin q, k;
    int first; // step
};

// One table, one kind of pairs and one kind of positions turn both.
static bool turns_alike(const struct origin *q, const struct origin *k)
{
    if (q->rotary == k->rotary)
        return true;
    if (!q->rotary || !k->rotary)
        return false;
    for (int i = COS; i <= AT; i++)
        if (q->rotary->ins->in[i] != k->rotary->ins->in[i])
            return false;
    return mgx_ins_int(q->rotary->ins, "interleaved") == mgx_ins_int(k->rotary->ins, "interleaved");
}

static bool find(const struct mgx_plan *plan, int s, struct found *f)
{
    const struct mgx_plan_step *a = &plan->steps[s];
    *f = (struct found){.attention = a};
    if (a->kernel != &gpu_kernel_cache_attention || ((const struct gpu_cached *)a->state)->kept)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct mgx_plan_step *append = f->append[i] = step_of(plan, s, a->ins->in[K + i]);
        if (!is_append(append) || a->in_value[K + i] != append->out_value)
            return false;
    }
    if (f->append[0]->ins->in[ENDS] != a->ins->in[LAST] ||
        f->append[1]->ins->in[ENDS] != a->ins->in[LAST] || f->append[0] == f->append[1])
        return false;
    f->q = origin_of(plan, s, a, Q);
    f->k = origin_of(plan, s, f->append[0], NOW);
    const struct mgx_ins *const readers[] = {a->ins, f->append[0]->ins};
    if (!turns_alike(&f->q, &f->k) || (f->q.rotary && !is_inner(f->q.rotary->ins, readers, 2)) ||
        (f->k.rotary && !is_inner(f->k.rotary->ins, readers, 2)))
        return false;
    const int rotations = (f->q.rotary != NULL) + (f->k.rotary && f->k.rotary != f->q.rotary);
    f->first = s - 2 - rotations;
    return f->first >= 0;
}

// All steps from the first on are those that were found, in whatever order, and no other bundle's.
static bool are_together(const struct mgx_plan *plan, const struct found *f)
{
    for (const struct mgx_plan_step *step = &plan->steps[f->first]; step < f->attention; step++)
        if ((step != f->append[0] && step != f->append[1] && step != f->q.rotary &&
             step != f->k.rotary) ||
            step->bundle)
            return false;
    return true;
}

// --- the call ---

static enum mgx_status run(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag)
{
    const struct fused *f = state;
    void *cache[2];
    for (int i = 0; i < 2; i++) {
        cache[i] = mgx_context_address(x, &f->append[i]->out);
        if (cache[i] != mgx_context_address(x, &f->append[i]->in[PAST]))
            return MGX_OK;
    }
    const struct gpu_cached_args a = {.work = x->scratch[MGX_PLAN_DEVICE] + f->work,
                                      .q = mgx_context_address(x, &f->q),
                                      .k = cache[0],
                                      .v = cache[1],
                                      .ends = mgx_context_address(x, &f->ends),
                                      .bias = mgx_context_address(x, &f->bias),
                                      .sink = mgx_context_address(x, &f->sink),
                                      .out = mgx_context_address(x, &f->out),
                                      .new_k = mgx_context_address(x, &f->k),
                                      .new_v = mgx_context_address(x, &f->v),
                                      .cosines = f->turned ? mgx_context_address(x, &f->cos) : NULL,
                                      .sines = f->turned ? mgx_context_address(x, &f->sin) : NULL,
                                      .at = f->turned ? mgx_context_address(x, &f->at) : NULL};
    *done = true;
    return gpu_cached_launch(&f->g, &a, f->machine, x->queue, diag);
}

// Where the heads of an operand begin before they were turned.
static struct mgx_plan_ref ref_of(const struct origin *o)
{
    struct mgx_plan_ref ref = o->step->in[o->slot];
    const struct mgx_shape *s = &o->step->in_value[o->slot]->shape;
    ref.offset += o->head * s->strides[1] * (int64_t)mgx_type_size(s->type);
    return ref;
}

static void describe(const struct found *f, struct gpu_cache_before *before)
{
    const struct mgx_plan_step *rotary = f->q.rotary;
    *before = (struct gpu_cache_before){.q = f->q.step->in_value[f->q.slot]->shape,
                                        .k = f->k.step->in_value[f->k.slot]->shape,
                                        .v = f->append[1]->in_value[NOW]->shape,
                                        .tokens = f->append[0]->in_value[NOW]->shape.lens[2]};
    if (!rotary)
        return;
    before->cosines = &rotary->in_value[COS]->shape;
    before->sines = &rotary->in_value[SIN]->shape;
    before->at = &rotary->in_value[AT]->shape;
    before->interleaved = mgx_ins_int(rotary->ins, "interleaved") != 0;
}

static bool emit(const struct mgx_plan *plan, const struct found *f, struct mgx_str *text)
{
    struct gpu_cache_before before;
    struct mgx_shape in[GPU_CALL_INPUTS];
    const struct mgx_plan_offer offer = gpu_offer_of(plan, f->attention, in);
    describe(f, &before);
    return gpu_cache_attention_emit(text, &offer, &before);
}

static enum mgx_status gather(struct mgx_plan *plan, const struct found *f, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    struct fused *k = MGX_NEW(&plan->store.arena, struct fused);
    struct mgx_plan_bundle *bundle = MGX_NEW(&plan->store.arena, struct mgx_plan_bundle);
    if (!k || !bundle)
        return mgx_fail_memory(diag);
    if (!emit(plan, f, &text)) {
        mgx_str_fini(&text);
        return MGX_OK;
    }
    k->g = *(const struct gpu_cached *)f->attention->state;
    k->g.call.unit = gpu_unit_of(gpu_machine(plan->machine), "cache_attention", &text);
    mgx_str_fini(&text);
    if (!k->g.call.unit)
        return mgx_fail_memory(diag);
    k->machine = plan->machine;
    k->append[0] = f->append[0];
    k->append[1] = f->append[1];
    k->turned = f->q.rotary != NULL;
    *bundle = (struct mgx_plan_bundle){(int)(f->attention - &plan->steps[f->first]) + 1, run, k};
    plan->steps[f->first].bundle = bundle;
    return MGX_OK;
}

enum mgx_status gpu_cache_bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct found f;
    for (int s = 0; s < plan->step_count; s++)
        if (find(plan, s, &f) && are_together(plan, &f))
            TRY(gather(plan, &f, diag));
    return MGX_OK;
}

// Places are known now, and kernels.
enum mgx_status gpu_cache_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct found f;
    for (int s = 0; s < plan->step_count; s++) {
        if (!find(plan, s, &f) || !plan->steps[f.first].bundle ||
            plan->steps[f.first].bundle->run != run)
            continue;
        struct fused *k = (struct fused *)(uintptr_t)plan->steps[f.first].bundle->state;
        const struct mgx_plan_step *a = f.attention, *rotary = f.q.rotary;
        k->q = ref_of(&f.q);
        k->k = ref_of(&f.k);
        k->v = f.append[1]->in[NOW];
        k->ends = a->in[LAST];
        k->bias = a->in[k->g.bias >= 0 ? k->g.bias : LAST];
        k->sink = a->in[k->g.sink >= 0 ? k->g.sink : LAST];
        k->out = a->out;
        k->work = a->workspace_scratch;
        if (rotary) {
            k->cos = rotary->in[COS];
            k->sin = rotary->in[SIN];
            k->at = rotary->in[AT];
        }
        TRY(gpu_cached_find(&k->g, diag));
    }
    return MGX_OK;
}
