// SPDX-License-Identifier: MIT
// s8 micro-kernels, AVX2: bytes widened to pairs of int16, sums in int32; the body is tile_body.h.
// Strips end in registers. Six rows by two vectors of eight columns, or by one:
//
//     two k      1 vpbroadcastd  2 vpmaddwd  2 vpaddd     for every row of 16 columns
//
// Two multiplications for 32 products, where chunks (chunk.h) of deep sums need 1.5; of shallow
// ones chunks are many more than the sums need, and these take less.
enum { ROWS = 6, HALF = 3, NV = 2 };
#define INTEGER 1
#define MAC(c, a, b)                                                                               \
    vf pairs;                                                                                      \
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(c), "=&x"(pairs) : "x"(a), "x"(b))

#include "targets/cpu/kernel/tile/tile_body.h"

TILES_6

#include "targets/cpu/kernel/tile/s8_strip.h"

const struct mgx_gemm_kernel mgx_s8_gemm_6x16__avx2 = {
    .base = {"s8_gemm_6x16__avx2", .needs = MGX_ISA_AVX2},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_S16,
    .b_type = MGX_KERNEL_S16,
    .group = 2,
    .integer = true,
    .starts = true,
    .strip = strip,
    OF_TILES_6,
};
