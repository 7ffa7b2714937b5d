// SPDX-License-Identifier: MIT
// bf16 micro-kernels, AVX-512 with vdpbf16ps: pairs of bf16, sums in f32; the body is tile_body.h.
enum { ROWS = 14, HALF = 7, NV = 2 };
#define NARROWS 1
#define MAC(c, a, b) c = _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b)

#include "targets/cpu/kernel/tile/bf16_rows.h"
#include "targets/cpu/kernel/tile/tile_body.h"

TILES_14

const struct mgx_gemm_kernel mgx_bf16_gemm_14x32__avx512_bf16 = {
    .base = {"bf16_gemm_14x32__avx512_bf16", .needs = MGX_ISA_AVX512_BF16},
    .type = MGX_KERNEL_BF16,
    .a_type = MGX_KERNEL_BF16,
    .b_type = MGX_KERNEL_BF16,
    .group = 2,
    .narrows = true,
    OF_TILES_14,
};
