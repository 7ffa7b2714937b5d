// SPDX-License-Identifier: MIT
// Quantizes sites as a recipe says:
//
//     x            =>   dequantizelinear(quantizelinear(x, s, z), s, z)      activations
//     w constant   =>   dequantizelinear(w', s)                             weights, weights.c
//     dot(x, w)    =>   dot(x / f, f w)                                     smoothed, first
//     x + f(conv)  =>   dequantizelinear(quantizelinear(x, s, z), s, z) + f(conv)      residual.c
//     y            =>   y - sum(mean(x) (w' s - w))                         bias corrected, last
//     dot(x, w)    =>   convert(dot(convert(x), convert(w)))                of 16 bits, before all of it
//     dot(x, w)    =>   convert(dot(convert[half](x), convert[half](w)))      kept in 16 bits, halve.c
//
// What that means is said by the IR alone; targets turn the pairs into products of integers where
// they can. A value that several sites read in one range is quantized once. Values that are never
// negative become uint8, which has twice the steps.
#include "quant/apply.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "pass/engine/emit.h"
#include "quant/weights.h"

struct pair { // a value that was quantized, and how
    struct mgx_ins *x;
    const struct mgx_module *module;
    double low, high;
    enum mgx_type type;
    bool asymmetric;
    const struct mgx_recipe_entry *by; // whose factors it was smoothed by; NULL: none
    struct mgx_ins *result;
};

struct wide { // a value of 16 bits, and the same in float
    const struct mgx_ins *x;
    struct mgx_ins *result;
};

struct wides {
    MGX_ARRAY(struct wide);
};

struct work {
    const struct mgx_recipe *recipe;
    MGX_ARRAY(struct pair);
    struct wides wides;
    struct mgx_arena arena;
    bool correct_bias;
    struct mgx_diag *diag;
};

// --- activations ---

// One value in all places of x's lengths, which may be ranges.
static struct mgx_ins *splat_like(struct mgx_ins *at, struct mgx_ins *x, enum mgx_type type,
                                  double value)
{
    struct mgx_ins *one = mgx_literal_double(at->owner, type, value);
    if (one && !mgx_shape_is_static(&x->shape))
        return mgx_emit_before(at, &mgx_op_multibroadcast, NULL, MGX_IN(one, x));
    return mgx_emit_multibroadcast(at, one, x->shape.lens, x->shape.rank);
}

static double magnitude(double low, double high)
{
    return fmax(-low, high);
}

static double scale_of(const struct pair *p)
{
    const double highest = p->type == MGX_INT8 ? 127 : mgx_type_highest(p->type);
    const double scale =
        p->asymmetric ? (p->high - p->low) / 255 : magnitude(p->low, p->high) / highest;
    const double largest = mgx_type_highest(p->x->shape.type);
    return scale > 0 ? fmin(fmax(scale, mgx_least_scale(p->x->shape.type)), largest) : 1;
}

static struct mgx_ins *emit_pair(struct mgx_ins *at, const struct pair *p, struct mgx_ins *x)
{
    const double scale = scale_of(p);
    const enum mgx_type type = p->asymmetric ? MGX_UINT8 : p->type;
    const struct mgx_attr attrs[] = {mgx_int("out_type", (int64_t)type), {0}};
    struct mgx_ins *s = splat_like(at, x, x->shape.type, scale);
    if (!p->asymmetric) {
        struct mgx_ins *q = mgx_emit_before(at, &mgx_op_quantizelinear, attrs, MGX_IN(x, s));
        return mgx_emit_before(at, &mgx_op_dequantizelinear, NULL, MGX_IN(q, s));
    }
    struct mgx_ins *z = splat_like(at, x, type, fmin(nearbyint(-p->low / scale), 255));
    struct mgx_ins *q = mgx_emit_before(at, &mgx_op_quantizelinear, attrs, MGX_IN(x, s, z));
    return mgx_emit_before(at, &mgx_op_dequantizelinear, NULL, MGX_IN(q, s, z));
}

