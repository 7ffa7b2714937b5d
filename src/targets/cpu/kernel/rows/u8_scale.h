// SPDX-License-Identifier: MIT
// Body of byte_scale.h, compiled once per instruction set: a vector of columns at a time.
// Signed bytes are unsigned ones, 128 larger, with a zero point 128 larger.
#include <string.h>

#include "targets/cpu/kernel/rows/byte_scale.h"
#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

// What bytes of a row are shifted and multiplied by: one for all of them, or one each.
struct numbers {
    const float *factor, *shift;
    bool one;
};

struct step {
    uint8_t x_flip, y_flip;
    float x_zero, x_scale, y_scale, y_zero;
};

// --- n <= VL bytes; values that are stored are whole and of a byte ---

#if defined(__AVX512F__) && defined(__AVX512VL__)
SIMD vf load_bytes(const uint8_t *p, int n, uint8_t flip)
{
    const __m128i x = n == VL ? _mm_loadu_si128((const __m128i *)(const void *)p)
                              : _mm_maskz_loadu_epi8(first_lanes(n), p);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_xor_si128(x, _mm_set1_epi8((char)flip))));
}

SIMD void store_bytes(uint8_t *p, int n, vf v, uint8_t flip)
{
    const __m128i y =
        _mm_xor_si128(_mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)), _mm_set1_epi8((char)flip));
    if (n == VL)
        _mm_storeu_si128((__m128i *)(void *)p, y);
    else
        _mm_mask_storeu_epi8(p, first_lanes(n), y);
}
#elif defined(__AVX2__)
SIMD vf load_bytes(const uint8_t *p, int n, uint8_t flip)
{
    __m128i x = _mm_setzero_si128();
    memcpy(&x, p, (size_t)n);
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_xor_si128(x, _mm_set1_epi8((char)flip))));
}

SIMD void store_bytes(uint8_t *p, int n, vf v, uint8_t flip)
{
    const __m256i x = _mm256_cvtps_epi32(v);
    const __m128i pairs =
        _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    const __m128i y = _mm_xor_si128(_mm_packus_epi16(pairs, pairs), _mm_set1_epi8((char)flip));
    memcpy(p, &y, (size_t)n);
}
#else
SIMD vf load_bytes(const uint8_t *p, int n, uint8_t flip)
{
    float v[VL] = {0};
    for (int k = 0; k < n; k++)
        v[k] = (float)(uint8_t)(p[k] ^ flip);
    return vf_load(v);
}

SIMD void store_bytes(uint8_t *p, int n, vf v, uint8_t flip)
{
    float y[VL];
    vf_store(y, v);
    for (int k = 0; k < n; k++)
        p[k] = (uint8_t)((uint8_t)(int)y[k] ^ flip);
}
#endif

// Numbers of n columns.
SIMD vf numbers(const float *p, bool one, int n)
{
    return one ? vf_set(*p) : n < VL ? vf_load_some(p, n) : vf_load(p);
}

// n <= VL columns from j on.
SIMD void some(const struct step *s, const uint8_t *x, const struct numbers *by, uint8_t *y,
               int64_t j, int n)
{
    const int64_t at = by->one ? 0 : j;
    vf value = vf_sub(load_bytes(x + j, n, s->x_flip), vf_set(s->x_zero));
    value = vf_mul(value, vf_set(s->x_scale));
    if (by->shift)
        value = vf_sub(value, numbers(by->shift + at, by->one, n));
    value = vf_mul(numbers(by->factor + at, by->one, n), value);
    const vf r = vf_add(vf_round(vf_div(value, vf_set(s->y_scale))), vf_set(s->y_zero));
    store_bytes(y + j, n, vf_min(vf_set(255), vf_max(r, vf_zero())), s->y_flip); // of NaN 0
}

SIMD void rows(const struct step *s, const struct mgx_byte_scale_args *a, bool shifts, bool one)
{
    const struct step own = *s; // which nothing that is stored can change
    const uint8_t *x = a->x;
    uint8_t *y = a->y;
    struct numbers by = {a->factor, shifts ? a->shift : NULL, one};
    for (int64_t i = 0; i < a->rows; i++, x += a->x_row, y += a->y_row) {
        int64_t j = 0;
        for (; j + VL <= a->cols; j += VL)
            some(&own, x, &by, y, j, VL);
        if (j < a->cols)
            some(&own, x, &by, y, j, (int)(a->cols - j));
        by.factor += a->factor_row;
        by.shift += shifts ? a->shift_row : 0;
    }
}

static void byte_scale(const struct mgx_byte_scale *s, const struct mgx_byte_scale_args *a)
{
    const struct step step = {.x_flip = s->x_signed ? 0x80 : 0,
                              .y_flip = s->y_signed ? 0x80 : 0,
                              .x_zero = (float)(s->x_zero + (s->x_signed ? 128 : 0)),
                              .x_scale = s->x_scale,
                              .y_scale = s->y_scale,
                              .y_zero = (float)(s->y_zero + (s->y_signed ? 128 : 0))};
    if (a->shift && a->one_factor)
        rows(&step, a, true, true);
    else if (a->shift)
        rows(&step, a, true, false);
    else if (a->one_factor)
        rows(&step, a, false, true);
    else
        rows(&step, a, false, false);
}

const struct mgx_byte_scale_kernel NAME(mgx_u8_scale) = {KERNEL_BASE("u8_scale"), byte_scale};
