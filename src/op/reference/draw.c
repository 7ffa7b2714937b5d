// SPDX-License-Identifier: MIT
// The steps of draw.h. Scores after bias and repetition lie in room->weights, and become the
// weights there.
#include "op/reference/draw.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mgx_sampling mgx_sampling_plain(void)
{
    return (struct mgx_sampling){.top_p = 1, .repetition = 1};
}

void mgx_draw_room_fini(struct mgx_draw_room *room)
{
    free(room->weights);
    free(room->order);
    *room = (struct mgx_draw_room){0};
}

static enum mgx_status make_room(struct mgx_draw_room *room, int64_t size, struct mgx_diag *diag)
{
    if (room->size >= size)
        return MGX_OK;
    mgx_draw_room_fini(room);
    room->weights = calloc((size_t)size, sizeof *room->weights);
    room->order = calloc((size_t)size, sizeof *room->order);
    if (!room->weights || !room->order) {
        mgx_draw_room_fini(room);
        return mgx_fail_memory(diag);
    }
    room->size = size;
    return MGX_OK;
}

// --- scores ---

static enum mgx_status read_scores(const struct mgx_draw *s, double *out, struct mgx_diag *diag)
{
    for (int64_t i = 0; i < s->size; i++) {
        out[i] = (double)s->scores[i] + (s->bias ? (double)s->bias[i] : 0);
        if (isnan(out[i]) || out[i] == INFINITY)
            return mgx_fail(diag, MGX_INVALID, "the score of token %lld is %s, after %lld tokens",
                            (long long)i, isnan(out[i]) ? "no number" : "infinite",
                            (long long)s->length);
    }
    return MGX_OK;
}

// Every token of the text once, however often it has it: `seen` is zero and has a place for each.
static void penalise(const struct mgx_draw *s, double *scores, int32_t *seen)
{
    const double r = s->sampling->repetition;
    memset(seen, 0, (size_t)s->size * sizeof *seen);
    for (int64_t i = 0; i < s->length; i++) {
        const int64_t token = s->text[i];
        if (token < 0 || token >= s->size || seen[token]++)
            continue;
        scores[token] = scores[token] > 0 ? scores[token] / r : scores[token] * r;
    }
}

