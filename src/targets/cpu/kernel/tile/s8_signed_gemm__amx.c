// SPDX-License-Identifier: MIT
// The micro-kernel of s8_gemm__amx.c for A of signed bytes, with tdpbssd: A need not be made
// unsigned first, and sums begin with nothing for that.
#define PRODUCT "tdpbssd"

#include "targets/cpu/kernel/tile/s8_amx.h"

const struct mgx_gemm_kernel mgx_s8_gemm_32x32_signed__amx = {
    .base = {"s8_gemm_32x32_signed__amx", .needs = MGX_ISA_AMX},
    .type = MGX_KERNEL_S8,
    .a_type = MGX_KERNEL_S8,
    .b_type = MGX_KERNEL_S8,
    OF_BYTES,
};
