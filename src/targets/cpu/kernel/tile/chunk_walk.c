// SPDX-License-Identifier: MIT
// The walk over any weights, and which of the two is taken; see chunk_walk.h. Some 25 ns a chunk.
#include "targets/cpu/kernel/tile/chunk_walk.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    COLS = MGX_CHUNK_COLS,
    VALUES = MGX_CHUNK_VALUES,
    AHEAD = MGX_CHUNK_AHEAD,
    MOST = MGX_CHUNK_MOST
};

typedef mgx_chunk_value cols;

static bool is_zero(const void *v16)
{
    uint64_t half[2];
    memcpy(half, v16, sizeof half);
    return !(half[0] | half[1]);
}

// Every x86-64 has an instruction for these, which the compiler does not see in the other form.
static cols least(cols a, cols b)
{
#if defined(__SSE2__)
    return (cols)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    const cols less = a < b;
    return (a & less) | (b & ~less);
#endif
}

static cols most(cols a, cols b)
{
#if defined(__SSE2__)
    return (cols)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    const cols more = a > b;
    return (a & more) | (b & ~more);
#endif
}

#if defined(__SSE2__)
// Columns that lie side by side: eight values of a row at once, less their zero points.
static void read_rows(struct mgx_chunk_walk *w, int64_t from, int count)
{
    const struct mgx_chunk_matrix *m = w->m;
    const char *b = (const char *)m->b + from + w->col;
    cols zero = {0};
    for (int j = 0; j < COLS && m->zero; j++)
        zero[j] = (int16_t)m->zero[w->col + j];
    for (int i = 0; i < count; i++, b += m->row) {
        const __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)b);
        w->wide.ahead[i] = mgx_kernel_is_signed(m->type)
                               ? (cols)_mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8)
                               : (cols)_mm_unpacklo_epi8(v, _mm_setzero_si128());
        w->wide.ahead[i] -= zero;
    }
}

// The weights of a product as they usually lie, or nothing is done.
static bool read_whole(struct mgx_chunk_walk *w, int64_t from, int count)
{
    if (w->count != COLS || w->m->col != 1)
        return false;
    read_rows(w, from, count);
    return true;
}
#else
static bool read_whole(struct mgx_chunk_walk *w, int64_t from, int count)
{
    (void)w, (void)from, (void)count;
    return false;
}
#endif

static void read_ahead(struct mgx_chunk_walk *w, int64_t value)
{
    const struct mgx_chunk_matrix *m = w->m;
    int count;
    const int64_t from = mgx_chunk_read_at(w, value, &count);
    memset(w->wide.ahead, 0, sizeof w->wide.ahead);
    if (count > 0 && read_whole(w, from, count))
        return;
    for (int j = 0; j < w->count && count > 0; j++) {
        const int zero = m->zero ? m->zero[w->col + j] : 0;
        const int8_t *b = (const int8_t *)m->b + from + (w->col + j) * m->col;
        const uint8_t *u = (const uint8_t *)b;
        int16_t *to = (int16_t *)w->wide.ahead + j;
        if (mgx_kernel_is_signed(m->type))
            for (int i = 0; i < count; i++, to += COLS)
                *to = (int16_t)(b[i * m->row] - zero);
        else
            for (int i = 0; i < count; i++, to += COLS)
                *to = (int16_t)(u[i * m->row] - zero);
    }
}

static cols load(struct mgx_chunk_walk *w, int64_t value)
{
    if (value >= w->end)
        read_ahead(w, value);
    return value - w->first < AHEAD ? w->wide.ahead[value - w->first] : (cols){0};
}

static void look(struct mgx_chunk_walk *w, int count)
{
    const int64_t left = w->m->run - w->at;
    for (; w->known < count; w->known++)
        w->wide.rest[w->known] = w->known < left ? load(w, w->at + w->known) : (cols){0};
}

static void step(struct mgx_chunk_walk *w, int count)
{
    for (int i = 0; i + count < w->known; i++)
        w->wide.rest[i] = w->wide.rest[i + count];
    w->known = w->known > count ? w->known - count : 0;
    w->at += count;
}

// A chunk that begins `back` values before the first one that is left: its weights, and what is
// left then. Returns how many values have nothing left.
static int take_values(const struct mgx_chunk_walk *w, int back, cols taken[VALUES],
                       cols rest[VALUES])
{
    const cols most_of_byte = {127, 127, 127, 127, 127, 127, 127, 127};
    int done = 0;
    cols above = {0}, below = {0};
    for (int i = 0; i < VALUES; i++) {
        if (i % 2 == 0) {
            above = (cols){0} + MOST;
            below = (cols){0} - MOST;
        }
        taken[i] = (cols){0};
        if (i < back)
            continue;
        taken[i] = most(below, least(least(above, most_of_byte), w->wide.rest[i - back]));
        above -= most(taken[i], (cols){0});
        below -= least(taken[i], (cols){0});
        rest[i - back] = w->wide.rest[i - back] - taken[i];
        done += done == i - back && is_zero(&rest[i - back]);
    }
    return done;
}

