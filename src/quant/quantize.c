// SPDX-License-Identifier: MIT
// Quantizing the products of a program to 8 bits, from its options to the rewritten program.
//
//     normalize_ops, optimize_module     so that what is measured is what will be compiled
//     calibrate (capture.c, stats.c, smooth.c), or a recipe that was given
//     fit the budget, if there is one (budget.c); else leave in 16 bits what is no slower so, where
//     a target has a model of time (weigh.c)
//     apply (apply.c)
//
// Bodies of branches and loops are quantized as main is. A value that no sample ever reached, or of
// which nothing finite was seen, leaves its product wide. Without samples every activation is taken
// to lie between -2 and 2 (127 / 64), as MIGraphX has it.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "quant/apply.h"
#include "quant/capture.h"

#define UNKNOWN_RANGE (127.0 / 64)

struct job {
    struct mgx_program *program;
    const struct mgx_quant_options *options;
    const struct mgx_quant_runner *runner;
    struct mgx_sites sites;
    struct mgx_recipe recipe;
    struct mgx_arena arena;
    struct mgx_diag *diag;
};

static enum mgx_status prepare(struct mgx_program *p, struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {
        &mgx_pass_normalize_ops, &mgx_pass_optimize_module, &mgx_pass_dead_code_elimination, NULL};
    static const struct mgx_pass_options options = {.fast_math = false};
    return mgx_run_passes(p, passes, &options, diag);
}

// --- a recipe of what was seen ---

static int levels_of(const struct mgx_quant_options *o, const struct mgx_stats *s, int input)
{
    return input == 0 && (o->asymmetric || s->low >= 0) ? 255 : 127;
}

static void set_ranges(const struct job *j, struct mgx_recipe_entry *e,
                       struct mgx_stats *const *seen)
{
    const struct mgx_quant_options *o = j->options;
    // A scale moves floats of 8 bits and leaves them their digits: nothing is won by cutting.
    const enum mgx_quant_method method = o->type == MGX_INT8 ? o->method : MGX_QUANT_MAX;
    for (int i = 0; i < 2; i++) {
        if (!seen[i]) // constant
            continue;
        if (j->runner->samples)
            e->in[i] = mgx_stats_range(seen[i], method, o->percentile, levels_of(o, seen[i], i));
        else
            e->in[i] = (struct mgx_recipe_input){true, -UNKNOWN_RANGE, UNKNOWN_RANGE};
        if (!e->in[i].known) {
            e->type = MGX_FLOAT;
            e->why = seen[i]->strange ? "nothing finite was seen" : "no sample came here";
        }
    }
}

static enum mgx_status set_means(struct job *j, struct mgx_recipe_entry *e,
                                 const struct mgx_stats *s)
{
    if (!s || !s->channels || !s->per_channel || s->strange)
        return MGX_OK;
    double *means = MGX_NEW_ARRAY(&j->recipe.arena, double, s->channels);
    if (!means)
        return mgx_fail_memory(j->diag);
    for (int64_t k = 0; k < s->channels; k++)
        means[k] = s->sums[k] / (double)s->per_channel;
    e->means = (struct mgx_doubles){means, (int)s->channels};
    return MGX_OK;
}

static enum mgx_status add_entry(struct job *j, int64_t i, struct mgx_stats *const *seen)
{
    const struct mgx_site *site = &j->sites.v[i];
    struct mgx_arena *arena = &j->recipe.arena;
    struct mgx_recipe_entry e = {.name = mgx_arena_strdup(arena, site->name),
                                 .origin = mgx_arena_strdup(arena, site->origin),
                                 .type = j->options->type};
    set_ranges(j, &e, seen);
    if (j->options->correct_bias && site->constant[1])
        TRY(set_means(j, &e, seen[0]));
    return e.name && MGX_PUSH(&j->recipe, arena, e) ? MGX_OK : mgx_fail_memory(j->diag);
}

static enum mgx_status calibrate(struct job *j)
{
    const struct mgx_quant_options *o = j->options;
    const bool smooth = o->smooth && o->type == MGX_INT8;
    struct mgx_stats **seen = NULL;
    TRY(mgx_capture(j->program, &j->sites, o, j->runner, smooth || o->correct_bias, &j->arena,
                    &seen, j->diag));
    j->recipe.type = o->type;
    j->recipe.method = o->method;
    j->recipe.asymmetric = o->asymmetric;
    j->recipe.per_tensor = o->per_tensor;
    for (int64_t i = 0; i < j->sites.count; i++)
        TRY(add_entry(j, i, seen + 2 * i));
    return smooth ? mgx_recipe_smooth(&j->recipe, &j->sites, seen, j->diag) : MGX_OK;
}

// --- a recipe that was given ---

