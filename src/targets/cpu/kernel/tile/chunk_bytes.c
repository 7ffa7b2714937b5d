// SPDX-License-Identifier: MIT
// The walk over signed bytes without zero points: the four values of a chunk, eight columns each,
// fill two vectors, and what a sum has no room for is found for all of them at once. Some 13 ns a
// chunk.
#include "targets/cpu/kernel/tile/chunk_walk.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"

#if defined(__SSE2__)
#include <emmintrin.h>

enum { COLS = MGX_CHUNK_COLS, VALUES = MGX_CHUNK_VALUES, AHEAD = MGX_CHUNK_AHEAD };

bool mgx_chunk_bytes_fit(const struct mgx_chunk_matrix *m)
{
    return mgx_kernel_is_signed(m->type) && !m->zero;
}

// Values that lie in order are read where they are, all there are of the kernel element.
static bool read_in_order(struct mgx_chunk_walk *w, int64_t value)
{
    const struct mgx_chunk_matrix *m = w->m;
    const int64_t left = m->valid - value % m->inner;
    const bool aligned = (uintptr_t)m->b % sizeof(uint64_t) == 0;
    if (w->count != COLS || m->col != 1 || m->row != COLS || left <= 0 || !aligned)
        return false;
    assert(w->col == 0);
    int count;
    const int64_t from = mgx_chunk_read_at(w, value, &count);
    w->byte.ahead = (const uint64_t *)(const void *)((const char *)m->b + from);
    w->byte.known = left;
    w->end = value + left;
    return true;
}

static void read_ahead(struct mgx_chunk_walk *w, int64_t value)
{
    const struct mgx_chunk_matrix *m = w->m;
    int count;
    if (read_in_order(w, value))
        return;
    const int8_t *b = (const int8_t *)m->b + mgx_chunk_read_at(w, value, &count) + w->col * m->col;
    uint64_t *to = w->byte.room;
    w->byte.ahead = to;
    w->byte.known = AHEAD;
    memset(to + count, 0, (size_t)(AHEAD - count) * sizeof *to);
    if (w->count == COLS && m->col == 1) {
        for (int i = 0; i < count; i++, b += m->row)
            memcpy(to + i, b, sizeof *to);
        return;
    }
    for (int i = 0; i < count; i++) {
        int8_t of[COLS] = {0};
        for (int j = 0; j < w->count; j++)
            of[j] = b[i * m->row + j * m->col];
        memcpy(to + i, of, sizeof of);
    }
}

static uint64_t load(struct mgx_chunk_walk *w, int64_t value)
{
    if (value < w->first || value >= w->end)
        read_ahead(w, value);
    return value - w->first < w->byte.known ? w->byte.ahead[value - w->first] : 0;
}

// What is left of a value.
static uint64_t value(struct mgx_chunk_walk *w, int i)
{
    if (i < w->known)
        return w->byte.rest[i];
    return w->at + i < w->m->run ? load(w, w->at + i) : 0;
}

// Four values as two sums of two: value 0 | value 2, and value 1 | value 3, of which `left` has no
// room. The sums' terms of either sign, at most 128, are unsigned bytes.
struct sums {
    __m128i first, second, left, above, below;
};

static __m128i both(uint64_t low, uint64_t high)
{
    return _mm_unpacklo_epi64(_mm_cvtsi64_si128((int64_t)low), _mm_cvtsi64_si128((int64_t)high));
}

static struct sums sums_of(uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3)
{
    const __m128i zero = _mm_setzero_si128(), most = _mm_set1_epi8((char)MGX_CHUNK_MOST);
    struct sums s = {.first = both(v0, v2)};
    const __m128i second = both(v1, v3), minus = _mm_cmpgt_epi8(zero, s.first),
                  minus2 = _mm_cmpgt_epi8(zero, second), above = _mm_andnot_si128(minus, s.first),
                  below = _mm_sub_epi8(zero, _mm_and_si128(minus, s.first)),
                  more = _mm_min_epu8(_mm_andnot_si128(minus2, second), _mm_sub_epi8(most, above)),
                  less = _mm_min_epu8(_mm_sub_epi8(zero, _mm_and_si128(minus2, second)),
                                      _mm_sub_epi8(most, below));
    s.second = _mm_sub_epi8(more, less);
    s.left = _mm_sub_epi8(second, s.second);
    s.above = _mm_add_epi8(above, more);
    s.below = _mm_add_epi8(below, less);
    return s;
}

