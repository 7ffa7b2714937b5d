// SPDX-License-Identifier: MIT
// The fastest mixture of wide and narrow products whose error is within a budget.
//
//     alone   every product is quantized alone: its error, and the time it saves
//     order   those that save time, by error^2 / gain: what costs least for what it brings is first
//     cut     the longest beginning of that order whose error as a whole, measured, is within the
//             budget, found by halving
//     fill    what comes next in the order, one by one, as long as it fits; a few tries
//     halve   on cards, what stays wide is computed in half, if that fits too
//
// Errors of single roundings add up like noise, so the order is near the best one; that the budget
// is kept is measured on the whole, never reckoned. Cost: a compilation and a run of all samples
// for each product, and some ten more.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/apply.h"
#include "quant/gain.h"

enum { FILL_TRIES = 8 };

struct search {
    struct mgx_recipe *recipe;
    const struct mgx_program *program;
    const struct mgx_quant_options *options;
    const struct mgx_quant_runner *runner;
    struct mgx_quant_results reference;
    struct mgx_arena arena;
    struct mgx_quant_clock clock;
    bool *narrow; // of each entry: quantized in this trial?
    bool halved;  // are the others computed in half?
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
            trial.v[i].type = s->halved ? MGX_HALF : MGX_FLOAT;
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
        e->measured = e->weighed = true;
        e->error = fmin(d.relative, 1e30); // agreement is too coarse to order by
        TRY(mgx_quant_gain(&s->clock, &sites->v[i], e, &e->gain));
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

// What did not become narrow takes half its time in 16 bits, where those are faster than floats.
static enum mgx_status halve(struct search *s, double *error)
{
    bool yes = false, any = false;
    double e;
    for (int64_t i = 0; i < s->recipe->count; i++)
        any |= !s->narrow[i];
    if (!s->runner->halves || !any)
        return MGX_OK;
    s->halved = true;
    TRY(budget_fits(s, &yes, &e));
    s->halved = yes;
    *error = yes ? e : *error;
    return MGX_OK;
}

static void settle(struct search *s, double error)
{
    struct mgx_recipe *r = s->recipe;
    const enum mgx_type wide = s->halved ? MGX_HALF : MGX_FLOAT;
    for (int64_t i = 0; i < r->count; i++) {
        struct mgx_recipe_entry *e = &r->v[i];
        if (s->narrow[i])
            continue;
        e->type = wide;
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
    TRY(halve(s, &error));
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
    s.clock =
        (struct mgx_quant_clock){.recipe = r, .runner = runner, .arena = &s.arena, .diag = diag};
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
    mgx_map_fini(&s.clock.times);
    mgx_arena_fini(&s.arena);
    return status;
}
