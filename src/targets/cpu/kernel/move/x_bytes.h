// SPDX-License-Identifier: MIT
// Body of bytes.h, compiled once per instruction set. On AVX2 a table costs some 20 cycles for 32
// bytes, with AVX-512 some 10 for 64; planes of three channels a cycle for four pixels.
#include "targets/cpu/kernel/move/bytes.h"

#include <stddef.h>
#include <string.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

#if defined(__AVX2__)
#include "targets/cpu/kernel/vector/lookup.h"
#endif

#if defined(__AVX512F__) && defined(__AVX512VL__)
static void look_up_row(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t count)
{
    int64_t i = 0;
    for (; i + 64 <= count; i += 64)
        _mm512_storeu_si512(to + i, looked_up(table, _mm512_loadu_si512(from + i)));
    const __mmask64 left = ((__mmask64)1 << (count - i)) - 1;
    if (left)
        _mm512_mask_storeu_epi8(to + i, left,
                                looked_up(table, _mm512_maskz_loadu_epi8(left, from + i)));
}

SIMD __m256i half_at(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

SIMD __m256i quarters_at(const uint8_t *p, int64_t row)
{
    return _mm256_loadu2_m128i((const __m128i *)(const void *)(p + row),
                               (const __m128i *)(const void *)p);
}

// Short rows together: two of 32 bytes, or four of 16. How many are done.
static int64_t look_up_together(const uint8_t *table, const uint8_t *from, int64_t from_row,
                                uint8_t *to, int64_t to_row, int64_t rows, int64_t cols)
{
    int64_t i = 0;
    for (; cols == 32 && i + 2 <= rows; i += 2, from += 2 * from_row, to += 2 * to_row) {
        const __m512i v = looked_up(table, _mm512_inserti64x4(_mm512_castsi256_si512(half_at(from)),
                                                              half_at(from + from_row), 1));
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(v));
        _mm256_storeu_si256((__m256i *)(void *)(to + to_row), _mm512_extracti64x4_epi64(v, 1));
    }
    for (; cols == 16 && i + 4 <= rows; i += 4, from += 4 * from_row, to += 4 * to_row) {
        const __m512i v =
            looked_up(table, _mm512_inserti64x4(_mm512_castsi256_si512(quarters_at(from, from_row)),
                                                quarters_at(from + 2 * from_row, from_row), 1));
        _mm256_storeu2_m128i((__m128i *)(void *)(to + to_row), (__m128i *)(void *)to,
                             _mm512_castsi512_si256(v));
        _mm256_storeu2_m128i((__m128i *)(void *)(to + 3 * to_row),
                             (__m128i *)(void *)(to + 2 * to_row), _mm512_extracti64x4_epi64(v, 1));
    }
    return i;
}
#else
static void look_up_row(const uint8_t *table, const uint8_t *from, uint8_t *to, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 32 <= count; i += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), looked_up(table, v));
    }
#endif
    for (; i < count; i++)
        to[i] = table[from[i]];
}

// Short rows together: two of 16 bytes. How many are done.
#if defined(__AVX2__)
SIMD void look_up_two(const uint8_t *table, const uint8_t *from, int64_t from_row, uint8_t *to,
                      int64_t to_row)
{
    const __m256i v =
        looked_up(table, _mm256_loadu2_m128i((const __m128i *)(const void *)(from + from_row),
                                             (const __m128i *)(const void *)from));
    _mm256_storeu2_m128i((__m128i *)(void *)(to + to_row), (__m128i *)(void *)to, v);
}
#endif

static int64_t look_up_together(const uint8_t *table, const uint8_t *from, int64_t from_row,
                                uint8_t *to, int64_t to_row, int64_t rows, int64_t cols)
{
    int64_t i = 0;
#if defined(__AVX2__)
    for (; cols == 16 && i + 2 <= rows; i += 2)
        look_up_two(table, from + i * from_row, from_row, to + i * to_row, to_row);
#else
    (void)table, (void)from, (void)from_row, (void)to, (void)to_row, (void)rows, (void)cols;
#endif
    return i;
}
#endif

