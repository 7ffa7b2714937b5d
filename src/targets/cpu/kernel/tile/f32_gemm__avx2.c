// SPDX-License-Identifier: MIT
// f32 micro-kernels, AVX2 and FMA: 6 x 16 in 12 of the 16 registers; the body is tile_body.h.
enum { ROWS = 6, HALF = 3, NV = 2 };

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

const struct mgx_gemm_kernel mgx_f32_gemm_6x16__avx2 = {
    .base = {"f32_gemm_6x16__avx2", .needs = MGX_ISA_AVX2},
    .type = MGX_KERNEL_F32,
    .a_type = MGX_KERNEL_F32,
    .b_type = MGX_KERNEL_F32,
    .group = 1,
    .dot = dot,
    OF_TILES_6,
};
