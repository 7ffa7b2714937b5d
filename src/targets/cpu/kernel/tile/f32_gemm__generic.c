// SPDX-License-Identifier: MIT
// f32 micro-kernels, vectors of 128 bits: 6 x 8; the body is tile_body.h.
enum { ROWS = 6, HALF = 3, NV = 2 };

#include "targets/cpu/kernel/tile/tile_body.h"

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)

const struct mgx_gemm_kernel mgx_f32_gemm_6x8__generic = {
    .base = {"f32_gemm_6x8__generic", .needs = MGX_ISA_GENERIC},
    .type = MGX_KERNEL_F32,
    .a_type = MGX_KERNEL_F32,
    .b_type = MGX_KERNEL_F32,
    .group = 1,
    .rows = ROWS,
    .half = HALF,
    .cols = NV * VL,
    .vector = VL,
    .wide = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6},
    .narrow = {NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6},
    OF_FEW,
    .dot = dot,
    .pack_transposed = pack_transposed,
};