static void look_up(const uint8_t table[256], const uint8_t *from, int64_t from_row, uint8_t *to,
                    int64_t to_row, int64_t rows, int64_t cols)
{
    if (from_row == cols && to_row == cols) {
        look_up_row(table, from, to, rows * cols);
        return;
    }
    int64_t i = look_up_together(table, from, from_row, to, to_row, rows, cols);
    for (; i < rows; i++)
        look_up_row(table, from + i * from_row, to + i * to_row, cols);
}

// Pixels [begin, pixels) of four planes, of which `count` are there.
static void groups_of(const uint8_t *const from[4], int count, uint8_t *to, int64_t pixel,
                      int64_t begin, int64_t pixels, uint8_t flip)
{
    for (int64_t i = begin; i < pixels; i++) {
        uint8_t group[4];
        for (int c = 0; c < 4; c++)
            group[c] = (uint8_t)((c < count ? from[c][i] : 0) ^ flip);
        memcpy(to + i * pixel, group, 4);
    }
}

#if defined(__SSE2__)
#include <emmintrin.h>

SIMD void store_groups(uint8_t *to, int64_t pixel, __m128i v)
{
    if (pixel == 4) {
        _mm_storeu_si128((__m128i *)(void *)to, v);
        return;
    }
    for (int i = 0; i < 4; i++) {
        const int group = _mm_cvtsi128_si32(v);
        memcpy(to + i * pixel, &group, 4);
        v = _mm_srli_si128(v, 4);
    }
}

// The same, 16 pixels at a time; returns how many are done.
static int64_t many_groups(const uint8_t *const from[4], int count, uint8_t *to, int64_t pixel,
                           int64_t pixels, uint8_t flip)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    int64_t i = 0;
    for (; i + 16 <= pixels; i += 16) {
        __m128i v[4];
        for (int c = 0; c < 4; c++)
            v[c] = c < count
                       ? _mm_xor_si128(
                             flips, _mm_loadu_si128((const __m128i *)(const void *)(from[c] + i)))
                       : flips;
        const __m128i a = _mm_unpacklo_epi8(v[0], v[1]), b = _mm_unpacklo_epi8(v[2], v[3]),
                      c = _mm_unpackhi_epi8(v[0], v[1]), d = _mm_unpackhi_epi8(v[2], v[3]);
        store_groups(to + i * pixel, pixel, _mm_unpacklo_epi16(a, b));
        store_groups(to + (i + 4) * pixel, pixel, _mm_unpackhi_epi16(a, b));
        store_groups(to + (i + 8) * pixel, pixel, _mm_unpacklo_epi16(c, d));
        store_groups(to + (i + 12) * pixel, pixel, _mm_unpackhi_epi16(c, d));
    }
    return i;
}
#else
static int64_t many_groups(const uint8_t *const from[4], int count, uint8_t *to, int64_t pixel,
                           int64_t pixels, uint8_t flip)
{
    (void)from, (void)count, (void)to, (void)pixel, (void)pixels, (void)flip;
    return 0;
}
#endif

static void interleave(const uint8_t *from, int64_t plane, uint8_t *to, int64_t pixel,
                       int64_t pixels, int64_t channels, uint8_t flip)
{
    for (int64_t c = 0; c < channels; c += 4, from += 4 * plane, to += 4) {
        const int count = channels - c < 4 ? (int)(channels - c) : 4;
        const uint8_t *const planes[4] = {from, count > 1 ? from + plane : NULL,
                                          count > 2 ? from + 2 * plane : NULL,
                                          count > 3 ? from + 3 * plane : NULL};
        const int64_t done = many_groups(planes, count, to, pixel, pixels, flip);
        groups_of(planes, count, to, pixel, done, pixels, flip);
    }
}

const struct mgx_bytes_kernel NAME(mgx_x_bytes) = {KERNEL_BASE("x_bytes"), look_up, interleave};
