// SPDX-License-Identifier: MIT
// How tiles of int32 sums end, AVX2: as they are, as floats, or as bytes (requant.h). Up to eight
// rows of eight columns in registers; rows from the fourth on lie in the second half. Shared by the
// kernels of bytes that end in registers. What most tiles of a network want, bytes of whole vectors,
// with or without a residual, is `end_plainly`: some 15 cycles for 64 values, 25 with a residual.
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/lookup.h"
#include "targets/cpu/kernel/requant_step.h"
#include "targets/cpu/kernel/tile.h"

enum { END_ROWS = 8, END_HALF = 4, COLS = 8 };

typedef __m256i sums;

SIMD char *row_at(char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
}

SIMD const char *residual_row(const char *const half[2], int64_t stride, int i)
{
    return half[i / END_HALF] + i % END_HALF * stride;
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

SIMD void store_floats(int count, const struct mgx_tile_args *args, const vf v[END_ROWS])
{
    const int cols = args->cols;
    UNROLL
    for (int i = 0; i < count; i++) {
        vf x = v[i];
        if (args->residual[0])
            x = vf_add(x, load_cols((const float *)(const void *)residual_row(
                                        args->residual, args->residual_row, i),
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
    const __m256i x = _mm256_adds_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])), zero);
    const __m256i y = _mm256_adds_epi16(
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

SIMD void second_step(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
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
            residual = load_bytes(residual_row(args->residual, args->residual_row, i), cols,
                                  q->residual_signed);
        v[i] = requant_second(q, v[i], residual);
    }
}

// Rows that are bytes but for rounding.
SIMD void store_byte_rows(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = count; i < END_ROWS; i++)
        v[i] = vf_zero();
    UNROLL
    for (int i = 0; i < count; i += 4) {
        __m256i rows = four_rows(v + i, q->zero, q->is_signed);
        if (q->table)
            rows = looked_up(q->table, rows);
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

SIMD void store_bytes(int count, int cols, const struct mgx_tile_args *args, vf v[END_ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = 0; i < count; i++) {
        if (args->clamp)
            v[i] = vf_min(vf_set(args->high), vf_max(vf_set(args->low), v[i]));
        v[i] = requant_first(q, v[i]);
    }
    UNROLL
    for (int i = count; i < END_ROWS; i++)
        v[i] = vf_zero();
    if (mgx_requant_has_second(q))
        second_step(count, cols, args, v);
    if (q->floats) {
        UNROLL
        for (int i = 0; i < count; i++)
            store_cols(row_at(args->c, args->c_row, i), cols, requant_float(q, v[i]));
        return;
    }
    store_byte_rows(count, cols, args, v);
}

SIMD void store_sums(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++)
        store_cols(row_at(args->c, args->c_row, i), args->cols, (vf)c[i]);
}

// Finishes `count` rows of sums as the arguments say: all of c, residual, scale, bias, cols, clamp
// and requant.
SIMD void end_tile(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    if (!args->scale) {
        store_sums(count, args, c);
        return;
    }
    vf v[END_ROWS];
    const vf scale = load_cols(args->scale, args->cols);
    const vf bias = args->bias ? load_cols(args->bias, args->cols) : vf_zero();
    UNROLL
    for (int i = 0; i < count; i++)
        v[i] = vf_fma(_mm256_cvtepi32_ps(c[i]), scale, bias);
    const struct mgx_requant *q = args->requant;
    if (!q)
        store_floats(count, args, v);
    else if (args->cols == COLS && q->saturates && !args->clamp)
        store_byte_rows(count, COLS, args, v);
    else if (args->cols == COLS)
        store_bytes(count, COLS, args, v);
    else
        store_bytes(count, args->cols, args, v);
}

// --- what most strips want ---

// How the tiles of a strip end, which is the same for all of them.
enum ending {
    ANY_END,   // as end_tile has it
    PLAIN_END, // bytes of whole vectors, without a step but rounding and saturation
    TABLE_END, // the same through a table
    ADDED_END, // the same with a residual
    ENDINGS
};

enum { MOST_VECTORS = 12 };

static inline enum ending ending_of(const struct mgx_tile_args *args, int cols)
{
    const struct mgx_requant *q = args->requant;
    if (!args->scale || !q || args->cols != cols || args->clamp || q->divisor != 1 || q->middle ||
        q->floats)
        return ANY_END;
    if (!q->residual)
        return !q->saturates ? ANY_END : q->table ? TABLE_END : PLAIN_END;
    return q->rounds && q->saturates_last && !q->table ? ADDED_END : ANY_END;
}

SIMD vf residual_at(const char *p, bool is_signed)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

// Adds the residual to rows of `nv` vectors that are bytes but for rounding.
SIMD void add_residual(int rows, int nv, bool is_signed, const struct mgx_tile_args *args,
                       const char *residual, vf *v)
{
    const struct mgx_requant *q = args->requant;
    const vf low = vf_set(q->low), high = vf_set(q->high), keep = vf_set(q->keep),
             share = vf_set(q->share), zero = vf_set((float)q->residual_zero);
    const int64_t step = args->residual_row;
    UNROLL
    for (int i = 0; i < rows * nv; i++) {
        const vf x = vf_round(vf_min(high, vf_max(v[i], low)));
        const vf other = residual_at(residual + i / nv * step + i % nv * COLS, is_signed);
        v[i] = vf_fma(vf_sub(other, zero), share, vf_mul(x, keep));
    }
}

// Four vectors of bytes in one, to the rows that have them.
SIMD void store_plainly(int rows, int nv, char *to, int64_t step, __m256i bytes)
{
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    if (nv == 2) {
        _mm_storeu_si128((__m128i *)(void *)to, low);
        if (rows > 1)
            _mm_storeu_si128((__m128i *)(void *)(to + step), high);
        return;
    }
    _mm_storel_pi((__m64 *)(void *)to, (__m128)low);
    if (rows > 1)
        _mm_storeh_pi((__m64 *)(void *)(to + step), (__m128)low);
    if (rows > 2)
        _mm_storel_pi((__m64 *)(void *)(to + 2 * step), (__m128)high);
    if (rows > 3)
        _mm_storeh_pi((__m64 *)(void *)(to + 3 * step), (__m128)high);
}

// Finishes rows of `nv` vectors of sums, side by side in `c`, as `ending` says.
SIMD void end_plainly(int rows, int nv, enum ending ending, const struct mgx_tile_args *args,
                      char *to, const char *residual, const sums *c)
{
    const struct mgx_requant *q = args->requant;
    vf v[MOST_VECTORS];
    UNROLL
    for (int j = 0; j < nv; j++) {
        const vf scale = vf_load(args->scale + j * COLS),
                 bias = args->bias ? vf_load(args->bias + j * COLS) : vf_zero();
        UNROLL
        for (int i = j; i < rows * nv; i += nv)
            v[i] = vf_fma(_mm256_cvtepi32_ps(c[i]), scale, bias);
    }
    UNROLL
    for (int i = rows * nv; i % 4; i++)
        v[i] = vf_zero();
    if (ending == ADDED_END && q->residual_signed)
        add_residual(rows, nv, true, args, residual, v);
    else if (ending == ADDED_END)
        add_residual(rows, nv, false, args, residual, v);
    const int64_t step = args->c_row;
    UNROLL
    for (int i = 0; i < rows; i += 4 / nv) {
        const __m256i bytes = four_rows(v + i * nv, q->zero, q->is_signed);
        store_plainly(rows - i, nv, to + i * step, step,
                      ending == TABLE_END ? looked_up(q->table, bytes) : bytes);
    }
}