// Two values of every column: the bytes of the second behind those of the first, as x86 has 16
// bits.
static cols side_by_side(cols first, cols second)
{
    return (first & 0xff) | (second << 8);
}

static void put_columns(int8_t *weight, cols low, cols high)
{
#if defined(__SSE2__)
    _mm_storeu_si128((__m128i *)(void *)weight, _mm_unpacklo_epi16((__m128i)low, (__m128i)high));
    _mm_storeu_si128((__m128i *)(void *)(weight + 16),
                     _mm_unpackhi_epi16((__m128i)low, (__m128i)high));
#else
    for (int j = 0; j < COLS; j++) {
        memcpy(weight + j * VALUES, &(int16_t){low[j]}, 2);
        memcpy(weight + j * VALUES + 2, &(int16_t){high[j]}, 2);
    }
#endif
}

// What the weights of a chunk add up to, sum by sum.
struct totals {
    cols above[2], below[2];
};

static struct totals total(const cols taken[VALUES])
{
    const cols zero = {0};
    struct totals t;
    for (int l = 0; l < 2; l++) {
        const cols a = taken[2 * l], b = taken[2 * l + 1];
        t.above[l] = most(a, zero) + most(b, zero);
        t.below[l] = -(least(a, zero) + least(b, zero));
    }
    return t;
}

static void fill(struct mgx_chunk *chunk, const struct mgx_chunk_walk *w, int64_t begin,
                 const cols taken[VALUES], const struct totals *t)
{
    const int64_t *offset = w->m->offset;
    chunk->offset = (offset ? offset[w->tap] : 0) + begin;
    put_columns(chunk->weight, side_by_side(taken[0], taken[1]), side_by_side(taken[2], taken[3]));
    for (int j = 0; j < COLS; j++)
        for (int l = 0; l < 2; l++) {
            chunk->above[l * COLS + j] = (uint8_t)t->above[l][j];
            chunk->below[l * COLS + j] = (uint8_t)t->below[l][j];
        }
}

// The usual chunk: four values of which nothing was taken before, and nothing is left. False: it is
// not, and nothing is done. `chunk` NULL: it is only counted.
static bool next_whole(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    if (w->known || w->m->run - w->at < VALUES)
        return false;
    load(w, w->at);
    const int64_t at = w->at - w->first;
    if (at + VALUES > AHEAD || w->at + VALUES > w->end)
        return false;
    const cols *v = w->wide.ahead + at;
    const struct totals t = total(v);
    const cols full = (cols){0} + MOST, largest = most(most(v[0], v[1]), most(v[2], v[3])),
               over = (most(most(t.above[0], t.above[1]), most(t.below[0], t.below[1])) > full) |
                      (largest > full - 1);
    if (!is_zero(&over) || is_zero(&v[0]))
        return false;
    if (chunk)
        fill(chunk, w, w->at, v, &t);
    w->at += VALUES;
    return true;
}

static bool wide_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    if (w->tap < w->m->taps && next_whole(w, chunk))
        return true;
    for (; w->tap < w->m->taps; w->tap++, mgx_chunk_enter_tap(w)) {
        for (; w->at < w->m->run; step(w, 1)) {
            look(w, 1);
            if (!is_zero(&w->wide.rest[0]))
                break;
        }
        if (w->at < w->m->run)
            break;
    }
    if (w->tap == w->m->taps)
        return false;
    look(w, VALUES);
    cols taken[VALUES], rest[VALUES], other[VALUES], other_rest[VALUES];
    const int64_t begin = mgx_min_i64(w->at, w->m->run - VALUES);
    int back = (int)(w->at - begin), done = take_values(w, back, taken, rest);
    if (done < VALUES - 1 && begin > 0 && back + 1 < VALUES) {
        const int instead = take_values(w, back + 1, other, other_rest);
        if (instead > done) {
            done = instead;
            back++;
            memcpy(taken, other, sizeof taken);
            memcpy(rest, other_rest, sizeof rest);
        }
    }
    if (chunk) {
        const struct totals t = total(taken);
        fill(chunk, w, w->at - back, taken, &t);
    }
    memcpy(w->wide.rest, rest, (size_t)(VALUES - back) * sizeof *rest);
    step(w, done);
    return true;
}

void mgx_chunk_walk_start(struct mgx_chunk_walk *w, const struct mgx_chunk_matrix *m, int64_t p)
{
    w->m = m;
    w->col = p * COLS;
    w->count = (int)mgx_min_i64(m->columns - w->col, COLS);
    w->tap = 0;
    w->bytes = mgx_chunk_bytes_fit(m);
    mgx_chunk_enter_tap(w);
}

bool mgx_chunk_walk_next(struct mgx_chunk_walk *w, struct mgx_chunk *chunk)
{
    return w->bytes ? mgx_chunk_bytes_next(w, chunk) : wide_next(w, chunk);
}
