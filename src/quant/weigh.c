// SPDX-License-Identifier: MIT
// Which products a card multiplies no faster in bytes than in 16 bits, by its target's model of
// time, without running anything:
//
//     plan     the program with all its products in bytes and the rest in half, which is what it is
//              beside the rival, the program in half
//     weigh    each step of the plan that the model knows: in bytes, and if it had 16 bits. A launch
//              that does nothing but make bytes is there for the products that read them, and would
//              not be there in half; a product in half has its maker leave a byte more of each value
//     group    products that share such a launch, or are one product in the plan, stay or go together
//     settle   a group that takes more than MARGIN longer in bytes computes in half
//
// So a product that is slower by itself stays in bytes where its neighbours save more: what it
// reads is made by them in bytes at no cost, and bytes are half of what they leave. The model is a
// few per cent off: what is about as fast becomes bytes, as asked. Groups of which the model does
// not know every product do, too (attention between bytes, depthwise convolutions: half of what
// moves), and all those of cards without a model, and products whose results half might not hold:
// a sum of magnitudes above 65,504 is an infinity there, and none in bytes.
//
// Cost: the target's passes and the choice of kernels, once; nothing is compiled or packed for it.
// The weights of a program of which something stays are rounded once more (quantize.c).
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "quant/apply.h"
#include "quant/weights.h"

static const double MARGIN = 1.02;

static const char product_mark[] = "quantized product ", maker_mark[] = "quantized for ";

struct weight {
    int64_t group; // a member of it that stands nearer to its first; itself: it is that
    bool known;
    double narrow, wide;
};

struct weighing {
    struct weight *v; // by site
    int64_t count;
};

// --- marks ---

static void mark(struct mgx_ins *ins, const char *text, int64_t site)
{
    char name[40];
    snprintf(name, sizeof name, "%s%lld", text, (long long)site);
    mgx_add_origin(ins, name);
}

static void mark_site(struct mgx_ins *product, int64_t number)
{
    mark(product, product_mark, number);
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *pair = product->in[i];
        if (pair->op == &mgx_op_dequantizelinear && pair->in[0]->op == &mgx_op_quantizelinear)
            mark(pair->in[0], maker_mark, number);
    }
}

// The number behind a mark, -1: it is another origin.
static int64_t marked(const char *origin, const char *text)
{
    const size_t size = strlen(text);
    return strncmp(origin, text, size) == 0 ? strtoll(origin + size, NULL, 10) : -1;
}

// --- groups ---

static int64_t first_of(const struct weighing *w, int64_t i)
{
    while (w->v[i].group != i)
        i = w->v[i].group;
    return i;
}

static void join(struct weighing *w, int64_t i, int64_t k)
{
    const int64_t a = first_of(w, i), b = first_of(w, k);
    w->v[a > b ? a : b].group = a < b ? a : b;
}

// All sites that the origins have behind the mark share a step. How many.
static int take(struct weighing *w, const struct mgx_strings *origin, const char *text,
                const struct weight *step)
{
    int64_t first = -1;
    int count = 0;
    for (int i = 0; i < origin->count; i++) {
        const int64_t site = marked(origin->v[i], text);
        if (site < 0 || site >= w->count)
            continue;
        first = first < 0 ? site : first;
        w->v[site].known |= step->known;
        join(w, first, site);
        count++;
    }
    if (count) {
        w->v[first].narrow += step->narrow;
        w->v[first].wide += step->wide;
    }
    return count;
}

static void tell(void *to, const struct mgx_strings *origin, double narrow, double wide)
{
    struct weight step = {.known = true, .narrow = narrow, .wide = wide};
    if (!take(to, origin, product_mark, &step)) {
        step.known = false;
        take(to, origin, maker_mark, &step);
    }
}

// --- the plan ---

// In a copy of `narrow`, what stands where a site of its stands, and makes its bytes.
static bool mark_copy(struct mgx_program *copy, const struct mgx_program *narrow,
                      const struct mgx_sites *sites, const struct mgx_recipe *r)
{
    struct mgx_map numbers = {0};
    bool good = true;
    for (int64_t i = 0; i < r->count && good; i++)
        good = !mgx_recipe_is_narrow(&r->v[i]) ||
               mgx_map_put_pointer(&numbers, sites->v[i].ins, &sites->v[i]);
    for (int m = 0; m < copy->module_count && good; m++) {
        struct mgx_ins *ins = copy->modules[m]->first;
        MGX_EACH (original, narrow->modules[m]) {
            const struct mgx_site *site = mgx_map_find_pointer(&numbers, original);
            assert(ins->op == original->op);
            if (site)
                mark_site(ins, site - sites->v);
            ins = ins->next;
        }
    }
    mgx_map_fini(&numbers);
    return good;
}

static enum mgx_status plan(struct weighing *w, struct mgx_program *copy,
                            const struct mgx_quant_runner *runner, struct mgx_diag *diag)
{
    TRY(mgx_quantize_float(copy, MGX_HALF, NULL, 0, diag));
    return runner->weigh(runner->user, copy, tell, w, diag);
}

// --- what half holds ---

static double magnitude_of(const struct mgx_recipe_input *in)
{
    return fmax(-in->low, in->high);
}

