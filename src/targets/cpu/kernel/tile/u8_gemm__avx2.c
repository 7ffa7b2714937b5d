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

#include "targets/cpu/kernel/tile/byte_ends.h"
#include "targets/cpu/kernel/tile/byte_strip.h"
#include "targets/cpu/kernel/tile/chunk.h"

enum { ROWS = END_ROWS, HALF = END_HALF };

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

// The address of every row in a register of its own: an offset is the index. Rows from the fourth
// on begin at `second`.
SIMD void start_rows(int count, const char *first, const char *second, int64_t step,
                     const char *row[ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++) {
        row[i] = (i < HALF ? first : second) + i % HALF * step;
        __asm__("" : "+r"(row[i]));
    }
}

// `ahead`: how far before they are multiplied weights are fetched; 0: they are there already.
SIMD void sum_chunks(int count, int ahead, const struct mgx_tile_args *args,
                     const char *const row[ROWS], sums c[ROWS])
{
    const __m256i ones = _mm256_set1_epi16(1);
    const char *b = args->b;
    const uint16_t *offset = args->chunks.offsets;
    UNROLL
    for (int i = 0; i < count; i++)
        c[i] = _mm256_loadu_si256((const __m256i *)(const void *)args->start);
    for (int64_t k = args->chunks.pairs; k > 0; k--, b += 64, offset += 2) {
        const __m256i first = weights_at(b), second = weights_at(b + 32);
        const uint64_t at = offset[0], also = offset[1];
        if (ahead)
            __builtin_prefetch(b + ahead, 0, 3);
        UNROLL
        for (int i = 0; i < count; i++) {
            const __m256i x = _mm256_maddubs_epi16(group_at(row[i] + at), first);
            const __m256i y = _mm256_maddubs_epi16(group_at(row[i] + also), second);
            widen_and_add(_mm256_add_epi16(x, y), ones, &c[i]);
        }
    }
    b = args->chunks.single_b;
    offset = args->chunks.single_offsets;
    for (int64_t k = args->chunks.singles; k > 0; k--, b += 32, offset++) {
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
    const char *row[ROWS];
    start_rows(count, args->a[0], args->a[1], args->a_row, row);
    sum_chunks(count, 0, args, row, c);
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

// --- one or two rows, many panels ---

// Memory, or L2, is what takes the time here, and setting up a panel as a tile as long as its
// product. Panels lie one behind the other and are read as one stream.
enum { FEW_PANELS = 16, FEW_AHEAD = 1024 };

// The arguments moved to panel p.
SIMD void set_few(const struct mgx_tile_args *args, int64_t most, int p, struct mgx_tile_args *own)
{
    const char *first = (const char *)args->chunks.offsets - sizeof(struct mgx_chunk_header);
    mgx_chunk_set(first + p * args->b_panel, most, own);
    own->start = (const int32_t *)(const void *)((const char *)args->start + p * args->start_panel);
    own->scale = args->scale ? args->scale + p * COLS : NULL;
    own->bias = args->bias ? args->bias + p * COLS : NULL;
    for (int i = 0; i < 2; i++) {
        own->c[i] = args->c[i] + p * COLS * (int)sizeof(float);
        own->residual[i] =
            args->residual[i] ? args->residual[i] + p * COLS * (int)sizeof(float) : NULL;
    }
}

SIMD void few_rows(int count, const struct mgx_tile_args *args)
{
    const int64_t most = args->chunks.single_offsets - args->chunks.offsets + args->chunks.singles;
    struct mgx_tile_args own = *args;
    const char *row[ROWS];
    own.cols = COLS;
    own.end.step = NULL;
    start_rows(count, args->a[0], args->a[1], args->a_row, row);
    for (int p = 0; p < FEW_PANELS; p++) {
        sums c[ROWS];
        set_few(args, most, p, &own);
        sum_chunks(count, FEW_AHEAD, &own, row, c);
        end_tile(count, &own, c);
    }
}

static void few_1(const struct mgx_tile_args *args)
{
    few_rows(1, args);
}

static void few_2(const struct mgx_tile_args *args)
{
    few_rows(2, args);
}

// --- any number of rows ---

static void run_any(int count, const struct mgx_tile_args *args, const struct strip_at *at)
{
    struct mgx_tile_args own = *args;
    own.a[0] = at->a;
    own.a[1] = at->a + HALF * args->a_row;
    own.c[0] = at->c;
    own.c[1] = at->c + HALF * args->c_row;
    own.residual[0] = at->residual;
    own.residual[1] = at->residual ? at->residual + HALF * args->residual_row : NULL;
    tiles[count](&own);
}

SIMD void run_tile(int count, enum mgx_end_form ending, const struct mgx_tile_args *args,
                   const struct strip_at *at)
{
    sums c[ROWS];
    const char *row[ROWS];
    start_rows(count, at->a, at->a + HALF * args->a_row, args->a_row, row);
    sum_chunks(count, 0, args, row, c);
    end_plainly(count, 1, ending, args, at->c, at->residual, c);
}

SIMD void run_count(int64_t count, enum mgx_end_form ending, const struct mgx_tile_args *args,
                    const struct strip_at *at)
{
    switch (ending == MGX_END_ANY ? 0 : count) {
    case 0:
        run_any((int)count, args, at);
        break;
    case 1:
        run_tile(1, ending, args, at);
        break;
    case 2:
        run_tile(2, ending, args, at);
        break;
    case 3:
        run_tile(3, ending, args, at);
        break;
    case 4:
        run_tile(4, ending, args, at);
        break;
    case 5:
        run_tile(5, ending, args, at);
        break;
    case 6:
        run_tile(6, ending, args, at);
        break;
    case 7:
        run_tile(7, ending, args, at);
        break;
    default:
        run_tile(8, ending, args, at);
    }
}

#define STRIP(name, ending)                                                                        \
    static void name(const struct mgx_tile_args *args, int64_t rows)                               \
    {                                                                                              \
        struct strip_at at = strip_start(args, rows, ROWS);                                        \
        for (int64_t count; (count = strip_next(args, &at)) > 0; strip_advance(args, &at, count))  \
            run_count(count, ending, args, &at);                                                   \
    }

STRIP(any, MGX_END_ANY)
STRIP(plain, MGX_END_PLAIN)
STRIP(table, MGX_END_LOOKUP)
STRIP(added, MGX_END_MIXED)

static void strip(const struct mgx_tile_args *args, int64_t rows)
{
    static void (*const strips[MGX_END_FORMS])(const struct mgx_tile_args *,
                                               int64_t) = {any, plain, table, added};
    strips[ending_of(args, COLS)](args, rows);
}

const struct mgx_gemm_kernel mgx_u8_gemm_8x8__avx2 = {
    .base = {"u8_gemm_8x8__avx2", .needs = MGX_ISA_AVX2},
    .type = MGX_KERNEL_U8,
    .chunks = true,
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
    .few = {NULL, few_1, few_2},
    .few_panels = {0, FEW_PANELS, FEW_PANELS},
};