// x divided by its factors, channel by channel.
static struct mgx_ins *emit_smooth(struct mgx_ins *at, struct mgx_ins *x, struct mgx_doubles f,
                                   struct mgx_diag *diag)
{
    struct mgx_tensor t = {0};
    const struct mgx_shape shape = mgx_shape_vector(x->shape.type, f.count);
    if (mgx_tensor_create(&t, &shape, diag) != MGX_OK)
        return NULL;
    for (int i = 0; i < f.count; i++)
        mgx_store_double(shape.type, t.data, i, 1 / f.v[i]);
    struct mgx_ins *by = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return mgx_emit_binary(at, &mgx_op_mul, x,
                           by ? mgx_emit_spread(at, by, x->shape.rank - 1, &x->shape) : NULL);
}

static bool same_factors(const struct mgx_recipe_entry *a, const struct mgx_recipe_entry *b)
{
    if (!a || !b)
        return a == b;
    if (a->smooth.count != b->smooth.count)
        return false;
    for (int i = 0; i < a->smooth.count; i++)
        if (a->smooth.v[i] != b->smooth.v[i])
            return false;
    return true;
}

static struct mgx_ins *find_pair(const struct work *w, const struct pair *p)
{
    for (int64_t i = w->count - 1; i >= 0; i--) {
        const struct pair *q = &w->v[i];
        if (q->x == p->x && q->module == p->module && q->low == p->low && q->high == p->high &&
            q->type == p->type && q->asymmetric == p->asymmetric && same_factors(q->by, p->by))
            return q->result;
    }
    return NULL;
}

static enum mgx_type type_of(const struct mgx_recipe_entry *e, int input)
{
    return e->type == MGX_INT8 && input == 0 && e->in[input].low >= 0 ? MGX_UINT8 : e->type;
}

static enum mgx_status narrow_activation(struct work *w, const struct mgx_site *site, int input,
                                         const struct mgx_recipe_entry *e)
{
    struct mgx_ins *x = site->ins->in[input], *from = x;
    struct pair p = {.x = x,
                     .module = site->ins->owner,
                     .low = e->in[input].low,
                     .high = e->in[input].high,
                     .type = type_of(e, input),
                     .asymmetric = w->recipe->asymmetric && input == 0 && e->type == MGX_INT8,
                     .by = input == 0 && e->smooth.count ? e : NULL};
    p.result = find_pair(w, &p);
    if (!p.result) {
        if (p.by)
            from = emit_smooth(site->ins, x, e->smooth, w->diag);
        p.result = from ? emit_pair(site->ins, &p, from) : NULL;
        if (!p.result || !MGX_PUSH(w, &w->arena, p))
            return mgx_fail_memory(w->diag);
    }
    mgx_set_input(site->ins, input, p.result);
    return MGX_OK;
}

// --- weights ---

// What rounding adds to each channel of the result in the mean.
static void mean_losses(const struct mgx_weights *w, const struct mgx_recipe_entry *e,
                        int64_t group, const float *lost, double *out)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(w);
    const int64_t count = mgx_shape_elements(&w->value.shape);
    for (int64_t i = 0; i < count; i++) {
        const int64_t o = mgx_weights_out(&walk, i), k = mgx_weights_in(&walk, i);
        const int64_t channel = o / (walk.outs / group) * walk.ins + k;
        const double factor = e->smooth.count ? e->smooth.v[k] : 1;
        out[o] += lost[i] * e->means.v[channel] / factor;
    }
}

