// SPDX-License-Identifier: MIT
// How tiles of int32 sums end, AVX2: as they are, as floats, or as bytes (requant.h). Up to eight
// rows of eight columns in registers; rows from the fourth on lie in the second half. Shared by the
// kernels of bytes that end in registers.
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/lookup.h"
#include "targets/cpu/kernel/requant_step.h"
#include "targets/cpu/kernel/tile.h"

enum { ROWS = 8, HALF = 4, COLS = 8 };

typedef __m256i sums;

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

// Rows that are bytes but for rounding.
SIMD void store_rows(int count, int cols, const struct mgx_tile_args *args, vf v[ROWS])
{
    const struct mgx_requant *q = args->requant;
    UNROLL
    for (int i = count; i < ROWS; i++)
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
    store_rows(count, cols, args, v);
}

SIMD void store_sums(int count, const struct mgx_tile_args *args, const sums c[ROWS])
{
    UNROLL
    for (int i = 0; i < count; i++)
        store_cols(row_at(args->c, args->c_row, i), args->cols, (vf)c[i]);
}

// Finishes `count` rows of sums as the arguments say: all of c, residual, scale, bias, cols, clamp
// and requant.
SIMD void end_tile(int count, const struct mgx_tile_args *args, const sums c[ROWS])
{
    if (!args->scale) {
        store_sums(count, args, c);
        return;
    }
    vf v[ROWS];
    const vf scale = load_cols(args->scale, args->cols);
    const vf bias = args->bias ? load_cols(args->bias, args->cols) : vf_zero();
    UNROLL
    for (int i = 0; i < count; i++)
        v[i] = vf_fma(_mm256_cvtepi32_ps(c[i]), scale, bias);
    const struct mgx_requant *q = args->requant;
    if (!q)
        store_floats(count, args, v);
    else if (args->cols == COLS && q->saturates && !args->clamp)
        store_rows(count, COLS, args, v);
    else if (args->cols == COLS)
        store_bytes(count, COLS, args, v);
    else
        store_bytes(count, args->cols, args, v);
}
