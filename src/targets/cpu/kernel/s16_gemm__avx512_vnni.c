// SPDX-License-Identifier: MIT
// s8 micro-kernels for bytes of any kind and zero points on both sides, AVX-512 with vpdpwssd: bytes
// widened to pairs of int16, sums in int32; the body is tile_body.h. Strips end in registers. Half
// the pace of s8_gemm__avx512_vnni.c, which takes B of signed bytes without zero points.
enum { ROWS = 14, HALF = 7, NV = 2 };
#define INTEGER 1
#define MAC(c, a, b) __asm__("vpdpwssd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))

#include "targets/cpu/kernel/tile_body.h"

#include "targets/cpu/kernel/s8_strip.h"

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)

const struct mgx_gemm_kernel mgx_s16_gemm_14x32__avx512_vnni = {
    .base = {"s16_gemm_14x32__avx512_vnni", .needs = MGX_ISA_AVX512_VNNI},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_S16,
    .b_type = MGX_KERNEL_S16,
    .group = 2,
    .integer = true,
    .starts = true,
    .rows = ROWS,
    .half = HALF,
    .cols = NV * VL,
    .vector = VL,
    .wide = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6, wide_7, wide_8, wide_9, wide_10,
             wide_11, wide_12, wide_13, wide_14},
    .narrow = {NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6, narrow_7, narrow_8,
               narrow_9, narrow_10, narrow_11, narrow_12, narrow_13, narrow_14},
    .strip = strip,
    .few = {NULL, few_1, few_2},
    .few_panels = {0, 4, 2},
    .pack_transposed = pack_transposed,
    .finish = finish,
};
