// SPDX-License-Identifier: MIT
// f32 micro-kernels, AVX-512: 14 x 32 in 28 of the 32 registers; the body is tile_body.h.
enum { ROWS = 14, HALF = 7, NV = 2 };

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_14

const struct mgx_gemm_kernel mgx_f32_gemm_14x32__avx512 = {
    .base = {"f32_gemm_14x32__avx512", .needs = MGX_ISA_AVX512},
    .type = MGX_KERNEL_F32,
    .a_type = MGX_KERNEL_F32,
    .b_type = MGX_KERNEL_F32,
    .group = 1,
    .dot = dot,
    OF_TILES_14,
};
