// SPDX-License-Identifier: MIT
// Rows of bf16 as vectors of floats, AVX-512 with BF16, and the end of a tile in scratch: `round`
// of tile.h.
#pragma once

#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/kernel/vector/vmath.h"

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

SIMD void round_rows(enum mgx_act act, const float *c, int64_t stride, int rows, int cols,
                     const struct mgx_epilogue *e, uint16_t *to, int64_t to_stride)
{
    const vf b = vf_set(e ? e->b : 0), a = vf_set(e ? e->a : 0);
    for (int i = 0; i < rows; i++, c += stride, to += to_stride)
        for (int j = 0; j < cols; j += VL) {
            const int n = cols - j < VL ? cols - j : VL;
            const vf x = n == VL ? vf_load(c + j) : vf_load_some(c + j, n);
            const vf slope = e && e->a_column ? vf_load_some(e->a_column + j, n) : a;
            store_bf16(to + j, vf_act(act, x, slope, b), n);
        }
}

static void round_tile(const float *c, int64_t stride, int rows, int cols,
                       const struct mgx_epilogue *e, uint16_t *to, int64_t to_stride)
{
    switch (e ? e->act : MGX_ACT_NONE) {
#define X(name, text, meaning)                                                                     \
    case name:                                                                                     \
        round_rows(name, c, stride, rows, cols, e, to, to_stride);                                 \
        break;
        MGX_ACT_LIST(X)
#undef X
    case MGX_ACT_COUNT:
        break;
    }
}
