// SPDX-License-Identifier: MIT
// The fastest mixture of wide and narrow products whose error is within a budget.
//
//     alone   every product is quantized alone: its error, and the time it saves
//     order   those that save time, by error^2 / gain: what costs least for what it brings is first
//     cut     the longest beginning of that order whose error as a whole, measured, is within the
//             budget, found by halving
//     fill    what comes next in the order, one by one, as long as it fits; a few tries
//
// Errors of single roundings add up like noise, so the order is near the best one; that the budget
// is kept is measured on the whole, never reckoned. Cost: a compilation and a run of all samples
// for each product, and some ten more.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/apply.h"
#include "quant/weights.h"

enum { FILL_TRIES = 8 };

struct search {
    struct mgx_recipe *recipe;
    const struct mgx_program *program;
    const struct mgx_quant_options *options;
    const struct mgx_quant_runner *runner;
    struct mgx_quant_results reference;
    struct mgx_arena arena;
    struct mgx_map times; // a product's text -> its gain
    bool *narrow;         // of each entry: quantized in this trial?
    int64_t *order;
    int64_t count; // of the order
    struct mgx_diag *diag;
};

// --- trials ---

static enum mgx_status apply_to(const struct search *s, struct mgx_program *p)
{
    struct mgx_arena arena;
    struct mgx_sites sites;
    struct mgx_recipe trial = *s->recipe;
    mgx_arena_init(&arena);
    trial.v = MGX_NEW_ARRAY(&arena, struct mgx_recipe_entry, trial.count);
    enum mgx_status status = trial.v ? mgx_sites_find(p, s->options->names, s->options->name_count,
                                                      &arena, &sites, s->diag)
                                     : mgx_fail_memory(s->diag);
    for (int64_t i = 0; status == MGX_OK && i < trial.count; i++) {
        trial.v[i] = s->recipe->v[i];
        if (!s->narrow[i])
            trial.v[i].type = MGX_FLOAT;
    }
    if (status == MGX_OK)
        status = mgx_recipe_apply(&trial, &sites, s->options->correct_bias, s->diag);
    mgx_arena_fini(&arena);
    return status;
}

// The distance of the program with the products of s->narrow quantized.
static enum mgx_status try_mixture(const struct search *s, struct mgx_quant_distance *out)
{
    struct mgx_program *p = NULL;
    struct mgx_quant_results results = {0};
    enum mgx_status status = mgx_program_clone(&p, s->program, s->diag);
    if (status == MGX_OK)
        status = apply_to(s, p);
    if (status == MGX_OK)
        status = s->runner->compile(s->runner->user, p, s->diag);
    if (status == MGX_OK)
        status = mgx_quant_results_take(&results, p, s->runner, s->diag);
    if (status == MGX_OK)
        status = mgx_quant_results_compare(&s->reference, &results, out, s->diag);
    mgx_quant_results_fini(&results);
    mgx_program_destroy(p);
    return status;
}

static enum mgx_status take_reference(struct search *s)
{
    struct mgx_program *p = NULL;
    enum mgx_status status = mgx_program_clone(&p, s->program, s->diag);
    if (status == MGX_OK)
        status = s->runner->compile(s->runner->user, p, s->diag);
    if (status == MGX_OK)
        status = mgx_quant_results_take(&s->reference, p, s->runner, s->diag);
    mgx_program_destroy(p);
    return status;
}

static void report(const struct search *s, const char *what, int64_t done, int64_t total)
{
    if (s->runner->progress)
        s->runner->progress(s->runner->user, what, (int)done, (int)total);
}

// --- time ---

// A program of one product: its activations are parameters, its weights as they are.
static enum mgx_status lone_input(struct mgx_module *m, const struct mgx_site *site, int input,
                                  struct mgx_ins **out, struct mgx_diag *diag)
{
    const struct mgx_shape *s = &site->ins->in[input]->shape;
    const struct mgx_shape plain = mgx_shape_make(s->type, s->rank, s->lens);
    struct mgx_weights w;
    if (!site->constant[input]) {
        *out = mgx_add_parameter(m, input ? "y" : "x", &plain);
        return mgx_program_status(m->program, diag);
    }
    enum mgx_status status = mgx_weights_open(&w, site, input, diag);
    if (status == MGX_OK) {
        struct mgx_tensor share = mgx_tensor_share(&w.value);
        struct mgx_weights there = w;
        there.at = mgx_add_return(m, NULL, 0); // literals go to the front, views before it
        struct mgx_ins *core = there.at ? mgx_weights_literal(&there, &share, diag) : NULL;
        *out = core ? mgx_weights_dress(&there, core) : NULL;
        status = *out ? MGX_OK : mgx_fail_memory(diag);
    }
    mgx_weights_close(&w);
    return status;
}

