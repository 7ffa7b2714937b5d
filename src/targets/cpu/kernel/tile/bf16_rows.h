// SPDX-License-Identifier: MIT
// Rows of bf16 as vectors of floats, AVX-512 with BF16.
#pragma once

#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/kernel/vector/simd.h"

// n lanes; the others are 0.
SIMD vf load_bf16(const uint16_t *p, int n)
{
    const __m256i x = n == VL ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                              : _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// Rounds to nearest, ties to even; denormals become 0.
SIMD void store_bf16(uint16_t *p, vf x, int n)
{
    const __m256i y = (__m256i)_mm512_cvtneps_pbh(x);
    if (n == VL)
        _mm256_storeu_si256((__m256i *)(void *)p, y);
    else
        _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), y);
}