static enum mgx_status take_off(const struct mgx_site *site, const double *losses, int64_t count,
                                struct mgx_diag *diag)
{
    struct mgx_ins *y = site->ins, *at = y->next;
    struct mgx_tensor t = {0};
    const struct mgx_shape shape = mgx_shape_vector(y->shape.type, count);
    TRY(mgx_tensor_create(&t, &shape, diag));
    for (int64_t i = 0; i < count; i++)
        mgx_store_double(shape.type, t.data, i, -losses[i]);
    struct mgx_ins *vector = mgx_add_literal(y->owner, &t);
    mgx_tensor_release(&t);
    struct mgx_ins *spread = vector ? mgx_emit_spread(at, vector, site->axis[1], &y->shape) : NULL;
    struct mgx_ins *sum = mgx_emit_binary(at, &mgx_op_add, y, spread);
    if (!sum)
        return mgx_fail_memory(diag);
    mgx_replace_uses(y, sum);
    return MGX_OK;
}

static int64_t groups_of(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convolution ? mgx_ins_int(ins, "group") : 1;
}

// Are there means, of as many channels as the weights read?
static bool can_correct(const struct work *w, const struct mgx_site *site,
                        const struct mgx_weights *weights, const struct mgx_recipe_entry *e)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(weights);
    const struct mgx_shape *y = &site->ins->shape;
    return w->correct_bias && weights->input == 1 && site->ins->next && mgx_shape_is_static(y) &&
           y->rank > site->axis[1] && y->lens[site->axis[1]] == walk.outs &&
           e->means.count == walk.ins * groups_of(site->ins);
}

static enum mgx_status correct(const struct mgx_site *site, const struct mgx_weights *weights,
                               const struct mgx_recipe_entry *e, const float *lost,
                               struct mgx_diag *diag)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(weights);
    double *losses = calloc((size_t)walk.outs + 1, sizeof *losses);
    if (!losses)
        return mgx_fail_memory(diag);
    mean_losses(weights, e, groups_of(site->ins), lost, losses);
    const enum mgx_status status = take_off(site, losses, walk.outs, diag);
    free(losses);
    return status;
}

static enum mgx_status narrow_weights(struct work *w, const struct mgx_site *site, int input,
                                      const struct mgx_recipe_entry *e)
{
    struct mgx_weights weights;
    struct mgx_ins *narrow = NULL;
    float *lost = NULL;
    const struct mgx_weights_how how = {.type = e->type,
                                        .per_tensor = w->recipe->per_tensor,
                                        .smooth =
                                            input == 1 ? e->smooth : (struct mgx_doubles){NULL, 0}};
    enum mgx_status status = mgx_weights_open(&weights, site, input, w->diag);
    const bool corrected = status == MGX_OK && can_correct(w, site, &weights, e);
    if (corrected) {
        lost = calloc((size_t)mgx_shape_elements(&weights.value.shape) + 1, sizeof *lost);
        status = lost ? MGX_OK : mgx_fail_memory(w->diag);
    }
    if (status == MGX_OK)
        status = mgx_weights_round(&weights, &how, lost, &narrow, w->diag);
    if (status == MGX_OK)
        mgx_set_input(site->ins, input, narrow);
    if (status == MGX_OK && corrected)
        status = correct(site, &weights, e, lost, w->diag);
    free(lost);
    mgx_weights_close(&weights);
    return status;
}

// --- products of 16 bits ---

// A constant's conversion stands in front of its views, where weights are rounded.
static struct mgx_ins *widen_constant(struct mgx_ins *at, struct mgx_ins *x)
{
    if (x->literal || x->in_count != 1 || !(x->op->flags & MGX_OP_VIEW))
        return mgx_emit_convert(at, x, MGX_FLOAT);
    struct mgx_ins *in = widen_constant(at, x->in[0]);
    return in ? mgx_emit_again(at, x, &in, 1) : NULL;
}

// x as floats. A softmax that becomes bytes is one of floats: attention between bytes has such.
static struct mgx_ins *widened(struct mgx_ins *at, struct mgx_ins *x, bool bytes)
{
    if (!bytes || x->op != &mgx_op_softmax)
        return mgx_emit_convert(at, x, MGX_FLOAT);
    struct mgx_ins *in = mgx_emit_convert(at, x->in[0], MGX_FLOAT);
    return in ? mgx_emit_again(at, x, &in, 1) : NULL;
}

