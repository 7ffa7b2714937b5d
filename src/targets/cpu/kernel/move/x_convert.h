// SPDX-License-Identifier: MIT
// Body of the conversions, compiled once per instruction set; see convert.h. Loops are left to the
// compiler where it knows the instruction; half precision is spelled out.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

static uint16_t bf16_of(uint32_t bits)
{
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded >> 16);
}

static void bf16_f32(const void *from, void *to, int64_t n)
{
    const uint16_t *x = from;
    uint32_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint32_t)x[i] << 16;
}

static void f32_bf16(const void *from, void *to, int64_t n)
{
    const uint32_t *x = from;
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = bf16_of(x[i]);
}

#if defined(__F16C__)
static float half_up(uint16_t x)
{
    return _cvtsh_ss(x);
}

static uint16_t half_down(float x)
{
    return (uint16_t)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
#else
static float half_up(uint16_t x)
{
    return mgx_half_to_float(x);
}

static uint16_t half_down(float x)
{
    return mgx_half_from_double(x);
}
#endif

static void f16_f32(const void *from, void *to, int64_t n)
{
    const uint16_t *x = from;
    float *y = to;
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++)
        y[i] = half_up(x[i]);
}

static void f32_f16(const void *from, void *to, int64_t n)
{
    const float *x = from;
    uint16_t *y = to;
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        y[i] = half_down(x[i]);
}

static void f16_bf16(const void *from, void *to, int64_t n)
{
    const uint16_t *x = from;
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++) {
        const float value = half_up(x[i]);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        y[i] = bf16_of(bits);
    }
}

static void bf16_f16(const void *from, void *to, int64_t n)
{
    const uint16_t *x = from;
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        y[i] = half_down(value);
    }
}

static void s8_u8(const void *from, void *to, int64_t n)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] ^ 0x80;
}

static void s8_s16(const void *from, void *to, int64_t n)
{
    const int8_t *x = from;
    int16_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void u8_s16(const void *from, void *to, int64_t n)
{
    const uint8_t *x = from;
    int16_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void s8_f32(const void *from, void *to, int64_t n)
{
    const int8_t *x = from;
    float *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void u8_f32(const void *from, void *to, int64_t n)
{
    const uint8_t *x = from;
    float *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void f32_s32(const void *from, void *to, int64_t n)
{
    const float *x = from;
    int32_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (int32_t)x[i];
}

static void s32_f32(const void *from, void *to, int64_t n)
{
    const int32_t *x = from;
    float *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
}

static void f32_u8(const void *from, void *to, int64_t n)
{
    const float *x = from;
    uint8_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint8_t)(int)x[i];
}

static void f32_s8(const void *from, void *to, int64_t n)
{
    const float *x = from;
    int8_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (int8_t)(int)x[i];
}

const struct mgx_convert_kernel NAME(mgx_x_convert) = {
    KERNEL_BASE("x_convert"), .f16_f32 = f16_f32,   .f32_f16 = f32_f16,   .bf16_f32 = bf16_f32,
    .f32_bf16 = f32_bf16,     .f16_bf16 = f16_bf16, .bf16_f16 = bf16_f16, .s8_u8 = s8_u8,
    .s8_s16 = s8_s16,         .u8_s16 = u8_s16,     .s8_f32 = s8_f32,     .u8_f32 = u8_f32,
    .f32_s32 = f32_s32,       .s32_f32 = s32_f32,   .f32_u8 = f32_u8,     .f32_s8 = f32_s8,
};
