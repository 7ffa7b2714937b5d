// SPDX-License-Identifier: MIT
// f32 micro-kernels for wide panels, AVX-512: 6 x 64 in 24 of the 32 registers, four for a row of
// the panel; the body is tile_body.h. Ten reads for 24 multiplications where 14 x 32 takes 16 for
// 28, and twice as much of the panel for each: where L2 gives that, products of many rows are up to
// a tenth faster (docs/cpu.md).
enum { ROWS = 6, HALF = 3, NV = 4 };

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

const struct mgx_gemm_kernel mgx_f32_gemm_6x64__avx512 = {
    .base = {"f32_gemm_6x64__avx512", .needs = MGX_ISA_AVX512},
    .type = MGX_KERNEL_F32,
    .a_type = MGX_KERNEL_F32,
    .b_type = MGX_KERNEL_F32,
    .group = 1,
    .dot = dot,
    OF_TILES_6,
};
