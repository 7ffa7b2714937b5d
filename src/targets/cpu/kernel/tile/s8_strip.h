// SPDX-License-Identifier: MIT
// Strips of the s8 micro-kernels: `strip` of tile.h, any number of rows of one panel of two vectors
// or one. Tiles of half the rows or more, which is what strips are cut into, end in registers
// (byte_ends.h), each in a function of its own: gcc takes twice the time for all of them in one.
// Short strips, and ends in general, leave their sums in L1 and end there (strip_ends.h). The
// including file is a kernel of tile_body.h with its tiles, whose multiplication MAC and, with
// AVX-512, whose sums this uses too.
#pragma once

#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/tile/byte_strip.h"
#include "targets/cpu/kernel/tile/strip_ends.h"

// The sums of a tile, side by side in `c`.
#if defined(__AVX512F__)
// What a tile of a strip stores, and adds, is fetched row by row where its sums have time for it.
static inline struct fetch strip_fetch(int rows, int nv, const struct mgx_tile_args *args,
                                       const struct strip_at *at)
{
    const bool deep = args->depth / 4 * args->tap_count >= rows;
    return (struct fetch){
        .c = at->c,
        .residual = at->residual,
        .c_bytes = nv * COLS * (int)stored_size(args),
        .residual_bytes = nv * COLS * (int)residual_size_of(args),
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

// --- a tile and its end ---

SIMD void run_tile(int rows, int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                   const struct strip_at *at)
{
    sums c[ROWS * NV];
    sum_strip(rows, nv, args, at, c);
    if (ending == MGX_END_FLOATS)
        end_floats(rows, nv, args, at->c, at->residual, c);
    else
        end_plainly(rows, nv, ending, args, at->c, at->residual, c);
}

// All numbers of rows, and those of tiles that end in registers.
#if defined(__AVX512F__)
#define LONG_CASES(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) LONG_CASES(X)
#else
#define LONG_CASES(X) X(3) X(4) X(5) X(6)
#define CASES(X) X(1) X(2) LONG_CASES(X)
#endif

typedef void (*strip_tile)(const struct mgx_tile_args *args, const struct strip_at *at);

#define STRIP_TILE(name, rows, nv, ending)                                                         \
    static void name##_##rows(const struct mgx_tile_args *args, const struct strip_at *at)         \
    {                                                                                              \
        run_tile(rows, nv, ending, args, at);                                                      \
    }

#define PLAIN_1(rows) STRIP_TILE(plain_1, rows, 1, MGX_END_PLAIN)
#define PLAIN_2(rows) STRIP_TILE(plain_2, rows, 2, MGX_END_PLAIN)
#define TABLE_2(rows) STRIP_TILE(table_2, rows, 2, MGX_END_LOOKUP)
#define ADDED_2(rows) STRIP_TILE(added_2, rows, 2, MGX_END_MIXED)
#define FLOATS_2(rows) STRIP_TILE(floats_2, rows, 2, MGX_END_FLOATS)
LONG_CASES(PLAIN_1)
LONG_CASES(PLAIN_2)
LONG_CASES(FLOATS_2)
#if !defined(SLOW_PRODUCTS) // beside which the way through L1 is little
LONG_CASES(TABLE_2)
LONG_CASES(ADDED_2)
#endif

// [vectors - 1][ending][rows]; none where tiles end in memory.
#define OF_PLAIN_1(rows) [rows] = plain_1_##rows,
#define OF_PLAIN_2(rows) [rows] = plain_2_##rows,
#define OF_TABLE_2(rows) [rows] = table_2_##rows,
#define OF_ADDED_2(rows) [rows] = added_2_##rows,
#define OF_FLOATS_2(rows) [rows] = floats_2_##rows,
static const strip_tile strip_tiles[][MGX_END_FORMS][ROWS + 1] = {
    {[MGX_END_PLAIN] = {LONG_CASES(OF_PLAIN_1)}},
    {
        [MGX_END_PLAIN] = {LONG_CASES(OF_PLAIN_2)},
        [MGX_END_FLOATS] = {LONG_CASES(OF_FLOATS_2)},
#if !defined(SLOW_PRODUCTS)
        [MGX_END_LOOKUP] = {LONG_CASES(OF_TABLE_2)},
        [MGX_END_MIXED] = {LONG_CASES(OF_ADDED_2)},
#endif
    },
};

#define WIDE(rows) [rows] = wide_##rows,
#define NARROW(rows) [rows] = narrow_##rows,
static const mgx_tile_fn tiles_of[][ROWS + 1] = {{CASES(NARROW)}, {CASES(WIDE)}};

// The sums of a tile go through L1; the lines that its end stores, and adds, come meanwhile.
static void run_in_memory(int rows, int nv, enum mgx_end_form ending,
                          const struct mgx_tile_args *args, const struct strip_at *at)
{
    _Alignas(64) sums c[ROWS * NV];
    struct mgx_tile_args own = *args;
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(at->c + i * args->c_row, 1, 3);
        if (at->residual)
            __builtin_prefetch(at->residual + i * args->residual_row, 0, 3);
    }
    own.a[0] = at->a;
    own.a[1] = at->a + HALF * args->a_row;
    own.c[0] = (char *)c;
    own.c[1] = (char *)(c + HALF * nv);
    own.c_row = nv * (int64_t)sizeof *c;
    own.residual[0] = own.residual[1] = NULL;
    own.bias = own.scale = NULL;
    own.clamp = false;
    own.cols = nv * COLS;
    own.ahead = at->ahead;
    own.ahead_step = at->step;
    tiles_of[nv - 1][rows](&own);
    ends[nv - 1][ending](rows, args, at->c, at->residual, c);
}

// `count` rows of a strip of `nv` vectors.
static inline void run_count(int64_t count, int nv, enum mgx_end_form ending,
                             const struct mgx_tile_args *args, const struct strip_at *at)
{
    const strip_tile in_registers = strip_tiles[nv - 1][ending][count];
    if (in_registers)
        in_registers(args, at);
    else
        run_in_memory((int)count, nv, ending, args, at);
}

static void run_strip(int nv, enum mgx_end_form ending, const struct mgx_tile_args *args,
                      int64_t rows)
{
    struct strip_at at = strip_start(args, rows, ROWS);
#if defined(__AVX512F__)
    strip_spread(args, &at, at.left);
    for (int64_t count; (count = strip_rows(&at)) > 0; strip_advance_spread(args, &at, count))
        run_count(count, nv, ending, args, &at);
#else
    for (int64_t count; (count = strip_next(args, &at)) > 0; strip_advance(args, &at, count))
        run_count(count, nv, ending, args, &at);
#endif
}

#if defined(__AVX512F__)
#include "targets/cpu/kernel/tile/s8_late.h"
#endif

static void strip(const struct mgx_tile_args *args, int64_t rows)
{
    const int nv = (int)(args->b_row / (COLS * GROUP_BYTES));
    assert(nv >= 1 && nv <= NV && args->cols <= nv * COLS && args->start);
    const enum mgx_end_form ending = ending_of(args, nv * COLS);
#if defined(__AVX512F__)
    if (nv == NV && args->cols == NV * COLS && ending != MGX_END_PLAIN &&
        suits_late(nv, ending, args, rows)) {
        (ending == MGX_END_LOOKUP ? late_table : late_added)(args, rows);
        return;
    }
#endif
    run_strip(nv, ends_in_floats(args, nv * COLS) ? MGX_END_FLOATS : ending, args, rows);
}
