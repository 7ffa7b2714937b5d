// SPDX-License-Identifier: MIT
// s8 micro-kernels, AVX-512 with vpdpbusd: fours of unsigned by signed bytes, sums in int32; the
// body is tile_body.h. Strips end in registers.
enum { ROWS = 14, HALF = 7, NV = 2 };
#define INTEGER 1
#define MAC(c, a, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_14

#include "targets/cpu/kernel/tile/s8_strip.h"

const struct mgx_gemm_kernel mgx_s8_gemm_14x32__avx512_vnni = {
    .base = {"s8_gemm_14x32__avx512_vnni", .needs = MGX_ISA_AVX512_VNNI},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_U8,
    .b_type = MGX_KERNEL_S8,
    .group = 4,
    .integer = true,
    .starts = true,
    .strip = strip,
    .suits_pair = suits_pair,
    .pair = pair,
    OF_TILES_14,
};