static enum mgx_status lone_product(const struct mgx_site *site, struct mgx_program **out,
                                    struct mgx_diag *diag)
{
    struct mgx_ins *in[2] = {NULL, NULL};
    TRY(mgx_program_create(out, &mgx_ops, diag));
    struct mgx_module *m = mgx_program_main(*out);
    for (int i = 0; i < 2; i++)
        TRY(lone_input(m, site, i, &in[i], diag));
    struct mgx_ins *end = mgx_module_return(m);
    struct mgx_ins *y = mgx_insert(m, end, site->ins->op, site->ins->attr, in, 2, NULL, 0);
    mgx_add_return(m, &y, 1);
    return mgx_program_status(*out, diag);
}

static enum mgx_status narrow_lone(const struct search *s, const struct mgx_recipe_entry *e,
                                   struct mgx_program *p)
{
    struct mgx_recipe one = *s->recipe;
    struct mgx_recipe_entry entry = *e;
    struct mgx_sites sites;
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    one.v = &entry;
    one.count = 1;
    enum mgx_status status = mgx_sites_find(p, NULL, 0, &arena, &sites, s->diag);
    if (status == MGX_OK && sites.count == 1)
        status = mgx_recipe_apply(&one, &sites, false, s->diag);
    mgx_arena_fini(&arena);
    return status;
}

static enum mgx_status time_of(const struct search *s, struct mgx_program *p, double *seconds)
{
    TRY(s->runner->compile(s->runner->user, p, s->diag));
    return s->runner->time(s->runner->user, p, seconds, s->diag);
}

static enum mgx_status measure_gain(struct search *s, const struct mgx_site *site,
                                    const struct mgx_recipe_entry *e, double *gain)
{
    struct mgx_program *wide = NULL, *narrow = NULL;
    struct mgx_str text = {0};
    double a = 0, b = 0;
    enum mgx_status status = lone_product(site, &wide, s->diag);
    if (status == MGX_OK)
        status = mgx_program_clone(&narrow, wide, s->diag);
    if (status == MGX_OK)
        status = narrow_lone(s, e, narrow);
    if (status == MGX_OK)
        mgx_program_print(&text, narrow);
    double *known = mgx_map_find(&s->times, mgx_str_text(&text));
    if (status == MGX_OK && !known) {
        status = time_of(s, wide, &a);
        if (status == MGX_OK)
            status = time_of(s, narrow, &b);
        known = MGX_NEW(&s->arena, double);
        char *key = mgx_arena_strdup(&s->arena, mgx_str_text(&text));
        if (status == MGX_OK && (!known || !key || !mgx_map_put(&s->times, key, known)))
            status = mgx_fail_memory(s->diag);
        if (known)
            *known = (a - b) * 1e6;
    }
    *gain = known ? *known : 0;
    mgx_str_fini(&text);
    mgx_program_destroy(wide);
    mgx_program_destroy(narrow);
    return status;
}

// Of lengths that may vary the least.
static double least_elements(const struct mgx_shape *s)
{
    double count = 1;
    for (int i = 0; i < s->rank; i++)
        count *= fmax(1, (double)mgx_shape_dim(s, i).min);
    return count;
}

// Without a clock: two thirds of what the multiplications take at 25 G a second.
static double reckon_gain(const struct mgx_site *site)
{
    const struct mgx_shape *w = &site->ins->in[1]->shape;
    const bool dot = site->ins->op == &mgx_op_dot;
    const double axis = fmax(1, (double)mgx_shape_dim(w, dot ? w->rank - 2 : 0).min);
    const double terms = dot ? axis : least_elements(w) / axis;
    return least_elements(&site->ins->shape) * terms / 25e9 * 1e6 * 2 / 3;
}

static enum mgx_status find_gain(struct search *s, const struct mgx_site *site,
                                 const struct mgx_recipe_entry *e, double *gain)
{
    const bool fixed = mgx_shape_is_static(&site->ins->in[0]->shape) &&
                       mgx_shape_is_static(&site->ins->in[1]->shape);
    if (s->runner->time && fixed)
        return measure_gain(s, site, e, gain);
    *gain = reckon_gain(site);
    return MGX_OK;
}

// --- alone ---

static double error_of(const struct search *s, const struct mgx_quant_distance *d)
{
    const double e = s->options->metric == MGX_QUANT_TOP ? d->top : d->relative;
    return fmin(e, 1e30); // files hold finite numbers
}

static enum mgx_status measure_alone(struct search *s, const struct mgx_sites *sites)
{
    for (int64_t i = 0; i < s->recipe->count; i++) {
        struct mgx_recipe_entry *e = &s->recipe->v[i];
        struct mgx_quant_distance d;
        report(s, "measuring products", i, s->recipe->count);
        if (e->type == MGX_FLOAT)
            continue;
        s->narrow[i] = true;
        TRY(try_mixture(s, &d));
        s->narrow[i] = false;
        e->measured = true;
        e->error = fmin(d.relative, 1e30); // agreement is too coarse to order by
        TRY(find_gain(s, &sites->v[i], e, &e->gain));
    }
    report(s, "measuring products", s->recipe->count, s->recipe->count);
    return MGX_OK;
}

