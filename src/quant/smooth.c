// SPDX-License-Identifier: MIT
// Moves outliers of activations into weights: a few channels of a transformer are a hundred times
// as large as the rest, and one scale for all leaves the rest no digits.
//
//     x w = (x / f) (f w)         f[k] = a[k]^s / b[k]^(1 - s)
//
// a[k] is the largest value of channel k, b[k] the largest of its weights in all products that read
// x. s is the strength out of a few, or no smoothing at all, whichever leaves least noise by this
// reckoning: a step of width d adds d^2 / 12, so
//
//     noise = sum over products:  step(x)^2 / 12  sum_k f[k]^2 |w[k]|^2
//                               + sum_n step(w[n])^2 / 12  sum_k mean(x[k]^2) / f[k]^2
//
// Cost: O(weights) for each strength.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "quant/apply.h"
#include "quant/weights.h"

// Less noise than this part of what there was, or x stays as it is: the largest value of a channel
// is known worse than that of all, and what lies beyond it saturates.
#define WORTH 0.5
enum { LEAST_SEEN = 64 }; // values of a channel

struct channels { // of one value that products read
    int64_t count;
    const struct mgx_stats *seen;
    double *largest; // of the weights, by channel
    double *squares; // sum of w^2 by channel
    double *factors, *best;
};

static double size_of(const struct mgx_stats *s, int64_t k)
{
    return fmax(-s->lows[k], s->highs[k]);
}

static void set_factors(const struct channels *c, double strength)
{
    for (int64_t k = 0; k < c->count; k++) {
        const double a = size_of(c->seen, k), b = c->largest[k];
        const double f = a > 0 && b > 0 ? pow(a, strength) / pow(b, 1 - strength) : 1;
        c->factors[k] = fmin(fmax((double)(float)f, 1e-5), 1e5);
    }
}

static void no_factors(const struct channels *c)
{
    for (int64_t k = 0; k < c->count; k++)
        c->factors[k] = 1;
}

// The noise of the activations, and the mean squares of smoothed ones.
static double activation_noise(const struct channels *c)
{
    double largest = 0, sum = 0;
    for (int64_t k = 0; k < c->count; k++) {
        largest = fmax(largest, size_of(c->seen, k) / c->factors[k]);
        sum += c->factors[k] * c->factors[k] * c->squares[k];
    }
    return largest / 127 * largest / 127 / 12 * sum;
}

static double weight_noise(const struct channels *c, const struct mgx_weights *w,
                           double *largest_of_outs)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(w);
    const int64_t count = mgx_shape_elements(&w->value.shape);
    double energy = 0, steps = 0;
    memset(largest_of_outs, 0, (size_t)walk.outs * sizeof *largest_of_outs);
    for (int64_t k = 0; k < c->count; k++)
        energy +=
            c->seen->squares[k] / (double)c->seen->per_channel / c->factors[k] / c->factors[k];
    for (int64_t i = 0; i < count; i++) {
        double *at = &largest_of_outs[mgx_weights_out(&walk, i)];
        const double v = mgx_load_double(w->value.shape.type, w->value.data, i);
        *at = fmax(*at, fabs(v) * c->factors[mgx_weights_in(&walk, i)]);
    }
    for (int64_t n = 0; n < walk.outs; n++)
        steps += largest_of_outs[n] / 127 * largest_of_outs[n] / 127 / 12;
    return steps * energy;
}

static void add_weights(struct channels *c, const struct mgx_weights *w)
{
    const struct mgx_weights_walk walk = mgx_weights_walk(w);
    const int64_t count = mgx_shape_elements(&w->value.shape);
    for (int64_t i = 0; i < count; i++) {
        const double v = mgx_load_double(w->value.shape.type, w->value.data, i);
        const int64_t k = mgx_weights_in(&walk, i);
        c->largest[k] = fmax(c->largest[k], fabs(v));
        c->squares[k] += v * v;
    }
}

// --- one value and the products that read it ---

struct group {
    struct mgx_weights *weights;
    int64_t *sites;
    int count;
};

static double noise_of(const struct channels *c, const struct group *g, double *room)
{
    double noise = activation_noise(c);
    for (int i = 0; i < g->count; i++)
        noise += weight_noise(c, &g->weights[i], room);
    return noise;
}

static int64_t most_outs(const struct group *g)
{
    int64_t most = 0;
    for (int i = 0; i < g->count; i++) {
        const struct mgx_weights_walk walk = mgx_weights_walk(&g->weights[i]);
        most = walk.outs > most ? walk.outs : most;
    }
    return most;
}

