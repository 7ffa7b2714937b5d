// SPDX-License-Identifier: MIT
// Steps around products of a few rows, as one kernel (kernel/few_units.gpu, few.gpu):
//
//     n = x / sqrt(mean of x^2 + eps) * gain         a normalisation, or none,
//     p = n u, q = n v                               whose readers are one product,
//     y = tail(p, q, ...)                            or two, whose sums one instruction reads
//
// Two products are one step whose halves an element-wise step reads, or two steps, of which the second
// has the first's result in its tail.
//
// Holds: nobody else reads what lies between the first step and the last. Cost: one launch, where the
// steps take two to four, and nothing of what lies between is written.
#include <string.h>

#include "op/op.h"
#include "plan/context.h"
#include "targets/gpu/lower/few.h"
#include "targets/gpu/lower/wgmma.h"

enum { MOST_STEPS = 4 };

struct found {
    const struct mgx_plan_step *norm, *product, *second, *last; // norm and second may be NULL
    struct gpu_few_norm how;
    int count;
};

struct fused {
    struct gpu_call base;
    struct gpu_few f;
    const struct mgx_plan_machine *machine;
    void *packed[2][GPU_FEW_PARTS];
    const struct mgx_plan_step *from, *last; // that has x, and that has the result
    int x, gain;                             // inputs of `from`
};

// --- finding the steps ---

static const struct gpu_few_call *call_of(const struct mgx_plan_step *step)
{
    return step->state;
}

static bool is_few(const struct mgx_plan_step *step)
{
    return step->kernel == &gpu_kernel_few && !step->copies && !step->drop_count;
}

// Is `v` all of what `made` is, at its place?
static bool is_same(struct mgx_plan_value *v, struct mgx_plan_value *made)
{
    int64_t at = 0, begin = 0;
    return mgx_plan_root(v, &at) == mgx_plan_root(made, &begin) && at == begin &&
           mgx_shape_elements(&v->shape) == mgx_shape_elements(&made->shape);
}

// Does everything that reads it, through views, belong to the steps that end before `end`?
static bool is_inner(const struct mgx_ins *ins, const struct mgx_plan_step *first,
                     const struct mgx_plan_step *end)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        bool inner = false;
        for (const struct mgx_plan_step *step = first; step < end; step++)
            inner |= step->ins == use->user;
        if (!inner && !((use->user->op->flags & MGX_OP_VIEW) && is_inner(use->user, first, end)))
            return false;
    }
    return ins->uses != NULL;
}

// One stride from row to row, along which rows lie in order, and lines.
static bool has_rows(const struct mgx_shape *s, int64_t *pitch)
{
    int axes[MGX_MAX_RANK];
    for (int i = 0; i + 1 < s->rank; i++)
        axes[i] = i;
    return s->rank >= 2 && gpu_wgmma_merge(s, axes, s->rank - 1, pitch) &&
           (s->strides[s->rank - 1] == 1 || s->lens[s->rank - 1] == 1);
}

static bool is_constant(struct mgx_plan_value *v)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    return root->place == MGX_PLAN_CONST && root->side == MGX_PLAN_DEVICE;
}

// A gain for every place of a row, the same for all rows.
static bool is_gain(struct mgx_plan_value *v, int64_t depth)
{
    const struct mgx_shape *s = &v->shape;
    bool row = s->rank > 0 && s->lens[s->rank - 1] == depth && s->strides[s->rank - 1] == 1;
    for (int i = 0; i + 1 < s->rank; i++)
        row = row && (s->lens[i] == 1 || s->strides[i] == 0);
    return row && is_constant(v) && (s->type == MGX_FLOAT || mgx_type_is_half_or_bf16(s->type));
}

static bool is_norm(const struct mgx_plan_step *step, struct gpu_few_norm *how)
{
    return !step->copies && !step->drop_count && step->side == MGX_PLAN_DEVICE &&
           gpu_few_norm_read(step->ins, how);
}

