// SPDX-License-Identifier: MIT
// The steps of draw.h. Scores after bias and repetition lie in room->weights, and become the
// weights there.
#include "generate/draw.h"

#include <assert.h>
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

// --- the order, as a heap whose first has the largest score ---

static bool comes_before(const double *v, int32_t a, int32_t b)
{
    return v[a] > v[b] || (v[a] == v[b] && a < b);
}

static void sift(const double *v, int32_t *heap, int64_t size, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && comes_before(v, heap[child + 1], heap[child]))
            child++;
        if (!comes_before(v, heap[child], heap[at]))
            return;
        const int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

// Tokens that may be chosen, as a heap; returns how many.
static int64_t make_heap(const double *v, int64_t size, int32_t *heap)
{
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++)
        if (v[i] > 0)
            heap[count++] = (int32_t)i;
    for (int64_t at = count / 2; at-- > 0;)
        sift(v, heap, count, at);
    return count;
}

// The first of the heap moves behind its end, where the order grows from right to left.
static int32_t take_first(const double *v, int32_t *heap, int64_t *size)
{
    const int32_t first = heap[0];
    heap[0] = heap[--*size];
    heap[*size] = first;
    sift(v, heap, *size, 0);
    return first;
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

// Weights of tokens behind the first `k` of the order become 0, then those behind the beginning
// that has `p` of their sum.
static void cut_tail(const struct mgx_sampling *sampling, double *v, int64_t size, int32_t *heap)
{
    const int64_t count = make_heap(v, size, heap);
    const bool few = sampling->top_k && sampling->top_k < count;
    const int64_t k = few ? sampling->top_k : count;
    int64_t rest = count, kept = 0;
    double sum = 0, enough = sampling->top_p;
    if (few) {
        for (int64_t i = 0; i < k; i++)
            sum += v[take_first(v, heap, &rest)];
        enough *= sum;
    } else {
        enough *= sum_of(v, size);
    }
    sum = 0;
    for (; kept < k && sampling->top_p < 1 && (sum < enough || kept == 0); kept++)
        sum += v[few ? heap[count - 1 - kept] : take_first(v, heap, &rest)];
    if (sampling->top_p >= 1)
        kept = k;
    for (int64_t i = 0; i < count - kept; i++)
        v[heap[i]] = 0;
}

static void cut_small(double *v, int64_t size, double least)
{
    for (int64_t i = 0; i < size; i++)
        v[i] = v[i] >= least ? v[i] : 0;
}

// --- the draw ---

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

// In [0, 1), from 53 bits.
static double draw_at(uint64_t seed, int64_t position)
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
    *out = choose(v, s->size, draw_at(how->seed, s->length));
    return MGX_OK;
}