// The largest sum of magnitudes of the weights of a channel.
static enum mgx_status largest_sum(const struct mgx_site *site, int input, double *out,
                                   struct mgx_diag *diag)
{
    struct mgx_weights w;
    enum mgx_status status = mgx_weights_open(&w, site, input, diag);
    *out = 0;
    if (status == MGX_OK) {
        const struct mgx_weights_walk walk = mgx_weights_walk(&w);
        const int64_t count = mgx_shape_elements(&w.value.shape);
        double *sums = calloc((size_t)walk.outs + 1, sizeof *sums);
        for (int64_t i = 0; sums && i < count; i++) {
            double *sum = &sums[mgx_weights_out(&walk, i)];
            *sum += fabs(mgx_load_double(w.value.shape.type, w.value.data, i));
            *out = fmax(*out, *sum);
        }
        status = sums ? MGX_OK : mgx_fail_memory(diag);
        free(sums);
    }
    mgx_weights_close(&w);
    return status;
}

// Whatever the samples' range lets in stays finite in half; of dot(x, y) too.
static enum mgx_status fits_half(const struct mgx_site *site, const struct mgx_recipe_entry *e,
                                 bool *yes, struct mgx_diag *diag)
{
    const double highest = mgx_type_highest(MGX_HALF);
    const int weights = site->constant[1] ? 1 : 0;
    const struct mgx_shape *x = &site->ins->in[0]->shape;
    double bound = magnitude_of(&e->in[0]) * magnitude_of(&e->in[1]);
    if (mgx_type_is_half_or_bf16(site->ins->shape.type)) {
        *yes = true;
        return MGX_OK;
    }
    if (site->constant[weights]) {
        TRY(largest_sum(site, weights, &bound, diag));
        bound *= magnitude_of(&e->in[1 - weights]);
    } else
        bound *= fmax(1, (double)mgx_shape_dim(x, x->rank - 1).min);
    *yes = bound <= highest && magnitude_of(&e->in[0]) <= highest &&
           magnitude_of(&e->in[1]) <= highest;
    return MGX_OK;
}

// --- settling ---

// Sums of groups, with the first of each; a group of which one is not known is not.
static void add_up(struct weighing *w)
{
    for (int64_t i = w->count - 1; i >= 0; i--) {
        struct weight *first = &w->v[first_of(w, i)];
        if (first == &w->v[i])
            continue;
        first->narrow += w->v[i].narrow;
        first->wide += w->v[i].wide;
        first->known &= w->v[i].known;
    }
}

static enum mgx_status settle(const struct weighing *w, struct mgx_recipe *r,
                              const struct mgx_sites *sites, struct mgx_diag *diag)
{
    bool *stay = calloc((size_t)w->count + 1, sizeof *stay);
    int64_t *members = calloc((size_t)w->count + 1, sizeof *members);
    enum mgx_status status = stay && members ? MGX_OK : mgx_fail_memory(diag);
    for (int64_t i = 0; i < w->count && status == MGX_OK; i++) {
        const int64_t first = first_of(w, i);
        const struct weight *group = &w->v[first];
        bool fits = false;
        if (!group->known || group->narrow <= group->wide * MARGIN)
            continue;
        status = fits_half(&sites->v[i], &r->v[i], &fits, diag);
        stay[first] = fits && (stay[first] || !members[first]);
        members[first]++;
    }
    for (int64_t i = 0; i < w->count && status == MGX_OK; i++) {
        const int64_t first = first_of(w, i);
        struct mgx_recipe_entry *e = &r->v[i];
        if (!stay[first])
            continue;
        e->type = MGX_HALF;
        e->why = "it would not be faster";
        e->weighed = true;
        e->gain = (w->v[first].wide - w->v[first].narrow) / (double)members[first];
    }
    free(stay);
    free(members);
    return status;
}

static enum mgx_status settle_by(const struct weighing *w, struct mgx_recipe *r,
                                 struct mgx_program *wide, const struct mgx_quant_options *o,
                                 struct mgx_diag *diag)
{
    struct mgx_arena arena;
    struct mgx_sites sites;
    mgx_arena_init(&arena);
    enum mgx_status status = mgx_sites_find(wide, o->names, o->name_count, &arena, &sites, diag);
    if (status == MGX_OK)
        status = settle(w, r, &sites, diag);
    mgx_arena_fini(&arena);
    return status;
}

enum mgx_status mgx_recipe_weigh(struct mgx_recipe *r, struct mgx_program *wide,
                                 const struct mgx_program *narrow, const struct mgx_sites *sites,
                                 const struct mgx_quant_options *options,
                                 const struct mgx_quant_runner *runner, struct mgx_diag *diag)
{
    struct mgx_program *copy = NULL;
    struct weighing w = {calloc((size_t)r->count + 1, sizeof *w.v), r->count};
    enum mgx_status status = w.v ? mgx_program_clone(&copy, narrow, diag) : mgx_fail_memory(diag);
    for (int64_t i = 0; w.v && i < r->count; i++)
        w.v[i].group = i;
    if (status == MGX_OK && !mark_copy(copy, narrow, sites, r))
        status = mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = plan(&w, copy, runner, diag);
    if (status == MGX_OK) {
        add_up(&w);
        status = settle_by(&w, r, wide, options, diag);
    }
    mgx_program_destroy(copy);
    free(w.v);
    return status;
}
