// SPDX-License-Identifier: MIT
// Rows of bytes beside vectors of floats: four vectors become four rows of bytes, one vector of
// them, and back. Kernels and ends of bytes are made of these.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "targets/cpu/kernel/vector/lookup.h"

enum { COLS = VL };

#if defined(__AVX512F__)
typedef __m512i sums;      // of COLS columns
typedef __m512i byte_rows; // of four rows of COLS columns, one behind the other
typedef __m128i byte_row;  // in the lower COLS bytes

SIMD sums sums_at(const void *p)
{
    return _mm512_loadu_si512(p);
}

// Four rows of floats that are bytes but for rounding and `zero`.
SIMD byte_rows four_rows(const vf v[4], int to_zero, bool is_signed)
{
    const __m512i zero = _mm512_set1_epi16((short)to_zero);
    const __m512i x = _mm512_adds_epi16(
        _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1])), zero);
    const __m512i y = _mm512_adds_epi16(
        _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3])), zero);
    const __m512i byte = is_signed ? _mm512_packs_epi16(x, y) : _mm512_packus_epi16(x, y);
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), byte);
}

// Row i, in the lower COLS bytes.
SIMD byte_row row_of(byte_rows four, int i)
{
    switch (i) {
    case 0:
        return _mm512_castsi512_si128(four);
    case 1:
        return _mm512_extracti32x4_epi32(four, 1);
    case 2:
        return _mm512_extracti32x4_epi32(four, 2);
    default:
        return _mm512_extracti32x4_epi32(four, 3);
    }
}

SIMD byte_row whole_row(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

SIMD void store_whole_row(char *to, byte_row row)
{
    _mm_storeu_si128((__m128i *)(void *)to, row);
}

SIMD void store_four_rows(char *to, byte_rows four)
{
    _mm512_storeu_si512(to, four);
}

SIMD void store_two_rows(char *to, byte_rows four, int i)
{
    const __m256i two = i == 0 ? _mm512_castsi512_si256(four) : _mm512_extracti64x4_epi64(four, 1);
    _mm256_storeu_si256((__m256i *)(void *)to, two);
}

// Whether `end_plainly` takes rows whose last vector is not whole.
enum { TAKES_PARTS = 1 };

SIMD byte_row part_of_row(const char *p, int cols)
{
    return _mm_maskz_loadu_epi8((__mmask16)((1u << cols) - 1), p);
}

// Row i of those of `nv` vectors.
SIMD void store_part_of_row(char *to, int nv, int cols, byte_rows four, int i)
{
    const __m256i two = i == 0 ? _mm512_castsi512_si256(four) : _mm512_extracti64x4_epi64(four, 1);
    if (nv == 2)
        _mm256_mask_storeu_epi8(to, ((__mmask32)1 << cols) - 1, two);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << cols) - 1), row_of(four, i));
}

SIMD vf floats_of(byte_row row, bool is_signed)
{
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(row) : _mm512_cvtepu8_epi32(row));
}
#elif defined(__AVX2__)
typedef __m256i sums;      // of COLS columns
typedef __m256i byte_rows; // of four rows of COLS columns, one behind the other
typedef __m128i byte_row;  // in the lower COLS bytes

SIMD sums sums_at(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

// Four rows of floats that are bytes but for rounding and `zero`.
SIMD byte_rows four_rows(const vf v[4], int to_zero, bool is_signed)
{
    const __m256i zero = _mm256_set1_epi16((short)to_zero);
    const __m256i x = _mm256_adds_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])), zero);
    const __m256i y = _mm256_adds_epi16(
        _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3])), zero);
    const __m256i byte = is_signed ? _mm256_packs_epi16(x, y) : _mm256_packus_epi16(x, y);
    return _mm256_permutevar8x32_epi32(byte, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Row i, in the lower COLS bytes.
SIMD byte_row row_of(byte_rows four, int i)
{
    const __m128i two = i < 2 ? _mm256_castsi256_si128(four) : _mm256_extracti128_si256(four, 1);
    return i % 2 ? _mm_unpackhi_epi64(two, two) : two;
}

SIMD byte_row whole_row(const char *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

SIMD void store_whole_row(char *to, byte_row row)
{
    _mm_storel_epi64((__m128i *)(void *)to, row);
}

SIMD void store_four_rows(char *to, byte_rows four)
{
    _mm256_storeu_si256((__m256i *)(void *)to, four);
}

SIMD void store_two_rows(char *to, byte_rows four, int i)
{
    const __m128i two = i == 0 ? _mm256_castsi256_si128(four) : _mm256_extracti128_si256(four, 1);
    _mm_storeu_si128((__m128i *)(void *)to, two);
}

enum { TAKES_PARTS = 0 };

SIMD byte_row part_of_row(const char *p, int cols)
{
    (void)cols;
    return whole_row(p);
}

SIMD void store_part_of_row(char *to, int nv, int cols, byte_rows four, int i)
{
    (void)to, (void)nv, (void)cols, (void)four, (void)i;
}

SIMD vf floats_of(byte_row row, bool is_signed)
{
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(row) : _mm256_cvtepu8_epi32(row));
}
#else
typedef struct {
    uint8_t byte[4 * COLS];
} byte_rows; // of four rows of COLS columns, one behind the other
typedef struct {
    uint8_t byte[COLS];
} byte_row;

// Four rows of floats that are bytes but for rounding and `zero`.
SIMD byte_rows four_rows(const vf v[4], int zero, bool is_signed)
{
    const int low = is_signed ? INT8_MIN : 0, high = low + 255;
    byte_rows four;
    for (int i = 0; i < 4 * COLS; i++) {
        const int x = (int)vf_round(v[i / COLS])[i % COLS] + zero;
        four.byte[i] = (uint8_t)(x < low ? low : x > high ? high : x);
    }
    return four;
}

SIMD byte_row row_of(byte_rows four, int i)
{
    byte_row row;
    memcpy(&row, four.byte + i * COLS, sizeof row);
    return row;
}

SIMD byte_row whole_row(const char *p)
{
    byte_row row;
    memcpy(&row, p, sizeof row);
    return row;
}

SIMD void store_whole_row(char *to, byte_row row)
{
    memcpy(to, &row, sizeof row);
}

SIMD void store_four_rows(char *to, byte_rows four)
{
    memcpy(to, &four, sizeof four);
}

SIMD vf floats_of(byte_row row, bool is_signed)
{
    vf v;
    for (int i = 0; i < COLS; i++)
        v[i] = is_signed ? (float)(int8_t)row.byte[i] : (float)row.byte[i];
    return v;
}

SIMD byte_rows looked_up(const uint8_t *table, byte_rows four)
{
    for (int i = 0; i < 4 * COLS; i++)
        four.byte[i] = table[four.byte[i]];
    return four;
}
#endif

SIMD byte_row some_of_row(const char *p, int cols)
{
    byte_row row = {0};
    if (cols == COLS)
        row = whole_row(p);
    else
        memcpy(&row, p, (size_t)cols);
    return row;
}

SIMD void store_some_of_row(char *to, byte_row row, int cols)
{
    if (cols == COLS)
        store_whole_row(to, row);
    else
        memcpy(to, &row, (size_t)cols);
}
