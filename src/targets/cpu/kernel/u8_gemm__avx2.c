// SPDX-License-Identifier: MIT
// Micro-kernels over chunks (chunk.h), AVX2: unsigned bytes of A times signed ones of B, sums of
// pairs, or of pairs of pairs, in 16 bits, then in int32. Eight rows by eight columns in registers.
//
//     pair of chunks      2 vpbroadcastd  2 vpmaddubsw  vpaddw  vpmaddwd  vpaddd     for every row
//     chunk               1 vpbroadcastd  1 vpmaddubsw          vpmaddwd  vpaddd
//
// Zen 3 starts two multiplications and four instructions of vectors a cycle: eight rows take 13.7
// cycles for a pair (12 are the least), 8.3 for a single chunk. Wider tiles would share offsets
// among more columns, of which fewer then go together.
#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/byte_ends.h"
#include "targets/cpu/kernel/tile_finish.h"

// Four values of A, at any address.
SIMD __m256i group_at(const char *p)
{
    __m256i v;
    __asm__("vpbroadcastd %1, %0" : "=x"(v) : "m"(*(const struct { char c[4]; } *)p));
    return v;
}

SIMD __m256i weights_at(const char *p)
{
    return _mm256_load_si256((const __m256i *)(const void *)p);
}

// Sums are added to where they are: left to choose, the compiler moves them about.
SIMD void widen_and_add(__m256i halves, __m256i ones, sums *c)
{
    const __m256i wide = _mm256_madd_epi16(halves, ones);
    __asm__("vpaddd %1, %0, %0" : "+x"(*c) : "x"(wide));
}

// The address of every row in a register of its own: an offset is the index.
SIMD void start_rows(int count, const struct mgx_tile_args *args, const char *row[ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++) {
        row[i] = args->a[i / HALF] + i % HALF * args->a_row;
        __asm__("" : "+r"(row[i]));
    }
}

SIMD void sum_chunks(int count, const struct mgx_tile_args *args, sums c[ROWS])
{
    const __m256i ones = _mm256_set1_epi16(1);
    const char *row[ROWS], *b = args->b;
    const uint16_t *offset = args->offsets;
    start_rows(count, args, row);
    for (int64_t k = args->pairs; k > 0; k--, b += 64, offset += 2) {
        const __m256i first = weights_at(b), second = weights_at(b + 32);
        const uint64_t at = offset[0], also = offset[1];
        UNROLL
        for (int i = 0; i < count; i++) {
            const __m256i x = _mm256_maddubs_epi16(group_at(row[i] + at), first);
            const __m256i y = _mm256_maddubs_epi16(group_at(row[i] + also), second);
            widen_and_add(_mm256_add_epi16(x, y), ones, &c[i]);
        }
    }
    b = args->single_b;
    offset = args->single_offsets;
    for (int64_t k = args->singles; k > 0; k--, b += 32, offset++) {
        const __m256i weights = weights_at(b);
        const uint64_t at = *offset;
        UNROLL
        for (int i = 0; i < count; i++)
            widen_and_add(_mm256_maddubs_epi16(group_at(row[i] + at), weights), ones, &c[i]);
    }
}

// --- tiles ---

SIMD void tile(int count, const struct mgx_tile_args *args)
{
    assert(args->cols >= 1 && args->cols <= COLS && args->start);
    sums c[ROWS];
    UNROLL
    for (int i = 0; i < count; i++)
        c[i] = _mm256_loadu_si256((const __m256i *)(const void *)args->start);
    sum_chunks(count, args, c);
    end_tile(count, args, c);
}

#define TILE(count)                                                                                \
    static void wide_##count(const struct mgx_tile_args *args)                                     \
    {                                                                                              \
        tile(count, args);                                                                         \
    }

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)

static const mgx_tile_fn tiles[] = {NULL,   wide_1, wide_2, wide_3, wide_4,
                                    wide_5, wide_6, wide_7, wide_8};

// --- any number of rows ---

static void fetch(const struct mgx_tile_args *args)
{
    for (int64_t at = 0; at < args->ahead_step; at += 64)
        __builtin_prefetch(args->ahead + at, 0, 2);
}

static void strip(const struct mgx_tile_args *args, int64_t rows)
{
    struct mgx_tile_args own = *args;
    const int64_t count = (rows + ROWS - 1) / ROWS, least = rows / count, more = rows % count;
    for (int64_t i = 0, owed = 0; i < count; i++) { // as equal as can be
        owed += more;
        const int64_t here = least + (owed >= count);
        owed -= owed >= count ? count : 0;
        own.a[1] = own.a[0] + HALF * own.a_row;
        own.c[1] = own.c[0] + HALF * own.c_row;
        own.residual[1] = own.residual[0] ? own.residual[0] + HALF * own.residual_row : NULL;
        fetch(&own);
        tiles[here](&own);
        own.a[0] += here * own.a_row;
        own.c[0] += here * own.c_row;
        if (own.residual[0])
            own.residual[0] += here * own.residual_row;
        own.ahead += own.ahead_step;
    }
}

const struct mgx_gemm_kernel mgx_u8_gemm_8x8__avx2 = {
    .base = {"u8_gemm_8x8__avx2", .needs = MGX_ISA_AVX2},
    .type = MGX_KERNEL_U8,
    .a_type = MGX_KERNEL_U8,
    .b_type = MGX_KERNEL_S8,
    .group = 4,
    .integer = true,
    .starts = true,
    .rows = ROWS,
    .half = HALF,
    .cols = COLS,
    .vector = VL,
    .wide = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6, wide_7, wide_8},
    .narrow = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6, wide_7, wide_8},
    .strip = strip,
    .finish = finish,
};
