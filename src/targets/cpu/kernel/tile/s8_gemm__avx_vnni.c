// SPDX-License-Identifier: MIT
// s8 micro-kernels, AVX2 with vpdpbusd: fours of unsigned by signed bytes, sums in int32; the body
// is tile_body.h. Strips end in registers.
//
//     four k     1 vpbroadcastd  2 vpdpbusd     for every row of 16 columns
enum { ROWS = 6, HALF = 3, NV = 2 };
#define INTEGER 1
#define MAC(c, a, b) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b))

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

#include "targets/cpu/kernel/tile/s8_strip.h"

const struct mgx_gemm_kernel mgx_s8_gemm_6x16__avx_vnni = {
    .base = {"s8_gemm_6x16__avx_vnni", .needs = MGX_ISA_AVX_VNNI},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_U8,
    .b_type = MGX_KERNEL_S8,
    .group = 4,
    .integer = true,
    .starts = true,
    .strip = strip,
    OF_TILES_6,
};
