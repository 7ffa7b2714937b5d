// SPDX-License-Identifier: MIT
// Strips of the s8 micro-kernels: `strip` of tile.h, any number of rows of one panel of two vectors
// or one. Tiles end in registers (byte_ends.h). The including file is a kernel of tile_body.h, whose
// multiplication MAC and, with AVX-512, whose sums this uses too.
#pragma once

#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/byte_ends.h"
#include "targets/cpu/kernel/byte_strip.h"

// The sums of a tile, side by side in `c`.
#if defined(__AVX512F__)
// What a tile of a strip stores, and adds, is fetched row by row where its sums have time for it.
static inline struct fetch strip_fetch(int rows, int nv, const struct mgx_tile_args *args,
                                       const struct strip_at *at)
{
    const struct mgx_requant *q = args->requant;
    const bool deep = args->depth / 4 * args->tap_count >= rows;
    return (struct fetch){
        .c = at->c,
        .residual = at->residual,
        .c_bytes = nv * COLS * (q && !q->floats ? 1 : GROUP_BYTES),
        .residual_bytes = nv * COLS * (q && q->residual ? 1 : GROUP_BYTES),
        .left = deep ? rows : 0,
    };
}

// As many rows as tile_body.h has, and its loops, which bring what is read next along.
SIMD void sum_strip(int rows, int nv, const struct mgx_tile_args *args, const struct strip_at *at,
                    sums *c)
{
    struct mgx_tile_args own = *args;
    vf v[ROWS][NV];
    own.a[0] = at->a;
    own.a[1] = at->a + HALF * args->a_row;
    own.c[1] = at->c + HALF * args->c_row;
    own.residual[1] = at->residual ? at->residual + HALF * args->residual_row : NULL;
    own.ahead = at->ahead;
    own.ahead_step = at->step;
    start(rows, nv, &own, v);
    sum_taps(rows, nv, &own, strip_fetch(rows, nv, args, at), v);
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        c[i] = (sums)v[i / nv][i % nv];
}
#else
// One group of A.
SIMD __m256i group_at(const char *p)
{
    __m256i v;
    __asm__("vpbroadcastd %1, %0" : "=x"(v) : "m"(*(const struct { char c[4]; } *)p));
    return v;
}

SIMD void add_products(__m256i a, __m256i b, sums *c)
{
    sums here = *c;
    MAC(here, a, b);
    *c = here;
}

SIMD void sum_tap(int rows, int nv, int64_t step, int64_t depth, const char *a, const char **b,
                  sums *c)
{
    const char *base[2] = {a, a + HALF * step};
    __asm__("" : "+r"(base[1]));
    for (; depth > 0; depth--, *b += nv * COLS * GROUP_BYTES) {
        __m256i w[NV];
        UNROLL
        for (int j = 0; j < nv; j++)
            w[j] = sums_at(*b + j * COLS * GROUP_BYTES);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const __m256i x = group_at(base[i / HALF] + i % HALF * step);
            UNROLL
            for (int j = 0; j < nv; j++)
                add_products(x, w[j], &c[i * nv + j]);
        }
        base[0] += GROUP_BYTES;
        base[1] += GROUP_BYTES;
    }
}

SIMD void sum_strip(int rows, int nv, const struct mgx_tile_args *args, const struct strip_at *at,
                    sums *c)
{
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        c[i] = sums_at(args->start + i % nv * COLS);
    const char *b = args->b;
    for (int64_t t = 0; t < args->tap_count; t++)
        sum_tap(rows, nv, args->a_row, args->depth, at->a + args->taps[t], &b, c);
}
#endif

SIMD void run_tile(int rows, int nv, enum ending ending, const struct mgx_tile_args *args,
                   const struct strip_at *at)
{
    sums c[ROWS * NV];
    sum_strip(rows, nv, args, at, c);
    if (ending == ANY_END)
        end_rows_anyhow(rows, nv, args, at->c, at->residual, c);
    else if (ending == FLOAT_END)
        end_floats(rows, nv, args, at->c, at->residual, c);
    else
        end_plainly(rows, nv, ending, args, at->c, at->residual, c);
}

#if defined(__AVX512F__)
#define CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define CASES(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

SIMD void run_count(int64_t rows, int nv, enum ending ending, const struct mgx_tile_args *args,
                    const struct strip_at *at)
{
    switch (rows) {
#define CASE(count)                                                                                \
    case count:                                                                                    \
        run_tile(count, nv, ending, args, at);                                                     \
        break;
        CASES(CASE)
#undef CASE
    }
}

#if defined(__AVX512F__)
SIMD void run_strip(int nv, enum ending ending, const struct mgx_tile_args *args, int64_t rows)
{
    struct strip_at at = strip_start(args, rows, ROWS);
    strip_spread(args, &at, at.left);
    for (int64_t count; (count = strip_rows(&at)) > 0; strip_advance_spread(args, &at, count))
        run_count(count, nv, ending, args, &at);
}
#else
SIMD void run_strip(int nv, enum ending ending, const struct mgx_tile_args *args, int64_t rows)
{
    struct strip_at at = strip_start(args, rows, ROWS);
    for (int64_t count; (count = strip_next(args, &at)) > 0; strip_advance(args, &at, count))
        run_count(count, nv, ending, args, &at);
}
#endif

#define STRIP(name, nv, ending)                                                                    \
    static void name(const struct mgx_tile_args *args, int64_t rows)                               \
    {                                                                                              \
        run_strip(nv, ending, args, rows);                                                         \
    }

STRIP(any_1, 1, ANY_END)
STRIP(plain_1, 1, PLAIN_END)
STRIP(table_1, 1, TABLE_END)
STRIP(added_1, 1, ADDED_END)
STRIP(floats_1, 1, FLOAT_END)
STRIP(any_2, 2, ANY_END)
STRIP(plain_2, 2, PLAIN_END)
STRIP(table_2, 2, TABLE_END)
STRIP(added_2, 2, ADDED_END)
STRIP(floats_2, 2, FLOAT_END)

#if defined(__AVX512F__)
#include "targets/cpu/kernel/s8_late.h"
#endif

static void strip(const struct mgx_tile_args *args, int64_t rows)
{
    static void (*const strips[][ENDINGS])(const struct mgx_tile_args *, int64_t) = {
        {any_1, plain_1, table_1, added_1, floats_1},
        {any_2, plain_2, table_2, added_2, floats_2},
    };
    const int nv = (int)(args->b_row / (COLS * GROUP_BYTES));
    assert(nv >= 1 && nv <= NV && args->cols <= nv * COLS && args->start);
    const enum ending ending = ending_of(args, nv * COLS);
#if defined(__AVX512F__)
    if (nv == NV && args->cols == NV * COLS && ending != PLAIN_END &&
        suits_late(nv, ending, args, rows)) {
        (ending == TABLE_END ? late_table : late_added)(args, rows);
        return;
    }
#endif
    strips[nv - 1][ends_in_floats(args, nv * COLS) ? FLOAT_END : ending](args, rows);
}