static void left_of(const struct sums *s, uint64_t left[2])
{
    _mm_storeu_si128((__m128i *)(void *)left, s->left);
}

static void fill(struct mgx_chunk *chunk, const struct mgx_chunk_walk *w, int64_t begin,
                 const struct sums *s)
{
    const int64_t *offset = w->m->offset;
    const __m128i low = _mm_unpacklo_epi8(s->first, s->second),
                  high = _mm_unpackhi_epi8(s->first, s->second);
    __m128i *weight = (__m128i *)(void *)chunk->weight;
    chunk->offset = (offset ? offset[w->tap] : 0) + begin;
    _mm_storeu_si128(weight, _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128(weight + 1, _mm_unpackhi_epi16(low, high));
    chunk->above = (mgx_chunk_lanes)s->above;
    chunk->below = (mgx_chunk_lanes)s->below;
}

// The usual chunk: four values of which nothing was taken before; the last one may leave something.
// False: it is not, and nothing is done.
static bool next_whole(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    if (w->known || w->m->run - w->at < VALUES)
        return false;
    if (w->at < w->first || w->at + VALUES > w->end)
        read_ahead(w, w->at);
    const int64_t at = w->at - w->first;
    if (w->at + VALUES > w->end || at + VALUES > w->byte.known)
        return false;
    const uint64_t *v = w->byte.ahead + at;
    const struct sums s = sums_of(v[0], v[1], v[2], v[3]);
    uint64_t left[2];
    left_of(&s, left);
    if (!v[0] || left[0])
        return false;
    if (chunk)
        fill(chunk, w, w->at, &s);
    w->at += VALUES;
    if (left[1]) { // a branch: the next chunk does not wait for it
        w->at--;
        w->known = 1;
        w->byte.rest[0] = left[1];
    }
    return true;
}

// To the first value with something left. False: there is none.
static bool find_chunks(struct mgx_chunk_walk *w)
{
    for (; w->tap < w->m->taps; w->tap++, mgx_chunk_enter_tap(w))
        for (; w->at < w->m->run; w->at++)
            if (w->known || load(w, w->at))
                return true;
    return false;
}

// After a chunk of the first `count` values: all of them are taken, but for what is left of the
// last and, in a chunk of four, of the second.
static void leave(struct mgx_chunk_walk *w, int count, const uint64_t left[2])
{
    uint64_t *rest = w->byte.rest;
    assert(w->known <= count);
    w->known = 0;
    w->at += count;
    if (count == VALUES && left[0]) {
        rest[0] = left[0];
        rest[1] = 0;
        rest[2] = left[1];
        w->known = VALUES - 1;
    } else if (left[1]) {
        rest[0] = left[1];
        w->known = 1;
    }
    w->at -= w->known;
}

bool mgx_chunk_bytes_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    if (w->tap < w->m->taps && next_whole(w, chunk))
        return true;
    if (!find_chunks(w))
        return false;
    const uint64_t v0 = value(w, 0), v1 = value(w, 1), v2 = value(w, 2), v3 = value(w, 3);
    uint64_t left[2];
    int back = (int)(w->at - mgx_min_i64(w->at, w->m->run - VALUES));
    struct sums s = back == 0   ? sums_of(v0, v1, v2, v3)
                    : back == 1 ? sums_of(0, v0, v1, v2)
                    : back == 2 ? sums_of(0, 0, v0, v1)
                                : sums_of(0, 0, 0, v0);
    left_of(&s, left);
    // The second value has no room beside the first: it has beside the third.
    if (back == 0 && left[0] && w->at > 0) {
        back = 1;
        s = sums_of(0, v0, v1, v2);
        left_of(&s, left);
    }
    if (chunk)
        fill(chunk, w, w->at - back, &s);
    leave(w, VALUES - back, left);
    return true;
}

#else
bool mgx_chunk_bytes_fit(const struct mgx_chunk_matrix *m)
{
    (void)m;
    return false;
}

bool mgx_chunk_bytes_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    (void)w, (void)chunk;
    return false;
}
#endif