// --- together ---

static double rank_of(const struct mgx_recipe_entry *e)
{
    return e->error * e->error / e->gain;
}

// By insertion: stable, and there are a few hundred.
static void sort_gains(struct search *s)
{
    for (int64_t i = 0; i < s->recipe->count; i++) {
        struct mgx_recipe_entry *e = &s->recipe->v[i];
        if (e->type == MGX_FLOAT)
            continue;
        if (e->gain <= 0) {
            e->why = "it would not be faster";
            continue;
        }
        int64_t at = s->count++;
        for (; at > 0 && rank_of(&s->recipe->v[s->order[at - 1]]) > rank_of(e); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

static enum mgx_status budget_fits(struct search *s, bool *yes, double *error)
{
    struct mgx_quant_distance d;
    TRY(try_mixture(s, &d));
    *error = error_of(s, &d);
    *yes = *error <= s->options->budget;
    return MGX_OK;
}

static void set_first(struct search *s, int64_t count)
{
    for (int64_t i = 0; i < s->count; i++)
        s->narrow[s->order[i]] = i < count;
}

static enum mgx_status cut(struct search *s, int64_t *kept, double *error)
{
    int64_t low = 0, high = s->count; // `low` fits
    double e;
    *error = 0;
    for (int round = 0; low < high; round++) {
        const int64_t middle = round == 0 ? high : low + (high - low + 1) / 2; // all, at first
        bool yes;
        report(s, "fitting the budget", round, round + 1);
        set_first(s, middle);
        TRY(budget_fits(s, &yes, &e));
        if (yes) {
            low = middle;
            *error = e;
        } else
            high = middle - 1;
    }
    set_first(s, low);
    *kept = low;
    return MGX_OK;
}

static enum mgx_status fill(struct search *s, int64_t from, double *error)
{
    for (int64_t i = from + 1; i < s->count && i <= from + FILL_TRIES; i++) {
        bool yes;
        double e;
        if (s->recipe->v[s->order[i]].error > s->options->budget &&
            s->options->metric == MGX_QUANT_RELATIVE)
            continue;
        s->narrow[s->order[i]] = true;
        TRY(budget_fits(s, &yes, &e));
        s->narrow[s->order[i]] = yes;
        *error = yes ? e : *error;
    }
    return MGX_OK;
}

static void settle(struct search *s, double error)
{
    struct mgx_recipe *r = s->recipe;
    for (int64_t i = 0; i < r->count; i++) {
        struct mgx_recipe_entry *e = &r->v[i];
        if (e->type == MGX_FLOAT || s->narrow[i])
            continue;
        e->type = MGX_FLOAT;
        if (!e->why)
            e->why = e->error > s->options->budget && s->options->metric == MGX_QUANT_RELATIVE
                         ? "its error alone is above the budget"
                         : "with the others its error is above the budget";
    }
    r->has_budget = true;
    r->budget = s->options->budget;
    r->metric = s->options->metric;
    r->error = error;
}

static enum mgx_status search(struct search *s, const struct mgx_sites *sites)
{
    int64_t kept;
    double error;
    TRY(take_reference(s));
    TRY(measure_alone(s, sites));
    sort_gains(s);
    TRY(cut(s, &kept, &error));
    TRY(fill(s, kept, &error));
    settle(s, error);
    return MGX_OK;
}

enum mgx_status mgx_recipe_fit(struct mgx_recipe *r, const struct mgx_program *p,
                               const struct mgx_quant_options *options,
                               const struct mgx_quant_runner *runner, struct mgx_diag *diag)
{
    assert(options->budget >= 0 && runner->run && runner->compile);
    struct search s = {
        .recipe = r, .program = p, .options = options, .runner = runner, .diag = diag};
    struct mgx_program *sites_of = NULL;
    struct mgx_sites sites;
    mgx_arena_init(&s.arena);
    s.narrow = MGX_NEW_ARRAY(&s.arena, bool, r->count);
    s.order = MGX_NEW_ARRAY(&s.arena, int64_t, r->count);
    enum mgx_status status =
        s.narrow && s.order ? mgx_program_clone(&sites_of, p, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status =
            mgx_sites_find(sites_of, options->names, options->name_count, &s.arena, &sites, diag);
    if (status == MGX_OK)
        status = search(&s, &sites);
    mgx_program_destroy(sites_of);
    mgx_quant_results_fini(&s.reference);
    mgx_map_fini(&s.times);
    mgx_arena_fini(&s.arena);
    return status;
}