// True, with c->best, if smoothing is worth it.
static enum mgx_status choose(struct channels *c, const struct group *g, struct mgx_arena *arena,
                              bool *worth, struct mgx_diag *diag)
{
    static const double strengths[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
    double *room = MGX_NEW_ARRAY(arena, double, most_outs(g));
    c->largest = MGX_NEW_ARRAY(arena, double, c->count);
    c->squares = MGX_NEW_ARRAY(arena, double, c->count);
    c->factors = MGX_NEW_ARRAY(arena, double, c->count);
    c->best = MGX_NEW_ARRAY(arena, double, c->count);
    if (arena->failed || !room)
        return mgx_fail_memory(diag);
    for (int i = 0; i < g->count; i++)
        add_weights(c, &g->weights[i]);
    no_factors(c);
    double least = WORTH * noise_of(c, g, room);
    *worth = false;
    for (size_t i = 0; i < sizeof strengths / sizeof *strengths; i++) {
        set_factors(c, strengths[i]);
        const double noise = noise_of(c, g, room);
        if (noise < least) {
            least = noise;
            *worth = true;
            memcpy(c->best, c->factors, (size_t)c->count * sizeof *c->best);
        }
    }
    return MGX_OK;
}

static enum mgx_status keep(struct mgx_recipe *r, const struct channels *c, const struct group *g,
                            struct mgx_diag *diag)
{
    struct mgx_recipe_input range = {true, 0, 0};
    for (int64_t k = 0; k < c->count; k++) {
        range.low = fmin(range.low, c->seen->lows[k] / c->best[k]);
        range.high = fmax(range.high, c->seen->highs[k] / c->best[k]);
    }
    const double *copy = mgx_arena_memdup(&r->arena, c->best, (size_t)c->count * sizeof *copy);
    if (!copy)
        return mgx_fail_memory(diag);
    for (int i = 0; i < g->count; i++) {
        struct mgx_recipe_entry *e = &r->v[g->sites[i]];
        e->smooth = (struct mgx_doubles){copy, (int)c->count};
        e->in[0] = range;
    }
    return MGX_OK;
}

static bool can_smooth(const struct mgx_recipe *r, const struct mgx_sites *sites,
                       struct mgx_stats *const *seen, int64_t i)
{
    const struct mgx_site *site = &sites->v[i];
    const struct mgx_stats *s = seen[2 * i];
    return site->ins->op == &mgx_op_dot && site->constant[1] && s && s->channels > 0 &&
           s->per_channel >= LEAST_SEEN && s->strange == 0 && r->v[i].type == MGX_INT8 &&
           !r->v[i].smooth.count && mgx_shape_is_static(&site->ins->in[0]->shape);
}

// The products from site `first` on that read what it reads.
static enum mgx_status open_group(struct group *g, const struct mgx_recipe *r,
                                  const struct mgx_sites *sites, struct mgx_stats *const *seen,
                                  int64_t first, struct mgx_diag *diag)
{
    for (int64_t i = first; i < sites->count; i++) {
        if (seen[2 * i] != seen[2 * first] || !can_smooth(r, sites, seen, i))
            continue;
        g->sites[g->count] = i;
        TRY(mgx_weights_open(&g->weights[g->count++], &sites->v[i], 1, diag));
    }
    return MGX_OK;
}

static enum mgx_status smooth_one(struct mgx_recipe *r, const struct mgx_sites *sites,
                                  struct mgx_stats *const *seen, int64_t first,
                                  struct mgx_diag *diag)
{
    struct mgx_arena arena;
    bool worth = false;
    mgx_arena_init(&arena);
    struct group g = {.weights = MGX_NEW_ARRAY(&arena, struct mgx_weights, sites->count - first),
                      .sites = MGX_NEW_ARRAY(&arena, int64_t, sites->count - first)};
    struct channels c = {.count = seen[2 * first]->channels, .seen = seen[2 * first]};
    enum mgx_status status =
        g.weights && g.sites ? open_group(&g, r, sites, seen, first, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = choose(&c, &g, &arena, &worth, diag);
    if (status == MGX_OK && worth)
        status = keep(r, &c, &g, diag);
    for (int i = 0; i < g.count; i++)
        mgx_weights_close(&g.weights[i]);
    mgx_arena_fini(&arena);
    return status;
}

enum mgx_status mgx_recipe_smooth(struct mgx_recipe *r, const struct mgx_sites *sites,
                                  struct mgx_stats *const *seen, struct mgx_diag *diag)
{
    assert(r->count == sites->count && seen);
    for (int64_t i = 0; i < sites->count; i++) {
        bool met = false; // its value, at an earlier site?
        for (int64_t k = 0; k < i && !met; k++)
            met = seen[2 * k] == seen[2 * i] && can_smooth(r, sites, seen, k);
        if (!met && can_smooth(r, sites, seen, i))
            TRY(smooth_one(r, sites, seen, i, diag));
    }
    return MGX_OK;
}
