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

#include "targets/cpu/kernel/lookup.h"
#include "targets/cpu/kernel/requant_step.h"
#include "targets/cpu/kernel/tile.h"
#include "targets/cpu/kernel/tile_finish.h"

enum { ROWS = 8, HALF = 4, COLS = 8 };

typedef __m256i sums;

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

// --- the ends of a tile ---

SIMD char *row_at(char *const half[2], int64_t stride, int i)
{
    return half[i / HALF] + i % HALF * stride;
}

SIMD const char *in_row(const char *const half[2], int64_t stride, int i)
{
    return half[i / HALF] + i % HALF * stride;
}

SIMD vf load_cols(const float *p, int cols)
{
    return cols == COLS ? vf_load(p) : vf_load_some(p, cols);
}

SIMD void store_cols(char *to, int cols, vf v)
{
    if (cols == COLS)
        vf_store((float *)(void *)to, v);
    else
        vf_store_some((float *)(void *)to, v, cols);
}

SIMD void store_floats(int count, const struct mgx_tile_args *args, const vf v[ROWS])
{
    const int cols = args->cols;
    UNROLL
    for (int i = 0; i < count; i++) {
        vf x = v[i];
        if (args->residual[0])
            x = vf_add(x, load_cols((const float *)(const void *)in_row(args->residual,
                                                                        args->residual_row, i),
                                    cols));
        if (args->clamp)
            x = vf_min(vf_set(args->high), vf_max(vf_set(args->low), x));
        store_cols(row_at(args->c, args->c_row, i), cols, x);
    }
}

// Four rows of floats that are bytes but for rounding and `zero`, to four rows of eight bytes.
SIMD __m256i four_rows(const vf v[4], int to_zero, bool is_signed)
{
    const __m256i zero = _mm256_set1_epi16((short)to_zero);
    const __m256i x = _mm256_add_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])), zero);
    const __m256i y = _mm256_add_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3])), zero);
    const __m256i byte = is_signed ? _mm256_packs_epi16(x, y) : _mm256_packus_epi16(x, y);
    return _mm256_permutevar8x32_epi32(byte, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

SIMD vf floats_of(__m128i bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}

// Four rows through the table in the middle; see requant.h.
SIMD void through_middle(const struct mgx_requant *q, vf v[4])
{
    const __m256i rows = looked_up(q->middle, four_rows(v, -q->middle_low, false));
    const __m128i low = _mm256_castsi256_si128(rows), high = _mm256_extracti128_si256(rows, 1);
    const vf zero = vf_set((float)q->middle_zero);
    v[0] = vf_sub(floats_of(low), zero);
    v[1] = vf_sub(floats_of(_mm_srli_si128(low, 8)), zero);
    v[2] = vf_sub(floats_of(high), zero);
    v[3] = vf_sub(floats_of(_mm_srli_si128(high, 8)), zero);
}

SIMD void store_row(char *to, int64_t bytes, int cols)
{
    memcpy(to, &bytes, cols == COLS ? COLS : (size_t)cols);
}

SIMD vf load_bytes(const char *p, int cols, bool is_signed)
{
    int64_t bytes = 0;
    memcpy(&bytes, p, cols == COLS ? COLS : (size_t)cols);
    const __m128i b = _mm_cvtsi64_si128(bytes);
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

SIMD void second_step(int count, int cols, const struct mgx_tile_args *args, vf v[ROWS])
{
    const struct mgx_requant *q = args->requant;
    if (q->middle) {
        UNROLL
        for (int i = 0; i < count; i += 4)
            through_middle(q, v + i);
    } else if (q->rounds) {
        UNROLL
        for (int i = 0; i < count; i++)
            v[i] = vf_round(v[i]);
    }
    UNROLL
    for (int i = 0; i < count; i++) {
        vf residual = vf_zero();
        if (q->residual)
            residual =
                load_bytes(in_row(args->residual, args->residual_row, i), cols, q->residual_signed);
        v[i] = requant_second(q, v[i], residual);
    }
}

SIMD void store_bytes(int count, int cols, const struct mgx_tile_args *args, vf v[ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = 0; i < count; i++) {
        if (args->clamp)
            v[i] = vf_min(vf_set(args->high), vf_max(vf_set(args->low), v[i]));
        v[i] = requant_first(q, v[i]);
    }
    UNROLL
    for (int i = count; i < ROWS; i++)
        v[i] = vf_zero();
    if (mgx_requant_has_second(q))
        second_step(count, cols, args, v);
    if (q->floats) {
        UNROLL
        for (int i = 0; i < count; i++)
            store_cols(row_at(args->c, args->c_row, i), cols, requant_float(q, v[i]));
        return;
    }
    UNROLL
    for (int i = 0; i < count; i += 4) {
        __m256i rows = four_rows(v + i, q->zero, q->is_signed);
        rows = q->table ? looked_up(q->table, rows) : rows;
        const __m128i low = _mm256_castsi256_si128(rows), high = _mm256_extracti128_si256(rows, 1);
        store_row(row_at(args->c, args->c_row, i), _mm_cvtsi128_si64(low), cols);
        if (i + 1 < count)
            store_row(row_at(args->c, args->c_row, i + 1), _mm_extract_epi64(low, 1), cols);
        if (i + 2 < count)
            store_row(row_at(args->c, args->c_row, i + 2), _mm_cvtsi128_si64(high), cols);
        if (i + 3 < count)
            store_row(row_at(args->c, args->c_row, i + 3), _mm_extract_epi64(high, 1), cols);
    }
}

SIMD void store_sums(int count, const struct mgx_tile_args *args, const sums c[ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++)
        store_cols(row_at(args->c, args->c_row, i), args->cols, (vf)c[i]);
}

SIMD void tile(int count, const struct mgx_tile_args *args)
{
    assert(args->cols >= 1 && args->cols <= COLS && args->start);
    sums c[ROWS];
    vf v[ROWS];
    UNROLL
    for (int i = 0; i < count; i++)
        c[i] = _mm256_loadu_si256((const __m256i *)(const void *)args->start);
    sum_chunks(count, args, c);
    if (!args->scale) {
        store_sums(count, args, c);
        return;
    }
    const vf scale = load_cols(args->scale, args->cols);
    const vf bias = args->bias ? load_cols(args->bias, args->cols) : vf_zero();
    UNROLL
    for (int i = 0; i < count; i++)
        v[i] = vf_fma(_mm256_cvtepi32_ps(c[i]), scale, bias);
    if (!args->requant)
        store_floats(count, args, v);
    else if (args->cols == COLS)
        store_bytes(count, COLS, args, v);
    else
        store_bytes(count, args->cols, args, v);
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