// Can the product's kernel normalise x itself?
static bool takes_norm(const struct mgx_plan_step *product, const struct mgx_plan_step *norm,
                       const struct gpu_few_norm *how)
{
    const struct gpu_few *f = &call_of(product)->f;
    struct mgx_plan_value *x = norm->in_value[how->x];
    const int64_t offset = norm->in[how->x].offset;
    int64_t pitch = 0;
    return is_same(product->in_value[f->p.operand[0]], norm->out_value) &&
           (f->held || !f->w.units) && x->shape.type == f->type &&
           x->shape.lens[x->shape.rank - 1] == f->w.k && has_rows(&x->shape, &pitch) &&
           mgx_shape_elements(&x->shape) == f->rows * f->w.k && offset % 16 == 0 &&
           (f->rows == 1 || !f->wide || pitch * (int64_t)mgx_type_size(f->type) % 16 == 0) &&
           is_gain(norm->in_value[how->gain], f->w.k);
}

// --- two products ---

// Which half of the product's columns an operand is; -1: it is none.
static int half_of(struct mgx_plan_value *v, const struct mgx_plan_step *product)
{
    const struct gpu_few *f = &call_of(product)->f;
    const int64_t size = (int64_t)mgx_type_size(product->out_value->shape.type);
    int64_t at = 0, begin = 0, pitch = 0;
    if (mgx_plan_root(v, &at) != mgx_plan_root(product->out_value, &begin) ||
        v->shape.lens[v->shape.rank - 1] != f->w.n / 2 || !has_rows(&v->shape, &pitch) ||
        (f->rows > 1 && pitch != f->w.n))
        return -1;
    return at == begin ? 0 : at == begin + f->w.n / 2 * size ? 1 : -1;
}

// An element-wise step that reads both halves once each. Fills the product as its tail sees it.
static bool read_halves(const struct mgx_plan_step *product, const struct mgx_plan_step *step,
                        struct gpu_product *p)
{
    const struct gpu_few *f = &call_of(product)->f;
    int seen[2] = {0, 0};
    if (step->kernel != &gpu_kernel_pointwise || step->copies || step->drop_count || f->p.tail ||
        step->in_count > GPU_CALL_INPUTS - 2 || f->w.n % 16 ||
        (step->ins->op == &mgx_op_pointwise && mgx_module_result_count(step->ins->mod[0]) != 1))
        return false;
    *p = f->p;
    p->tail = step->ins;
    p->extra_count = 0;
    for (int i = 0; i < step->in_count; i++) {
        const int half = half_of(step->in_value[i], product);
        if (half >= 0)
            seen[half]++;
        if (half == 1) {
            p->place = i;
            continue;
        }
        p->extra[p->extra_count++] = i;
        if (half == 0)
            p->given = p->extra_count;
    }
    return seen[0] == 1 && seen[1] == 1;
}

static bool are_alike(const struct gpu_few *a, const struct gpu_few *b)
{
    const struct gpu_few_weights *v = &a->w, *w = &b->w;
    bool alike = v->bits == w->bits && v->n == w->n && v->k == w->k && v->block == w->block &&
                 v->units == w->units && v->zeros == w->zeros && !v->blocks == !w->blocks &&
                 a->rows == b->rows && a->type == b->type && a->pitch == b->pitch;
    for (int part = 0; part < GPU_FEW_PARTS && alike && v->blocks; part++)
        if (v->source[part])
            alike = v->source[part]->shape.type == w->source[part]->shape.type;
    return alike;
}