static int64_t best_of(const double *scores, int64_t size)
{
    int64_t best = 0;
    for (int64_t i = 1; i < size; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

// The best of plain scores, where all are numbers and one may be chosen; else -1. The largest of so
// many lanes, then the first that has it.
static int64_t best_of_plain(const float *scores, int64_t size)
{
    enum { LANES = 16 };
    float most[LANES];
    int64_t i = 0;
    int odd = 0;
    for (int k = 0; k < LANES; k++)
        most[k] = -INFINITY;
    for (; i + LANES <= size; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float x = scores[i + k];
            odd |= !(x < INFINITY);
            most[k] = x > most[k] ? x : most[k];
        }
    for (; i < size; i++) {
        odd |= !(scores[i] < INFINITY);
        most[0] = scores[i] > most[0] ? scores[i] : most[0];
    }
    for (int k = 1; k < LANES; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    if (odd || most[0] == -INFINITY)
        return -1;
    for (i = 0; scores[i] != most[0]; i++)
        ;
    return i;
}

// --- the order ---

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool comes_before(const double *v, int32_t a, int32_t b)
{
    return v[a] > v[b] || (v[a] == v[b] && a < b);
}

static void swap(int32_t *a, int32_t *b)
{
    const int32_t moved = *a;
    *a = *b;
    *b = moved;
}

// Moves what comes before one of [from, to) to the left of it; gives its place, and their sum.
static int64_t divide(const double *v, int32_t *order, int64_t from, int64_t to, double *sum)
{
    int64_t at = from;
    swap(&order[from + (int64_t)(mix((uint64_t)(from ^ to)) % (uint64_t)(to - from))],
         &order[to - 1]);
    *sum = 0;
    for (int64_t i = from; i < to - 1; i++)
        if (comes_before(v, order[i], order[to - 1])) {
            *sum += v[order[i]];
            swap(&order[i], &order[at++]);
        }
    swap(&order[at], &order[to - 1]);
    return at;
}

// Brings the beginning of the order to the front, in whatever order itself: `most` tokens, or fewer
// that have `enough` together, at least one; gives how many. Cost: O(size) as a rule, no sorting.
static int64_t take_beginning(const double *v, int32_t *order, int64_t size, int64_t most,
                              double enough)
{
    int64_t from = 0, to = size;
    while (to - from > 1) {
        double sum;
        const int64_t at = divide(v, order, from, to, &sum), count = at - from;
        if (count >= most || sum >= enough) {
            to = at; // it ends among these
            continue;
        }
        most -= count + 1;
        enough -= sum + v[order[at]];
        from = at + 1;
        if (most <= 0 || enough <= 0)
            return from;
    }
    return to;
}

// --- weights ---

static void make_weights(double *v, int64_t size, double most, double temperature)
{
    for (int64_t i = 0; i < size; i++)
        v[i] = exp((v[i] - most) / temperature);
}

static double sum_of(const double *v, int64_t size)
{
    double sum = 0;
    for (int64_t i = 0; i < size; i++)
        sum += v[i];
    return sum;
}

// Weights of tokens behind the first `top_k` of the order become 0, then those behind the beginning
// that has `top_p` of their sum.
static void cut_tail(const struct mgx_sampling *sampling, double *v, int64_t size, int32_t *order)
{
    int64_t count = 0, kept;
    double sum = 0;
    for (int64_t i = 0; i < size; i++)
        if (v[i] > 0)
            order[count++] = (int32_t)i;
    kept = count;
    if (sampling->top_k && sampling->top_k < count)
        kept = take_beginning(v, order, count, sampling->top_k, INFINITY);
    if (sampling->top_p < 1) {
        for (int64_t i = 0; i < kept; i++)
            sum += v[order[i]];
        kept = take_beginning(v, order, kept, kept, fmax(sampling->top_p * sum, DBL_MIN));
    }
    for (int64_t i = kept; i < count; i++)
        v[order[i]] = 0;
}

static void cut_small(double *v, int64_t size, double least)
{
    for (int64_t i = 0; i < size; i++)
        v[i] = v[i] >= least ? v[i] : 0;
}

// --- the draw ---

// In [0, 1), from 53 bits.
double mgx_draw_at(uint64_t seed, int64_t position)
{
    return (double)(mix(mix(seed) + (uint64_t)position) >> 11) * 0x1p-53;
}

static int64_t choose(const double *v, int64_t size, double u)
{
    const double until = u * sum_of(v, size);
    double sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < size; i++) {
        if (v[i] == 0)
            continue;
        sum += v[i];
        last = i;
        if (sum > until)
            break;
    }
    return last;
}

enum mgx_status mgx_draw_token(const struct mgx_draw *s, struct mgx_draw_room *room, int64_t *out,
                               struct mgx_diag *diag)
{
    const struct mgx_sampling *how = s->sampling;
    assert(s->size > 0 && s->size <= INT32_MAX && s->length >= 0);
    if (how->temperature == 0 && how->repetition == 1 && !s->bias &&
        (*out = best_of_plain(s->scores, s->size)) >= 0)
        return MGX_OK;
    TRY(make_room(room, s->size, diag));
    double *v = room->weights;
    TRY(read_scores(s, v, diag));
    if (how->repetition != 1)
        penalise(s, v, room->order);
    const int64_t best = best_of(v, s->size);
    if (v[best] == -INFINITY)
        return mgx_fail(diag, MGX_INVALID, "each of %lld tokens is forbidden, after %lld tokens",
                        (long long)s->size, (long long)s->length);
    *out = best;
    if (how->temperature == 0)
        return MGX_OK;
    make_weights(v, s->size, v[best], how->temperature);
    if (how->top_k || how->top_p < 1)
        cut_tail(how, v, s->size, room->order);
    if (how->min_p > 0)
        cut_small(v, s->size, how->min_p);
    *out = choose(v, s->size, s->u);
    return MGX_OK;
}
