// SPDX-License-Identifier: MIT
// bf16 micro-kernel on tile registers with tdpbf16ps: pairs of bf16, sums in f32, denormals are 0;
// the body is amx_body.h. Rows of results end as those of bf16_gemm__avx512_bf16.c do, which stays
// the choice for few rows; they may differ in the last bit, since sums are made in another order.
#include "targets/cpu/kernel/tile/bf16_rows.h"

#define NARROWS
#define INTEGER 0
#define PRODUCT "tdpbf16ps"

#include "targets/cpu/kernel/tile/amx_body.h"

extern const struct mgx_gemm_kernel mgx_bf16_gemm_14x32__avx512_bf16;

const struct mgx_gemm_kernel mgx_bf16_gemm_32x32__amx = {
    .base = {"bf16_gemm_32x32__amx", .needs = MGX_ISA_AMX},
    .type = MGX_KERNEL_BF16,
    .a_type = MGX_KERNEL_BF16,
    .b_type = MGX_KERNEL_BF16,
    .group = 2,
    .narrows = true,
    .few_rows = &mgx_bf16_gemm_14x32__avx512_bf16,
    .least_rows = 8,
    OF_TILE_REGISTERS,
};