// A second product of the same x whose tail reads the first one's result, at the same place.
static bool read_second(const struct mgx_plan_step *product, const struct mgx_plan_step *step,
                        struct gpu_product *p)
{
    if (!is_few(step))
        return false;
    const struct gpu_few *first = &call_of(product)->f, *f = &call_of(step)->f;
    *p = f->p;
    p->make = first->p.tail;
    if ((p->make && p->make->in_count != 1) || !are_alike(first, f) ||
        !is_same(step->in_value[f->p.operand[0]], product->in_value[first->p.operand[0]]))
        return false;
    for (int e = 0; e < p->extra_count; e++) {
        struct mgx_plan_value *v = step->in_value[p->extra[e]];
        if (is_same(v, product->out_value) && !p->given &&
            mgx_shape_equal(&v->shape, &product->out_value->shape))
            p->given = e + 1;
    }
    return p->given != 0;
}

// --- what is gathered ---

static bool is_free(const struct mgx_plan *plan, int s, int count)
{
    bool one = s + count <= plan->step_count;
    for (int i = s; i < s + count && one; i++)
        one = !plan->steps[i].bundle && mgx_plan_bundle_first(plan, i) == i;
    return one;
}

static bool is_closed(const struct found *f)
{
    const struct mgx_plan_step *first = f->norm ? f->norm : f->product;
    for (const struct mgx_plan_step *step = first; step < f->last; step++)
        if (!is_inner(step->ins, first, f->last + 1))
            return false;
    return true;
}

// From step s on, with the longest that there is; p: as the last one's kernel has it.
static bool find(const struct mgx_plan *plan, int s, bool with_norm, struct found *f,
                 struct gpu_product *p)
{
    const struct mgx_plan_step *step = &plan->steps[s], *end = plan->steps + plan->step_count;
    *f = (struct found){.norm = with_norm ? step : NULL, .product = step + with_norm};
    if ((with_norm && !is_norm(step, &f->how)) || f->product >= end || !is_few(f->product) ||
        (with_norm && !takes_norm(f->product, step, &f->how)))
        return false;
    f->last = f->product + 1;
    if (f->last < end && read_second(f->product, f->last, p))
        f->second = f->last;
    else if (f->last == end || !read_halves(f->product, f->last, p))
        f->last = f->product;
    f->count = (int)(f->last - step) + 1;
    if (f->last > f->product && f->count > 1 && is_closed(f) && is_free(plan, s, f->count))
        return true;
    f->second = NULL; // the normalisation and the product alone
    f->last = f->product;
    f->count = 1 + with_norm;
    *p = call_of(f->product)->f.p;
    return with_norm && is_closed(f) && is_free(plan, s, f->count);
}

// --- the call ---

static enum mgx_status run(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag)
{
    const struct fused *k = state;
    struct gpu_device *d = gpu_machine(k->machine)->device;
    struct gpu_arg list[3 + 2 * GPU_FEW_PARTS + GPU_CALL_INPUTS];
    void *extra[GPU_CALL_INPUTS];
    void *out = mgx_context_address(x, &k->last->out);
    void *from = mgx_context_address(x, &k->from->in[k->x]);
    void *gain = k->f.norm ? mgx_context_address(x, &k->from->in[k->gain]) : NULL;
    int count = 0;
    if (k->f.w.units && k->f.wide && (uintptr_t)from % 16) // each step says so
        return MGX_OK;
    list[count++] = (struct gpu_arg){&out, sizeof out, true};
    list[count++] = (struct gpu_arg){&from, sizeof from, true};
    count = gpu_few_weight_args(&k->f.w, k->packed[0], list, count);
    if (k->f.gated && !k->f.second)
        count = gpu_few_weight_args(&k->f.w, k->packed[1], list, count);
    if (k->f.norm)
        list[count++] = (struct gpu_arg){&gain, sizeof gain, true};
    for (int i = 0; i < k->base.in_count; i++) {
        extra[i] = mgx_context_address(x, &k->last->in[k->base.in[i]]);
        list[count++] = (struct gpu_arg){&extra[i], sizeof extra[i], true};
    }
    *done = true;
    return d->api->launch(d, gpu_queue_stream(x->queue), k->base.kernel, &k->base.how, list, count,
                          diag);
}

