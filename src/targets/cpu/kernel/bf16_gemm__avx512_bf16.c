// SPDX-License-Identifier: MIT
// bf16 micro-kernels, AVX-512 with vdpbf16ps: pairs of bf16, sums in f32; the body is tile_body.h.
enum { ROWS = 14, HALF = 7, NV = 2 };
#define MAC(c, a, b) c = _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b)

#include "targets/cpu/kernel/tile_body.h"

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)

const struct mgx_gemm_kernel mgx_bf16_gemm_14x32__avx512_bf16 = {
    .base = {"bf16_gemm_14x32__avx512_bf16", .needs = MGX_ISA_AVX512_BF16},
    .type = MGX_KERNEL_BF16,
    .a_type = MGX_KERNEL_BF16,
    .b_type = MGX_KERNEL_BF16,
    .group = 2,
    .rows = ROWS,
    .half = HALF,
    .cols = NV * VL,
    .vector = VL,
    .wide = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6, wide_7, wide_8, wide_9, wide_10,
             wide_11, wide_12, wide_13, wide_14},
    .narrow = {NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6, narrow_7, narrow_8,
               narrow_9, narrow_10, narrow_11, narrow_12, narrow_13, narrow_14},
    .few = {NULL, few_1, few_2},
    .few_panels = {0, 4, 2},
    .pack_transposed = pack_transposed,
    .finish = finish,
};
