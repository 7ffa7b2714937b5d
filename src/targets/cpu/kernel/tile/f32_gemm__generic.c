// SPDX-License-Identifier: MIT
// f32 micro-kernels, vectors of 128 bits: 6 x 8; the body is tile_body.h.
enum { ROWS = 6, HALF = 3, NV = 2 };

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

const struct mgx_gemm_kernel mgx_f32_gemm_6x8__generic = {
    .base = {"f32_gemm_6x8__generic", .needs = MGX_ISA_GENERIC},
    .type = MGX_KERNEL_F32,
    .a_type = MGX_KERNEL_F32,
    .b_type = MGX_KERNEL_F32,
    .group = 1,
    .dot = dot,
    OF_TILES_6,
};
