// SPDX-License-Identifier: MIT
// The micro-kernel of s8_gemm__amx.c for weights of unsigned bytes without zero points, with
// tdpbuud.
#define PRODUCT "tdpbuud"

#include "targets/cpu/kernel/tile/s8_amx.h"

const struct mgx_gemm_kernel mgx_u8_gemm_32x32__amx = {
    .base = {"u8_gemm_32x32__amx", .needs = MGX_ISA_AMX},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_U8,
    .b_type = MGX_KERNEL_U8,
    OF_BYTES,
};