// Brings its entries into the order of the sites; sites that it does not name stay wide.
static enum mgx_status match(struct job *j, const struct mgx_recipe *given)
{
    TRY(mgx_recipe_copy(&j->recipe, given, j->diag));
    struct mgx_recipe *r = &j->recipe;
    const struct mgx_recipe before = *r;
    int64_t used = 0;
    r->array = (struct mgx_array){0};
    for (int64_t i = 0; i < j->sites.count; i++) {
        const struct mgx_recipe_entry *e = mgx_recipe_find(&before, j->sites.v[i].name);
        const struct mgx_recipe_entry wide = {
            .name = mgx_arena_strdup(&r->arena, j->sites.v[i].name),
            .origin = mgx_arena_strdup(&r->arena, j->sites.v[i].origin),
            .type = MGX_FLOAT,
            .why = "the ranges do not name it"};
        used += e != NULL;
        if (!MGX_PUSH(r, &r->arena, e ? *e : wide))
            return mgx_fail_memory(j->diag);
    }
    for (int64_t i = 0; used < before.count && i < before.count; i++)
        if (!mgx_recipe_find(r, before.v[i].name))
            return mgx_fail(j->diag, MGX_NOT_FOUND,
                            "the ranges name %s, which the program does not have to quantize",
                            before.v[i].name);
    return MGX_OK;
}

// --- all together ---

static enum mgx_status drop_wide_weights(struct mgx_program *p, struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_dead_code_elimination, NULL};
    return mgx_run_passes(p, passes, NULL, diag);
}

// In 16 bits: explanations say why.
static bool some_stay(const struct mgx_recipe *r)
{
    bool some = false;
    for (int64_t i = 0; i < r->count; i++)
        some |= r->v[i].type == MGX_HALF;
    return some;
}

static enum mgx_status apply(struct job *j)
{
    return mgx_recipe_apply(&j->recipe, &j->sites, j->options->correct_bias, j->diag);
}

// Applies it to all products, and if some are to stay, once more to the others.
static enum mgx_status apply_weighed(struct job *j)
{
    const struct mgx_quant_options *o = j->options;
    struct mgx_program *wide = NULL;
    TRY(mgx_program_backup(&wide, j->program, j->diag));
    enum mgx_status status = apply(j);
    if (status == MGX_OK)
        status = mgx_recipe_weigh(&j->recipe, wide, j->program, &j->sites, o, j->runner, j->diag);
    if (status != MGX_OK || !some_stay(&j->recipe)) {
        mgx_program_destroy(wide);
        return status;
    }
    mgx_program_restore(j->program, wide);
    TRY(mgx_sites_find(j->program, o->names, o->name_count, &j->arena, &j->sites, j->diag));
    return apply(j);
}

static enum mgx_status work(struct job *j, const struct mgx_recipe *given)
{
    const struct mgx_quant_options *o = j->options;
    TRY(mgx_sites_find(j->program, o->names, o->name_count, &j->arena, &j->sites, j->diag));
    TRY(given ? match(j, given) : calibrate(j));
    if (o->budget >= 0)
        TRY(mgx_recipe_fit(&j->recipe, j->program, o, j->runner, j->diag));
    // Fitting compiled clones; the sites are those of the program all the while.
    TRY(o->budget < 0 && !given && j->runner->weigh ? apply_weighed(j) : apply(j));
    if ((o->keep || some_stay(&j->recipe)) &&
        j->sites.count) // what a program keeps of before stays
        TRY(mgx_recipe_attach(&j->recipe, j->program, j->diag));
    TRY(mgx_program_status(j->program, j->diag));
    TRY(drop_wide_weights(j->program, j->diag));
    TRY(mgx_program_check_files(j->program, j->diag));
    return mgx_program_verify(j->program, j->diag);
}

static enum mgx_status check_options(const struct mgx_quant_options *o,
                                     const struct mgx_quant_runner *runner, struct mgx_diag *diag)
{
    if (o->budget >= 0 && !runner->samples)
        return mgx_fail(diag, MGX_INVALID, "a budget of %g is kept on samples, and there are none",
                        o->budget);
    if (!(o->percentile > 0 && o->percentile <= 100))
        return mgx_fail(diag, MGX_INVALID, "a percentile of %g is not between 0 and 100",
                        o->percentile);
    if (o->type != MGX_INT8 && !mgx_type_is_fp8(o->type))
        return mgx_fail(diag, MGX_UNSUPPORTED, "products are not quantized to %s",
                        mgx_type_name(o->type));
    return MGX_OK;
}

enum mgx_status mgx_quantize(struct mgx_program *p, const struct mgx_quant_options *options,
                             const struct mgx_quant_runner *runner, const struct mgx_recipe *given,
                             struct mgx_recipe *out, struct mgx_diag *diag)
{
    assert(!p->executable);
    assert(given || runner);
    struct mgx_program *backup = NULL;
    struct job j = {.program = p, .options = options, .runner = runner, .diag = diag};
    TRY(check_options(options, runner, diag));
    TRY(mgx_program_backup(&backup, p, diag));
    mgx_arena_init(&j.arena);
    mgx_recipe_init(&j.recipe);
    enum mgx_status status = prepare(p, diag);
    if (status == MGX_OK)
        status = work(&j, given);
    if (status == MGX_OK && out)
        *out = j.recipe;
    else
        mgx_recipe_fini(&j.recipe);
    mgx_arena_fini(&j.arena);
    if (status == MGX_OK)
        mgx_program_destroy(backup);
    else
        mgx_program_restore(p, backup);
    return status;
}
