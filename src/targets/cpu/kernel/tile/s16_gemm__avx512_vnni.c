// SPDX-License-Identifier: MIT
// s8 micro-kernels for bytes of any kind and zero points on both sides, AVX-512 with vpdpwssd:
// bytes widened to pairs of int16, sums in int32; the body is tile_body.h. Strips end in registers.
// Half the pace of s8_gemm__avx512_vnni.c, which takes B of signed bytes without zero points.
enum { ROWS = 14, HALF = 7, NV = 2 };
#define INTEGER 1
#define SLOW_PRODUCTS 1
#define MAC(c, a, b) __asm__("vpdpwssd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_14

#include "targets/cpu/kernel/tile/s8_strip.h"

const struct mgx_gemm_kernel mgx_s16_gemm_14x32__avx512_vnni = {
    .base = {"s16_gemm_14x32__avx512_vnni", .needs = MGX_ISA_AVX512_VNNI},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_S16,
    .b_type = MGX_KERNEL_S16,
    .group = 2,
    .integer = true,
    .starts = true,
    .strip = strip,
    .suits_pair = suits_pair,
    .pair = pair,
    OF_TILES_14,
};