// One conversion for all sites of a module that read x.
static struct mgx_ins *widen_value(struct work *w, struct mgx_ins *at, struct mgx_ins *x,
                                   bool bytes)
{
    for (int64_t i = w->wides.count - 1; i >= 0; i--)
        if (w->wides.v[i].x == x && w->wides.v[i].result->owner == at->owner)
            return w->wides.v[i].result;
    const struct wide wide = {x, widened(at, x, bytes)};
    return wide.result && MGX_PUSH(&w->wides, &w->arena, wide) ? wide.result : NULL;
}

// Sums of 8 bits are scaled in float, so a program that quantize_fp16 has been through before is
// quantized to what it would be if it came after.
static enum mgx_status widen_site(struct work *w, const struct mgx_site *site, bool bytes)
{
    struct mgx_ins *ins = site->ins;
    const enum mgx_type type = ins->shape.type;
    if (!mgx_type_is_half_or_bf16(type))
        return MGX_OK;
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *wide = site->constant[i] ? widen_constant(ins, ins->in[i])
                                                 : widen_value(w, ins, ins->in[i], bytes);
        if (!wide)
            return mgx_fail_memory(w->diag);
        mgx_set_input(ins, i, wide);
    }
    TRY(mgx_update_shape(ins, w->diag));
    struct mgx_ins *narrow = ins->next ? mgx_emit_convert(ins->next, ins, type) : NULL;
    if (!narrow)
        return mgx_fail_memory(w->diag);
    mgx_replace_uses(ins, narrow);
    return MGX_OK;
}

// --- sites ---

static enum mgx_status check_factors(const struct mgx_site *site, const struct mgx_recipe_entry *e,
                                     struct mgx_diag *diag)
{
    const struct mgx_shape *s = &site->ins->in[0]->shape;
    const int64_t channels = mgx_shape_is_static(s) && s->rank ? s->lens[s->rank - 1] : -1;
    if (!e->smooth.count || (site->ins->op == &mgx_op_dot && site->constant[1] &&
                             !site->constant[0] && e->smooth.count == channels))
        return MGX_OK;
    return mgx_fail(diag, MGX_INVALID, "%s: %d factors to smooth %lld channels", e->name,
                    e->smooth.count, (long long)channels);
}

static enum mgx_status narrow_site(struct work *w, const struct mgx_site *site,
                                   const struct mgx_recipe_entry *e)
{
    TRY(check_factors(site, e, w->diag));
    TRY(widen_site(w, site, mgx_type_is_byte(e->type)));
    for (int i = 0; i < 2; i++) {
        if (!site->constant[i] && !e->in[i].known)
            return mgx_fail(w->diag, MGX_INVALID, "%s: the range of input %d is not known", e->name,
                            i);
        TRY(site->constant[i] ? narrow_weights(w, site, i, e) : narrow_activation(w, site, i, e));
    }
    return mgx_update_shape(site->ins, w->diag);
}

enum mgx_status mgx_recipe_apply(const struct mgx_recipe *r, const struct mgx_sites *sites,
                                 bool correct_bias, struct mgx_diag *diag)
{
    assert(r->count == sites->count);
    struct work w = {.recipe = r, .correct_bias = correct_bias, .diag = diag};
    enum mgx_status status = MGX_OK;
    mgx_arena_init(&w.arena);
    for (int64_t i = 0; i < sites->count && status == MGX_OK; i++)
        if (mgx_recipe_is_narrow(&r->v[i]))
            status = narrow_site(&w, &sites->v[i], &r->v[i]);
    for (int64_t i = 0; i < w.count && status == MGX_OK; i++)
        if (!w.v[i].by)
            mgx_quant_share(w.v[i].x, w.v[i].result);
    mgx_arena_fini(&w.arena);
    return status == MGX_OK ? mgx_recipe_halve(r, sites, diag) : status;
}
