// SPDX-License-Identifier: MIT
// s8 micro-kernels, vectors of 128 bits: bytes widened to pairs of int16, sums in int32; the body
// is tile_body.h.
enum { ROWS = 6, HALF = 3, NV = 2 };
#define INTEGER 1
#define MAC(c, a, b)                                                                               \
    const vi x = (vi)a, y = (vi)b;                                                                 \
    c = (vf)((vi)c + ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16))

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

const struct mgx_gemm_kernel mgx_s8_gemm_6x8__generic = {
    .base = {"s8_gemm_6x8__generic", .needs = MGX_ISA_GENERIC},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_S16,
    .b_type = MGX_KERNEL_S16,
    .group = 2,
    .integer = true,
    .starts = true,
    OF_TILES_6,
};