static void describe(const struct found *found, const struct gpu_product *p, struct fused *k,
                     const struct gpu_device *device)
{
    const struct gpu_few_call *product = call_of(found->product);
    struct gpu_few *f = &k->f;
    *f = product->f;
    f->p = *p;
    f->gated = found->last != found->product;
    if (f->gated && !found->second)
        f->w.n = f->second = f->w.n / 2;
    f->norm = found->norm != NULL;
    k->from = f->norm ? found->norm : found->product;
    k->x = f->norm ? found->how.x : product->f.p.operand[0];
    k->gain = f->norm ? found->how.gain : 0;
    k->last = found->last;
    memcpy(k->packed[0], product->packed, sizeof k->packed[0]);
    if (found->second)
        memcpy(k->packed[1], call_of(found->second)->packed, sizeof k->packed[1]);
    if (f->norm) {
        f->eps = found->how.eps;
        f->gain = found->norm->in_value[k->gain]->shape.type;
        has_rows(&found->norm->in_value[k->x]->shape, &f->pitch);
    }
    gpu_few_divide(f, device);
}

// The last step as an offer has it.
static const char *emit(const struct mgx_plan *plan, const struct fused *k, struct mgx_str *text)
{
    struct mgx_shape in[GPU_CALL_INPUTS];
    if (k->last->in_count > GPU_CALL_INPUTS)
        return "too many operands";
    const struct mgx_plan_offer offer = gpu_offer_of(plan, k->last, in);
    return gpu_few_emit(text, &offer, &k->f);
}

static void set_call(const struct mgx_plan *plan, struct fused *k)
{
    const struct gpu_product *p = &k->f.p;
    k->machine = plan->machine;
    k->base.how = gpu_few_launch(&k->f);
    k->base.how.dependent = gpu_machine(plan->machine)->device->properties.features & GPU_DEPENDENT;
    for (int e = 0; e < p->extra_count; e++)
        if (p->given != e + 1)
            k->base.in[k->base.in_count++] = (unsigned char)p->extra[e];
}

static enum mgx_status gather(struct mgx_plan *plan, int s, const struct found *found,
                              const struct gpu_product *p, struct mgx_diag *diag)
{
    struct gpu_machine *m = gpu_machine(plan->machine);
    struct mgx_arena *arena = &plan->store.arena;
    struct mgx_str text = {0};
    struct fused *k = MGX_NEW(arena, struct fused);
    struct mgx_plan_bundle *bundle = MGX_NEW(arena, struct mgx_plan_bundle);
    if (!k || !bundle)
        return mgx_fail_memory(diag);
    describe(found, p, k, m->device);
    if (emit(plan, k, &text) != NULL) {
        mgx_str_fini(&text);
        return MGX_OK;
    }
    set_call(plan, k);
    k->base.unit = gpu_unit_of(m, "few", &text);
    mgx_str_fini(&text);
    if (!k->base.unit)
        return mgx_fail_memory(diag);
    *bundle = (struct mgx_plan_bundle){found->count, run, k};
    plan->steps[s].bundle = bundle;
    plan->steps[s].detail =
        mgx_arena_printf(arena, "%s; one call with the next %d",
                         plan->steps[s].detail ? plan->steps[s].detail : "", found->count - 1);
    return plan->steps[s].detail ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status gpu_few_bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct found f;
    struct gpu_product p;
    for (int s = 0; s < plan->step_count; s++)
        if (find(plan, s, true, &f, &p) || find(plan, s, false, &f, &p)) {
            TRY(gather(plan, s, &f, &p, diag));
            s += f.count - 1;
        }
    return MGX_OK;
}

enum mgx_status gpu_few_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_bundle *bundle = plan->steps[s].bundle;
        if (!bundle || bundle->run != run)
            continue;
        struct fused *k = (struct fused *)(uintptr_t)bundle->state;
        TRY(gpu_unit_stream_kernel(k->base.unit, "run", k->base.how.shared, &k->base.kernel, diag));
    }
    return MGX_OK;
}
