// SPDX-License-Identifier: MIT
// s8 micro-kernel on tile registers with tdpbusd: fours of unsigned by signed bytes, sums in int32;
// the body is s8_amx.h. It reads the panels of s8_gemm__avx512_vnni.c, which stays the choice for
// few rows.
#define PRODUCT "tdpbusd"

#include "targets/cpu/kernel/tile/s8_amx.h"

extern const struct mgx_gemm_kernel mgx_s8_gemm_14x32__avx512_vnni;

const struct mgx_gemm_kernel mgx_s8_gemm_32x32__amx = {
    .base = {"s8_gemm_32x32__amx", .needs = MGX_ISA_AMX},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_U8,
    .b_type = MGX_KERNEL_S8,
    .few_rows = &mgx_s8_gemm_14x32__avx512_vnni,
    .least_rows = 8,
    OF_BYTES,
};
