// SPDX-License-Identifier: MIT
// Weights in the order in which a walk reads them (chunk_walk.h): eight columns value by value.
//
//     weights                              stripe
//     rows of columns side by side    =>   [panel of 8][value][8]    eight panels at once, so that a
//                                                                    line of the cache is read once
//     columns one behind the other    =>   [value][8]                one panel at a time
//
// A walk that picked its eight bytes for every value from lines apart waited for memory longer than
// it thought. Costs eight bytes for every value of a panel, 64 of those that come by eight.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "targets/cpu/kernel/tile/chunk_walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { COLS = MGX_CHUNK_COLS, PANELS = 8, AHEAD = 24 };

// Values from a column's first to its last.
static int64_t extent_of(const struct mgx_chunk_matrix *m)
{
    int64_t last = (m->valid - 1) * m->row;
    for (int i = 0; i < 3; i++)
        last += (m->kernel[i] - 1) * m->space[i];
    return last + 1;
}

static bool is_dense(const struct mgx_chunk_matrix *m)
{
    return m->taps == 1 && m->kernel[0] * m->kernel[1] * m->kernel[2] == 1 && m->run == m->inner;
}

// Eight columns `col` apart, values from `i` on: as many as eight of them at once take.
static int64_t turn_many(const uint8_t *b, int64_t col, int64_t count, uint64_t *to)
{
    int64_t i = 0;
#if defined(__SSE2__)
    for (; i + COLS <= count; i += COLS) {
        __m128i v[COLS], a[4], c[4];
        for (int j = 0; j < COLS; j++)
            v[j] = _mm_loadl_epi64((const __m128i *)(const void *)(b + j * col + i));
        for (int j = 0; j < 4; j++)
            a[j] = _mm_unpacklo_epi8(v[2 * j], v[2 * j + 1]); // columns 2 j and 2 j + 1
        for (int j = 0; j < 2; j++) {                         // four columns, four values each
            c[2 * j] = _mm_unpacklo_epi16(a[2 * j], a[2 * j + 1]);
            c[2 * j + 1] = _mm_unpackhi_epi16(a[2 * j], a[2 * j + 1]);
        }
        for (int k = 0; k < 2; k++) { // all columns, two values each
            __m128i *pair = (__m128i *)(void *)(to + i + 4 * k);
            _mm_storeu_si128(pair, _mm_unpacklo_epi32(c[k], c[2 + k]));
            _mm_storeu_si128(pair + 1, _mm_unpackhi_epi32(c[k], c[2 + k]));
        }
    }
#else
    (void)b, (void)col, (void)count, (void)to;
#endif
    return i;
}

static void turn_columns(const uint8_t *b, int64_t col, int columns, int64_t count, uint64_t *to)
{
    for (int64_t i = columns == COLS ? turn_many(b, col, count, to) : 0; i < count; i++) {
        uint8_t of[COLS] = {0};
        for (int j = 0; j < columns; j++)
            of[j] = b[j * col + i];
        memcpy(to + i, of, sizeof of);
    }
}

// Values from a panel to the next one: lines of the cache, and an odd number of them, so that those
// that are written side by side do not meet in one set.
static int64_t pitch_of(int64_t values)
{
    return (mgx_ceil_div(values, COLS) | 1) * COLS;
}

static void turn_rows(const uint8_t *b, int64_t row, int64_t columns, int64_t count, uint64_t *to)
{
    const int64_t pitch = pitch_of(count);
    const int64_t panels = columns / COLS, left = columns % COLS;
    for (int64_t i = 0; i < count; i++, b += row) {
        __builtin_prefetch(b + (i + AHEAD < count ? AHEAD * row : 0), 0, 3);
        for (int64_t p = 0; p < panels; p++)
            memcpy(to + p * pitch + i, b + p * COLS, COLS);
        if (left)
            memcpy(to + panels * pitch + i, b + panels * COLS, (size_t)left);
    }
}

static bool make_room(struct mgx_chunk_stripe *s, int64_t values)
{
    if (s->room >= values)
        return true;
    free(s->values);
    s->values = calloc((size_t)values, sizeof *s->values);
    s->room = s->values ? values : 0;
    s->of = NULL;
    return s->values;
}

// Fills the stripe that panel p is in.
static void fill(struct mgx_chunk_stripe *s, const struct mgx_chunk_matrix *m, int64_t p,
                 int64_t values, bool rows)
{
    const uint8_t *b = m->b;
    s->of = m->b;
    s->first = rows ? p / PANELS * PANELS : p;
    const int64_t left = m->columns - s->first * COLS;
    if (rows)
        turn_rows(b + s->first * COLS, m->row, mgx_min_i64(left, PANELS * COLS), values, s->values);
    else
        turn_columns(b + p * COLS * m->col, m->col, (int)mgx_min_i64(left, COLS), values,
                     s->values);
}

bool mgx_chunk_turn(struct mgx_chunk_stripe *s, const struct mgx_chunk_matrix *m, int64_t p,
                    struct mgx_chunk_matrix *panel)
{
    const bool rows = m->col == 1 && is_dense(m);
    const int64_t values = rows ? m->valid : extent_of(m);
    if (!s || values < 1 || (!rows && m->col < values) ||
        !make_room(s, rows ? PANELS * pitch_of(values) : values))
        return false;
    if (s->of != m->b || p < s->first || p >= s->first + (rows ? PANELS : 1))
        fill(s, m, p, values, rows);
    *panel = *m;
    panel->b = s->values + (p - s->first) * pitch_of(values);
    panel->columns = mgx_min_i64(m->columns - p * COLS, COLS);
    panel->zero = m->zero ? m->zero + p * COLS : NULL;
    panel->col = 1;
    panel->row = rows ? COLS : m->row * COLS;
    for (int i = 0; i < 3; i++)
        panel->space[i] = m->space[i] * COLS;
    return true;
}

void mgx_chunk_stripe_free(struct mgx_chunk_stripe *s)
{
    free(s->values);
    *s = (struct mgx_chunk_stripe){.of = NULL};
}
