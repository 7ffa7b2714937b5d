// SPDX-License-Identifier: MIT
// The micro-kernel families there are; see tile.h.
#include "targets/cpu/kernel/tile.h"

#include <stddef.h>

extern const struct mgx_gemm_kernel mgx_f32_gemm_6x8__generic, mgx_s8_gemm_6x8__generic;
#if defined(__x86_64__)
extern const struct mgx_gemm_kernel mgx_f32_gemm_6x16__avx2, mgx_f32_gemm_14x32__avx512,
    mgx_f32_gemm_6x64__avx512, mgx_bf16_gemm_14x32__avx512_bf16, mgx_s8_gemm_6x16__avx2,
    mgx_s8_gemm_14x32__avx512_vnni, mgx_u8_gemm_8x8__avx2;
#endif

// Of one type the best first.
static const struct mgx_gemm_kernel *const kernels[] = {
#if defined(__x86_64__)
    &mgx_f32_gemm_14x32__avx512,     &mgx_f32_gemm_6x64__avx512,
    &mgx_f32_gemm_6x16__avx2,        &mgx_bf16_gemm_14x32__avx512_bf16,
    &mgx_s8_gemm_14x32__avx512_vnni, &mgx_s8_gemm_6x16__avx2,
    &mgx_u8_gemm_8x8__avx2,
#endif
    &mgx_f32_gemm_6x8__generic,      &mgx_s8_gemm_6x8__generic,
};

const struct mgx_gemm_kernel *mgx_gemm_kernel(enum mgx_kernel_type type, enum mgx_isa isa)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i]->type == type && kernels[i]->isa <= isa)
            return kernels[i];
    return NULL;
}

const struct mgx_gemm_kernel *mgx_integer_kernel(enum mgx_kernel_type type, enum mgx_isa isa,
                                                 enum mgx_kernel_type b_type, bool b_zero)
{
    const bool wide = type == MGX_KERNEL_S8 && (b_zero || b_type != MGX_KERNEL_S8);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i]->type == type && kernels[i]->isa <= isa &&
            (!wide || kernels[i]->b_type == MGX_KERNEL_S16))
            return kernels[i];
    return NULL;
}

const struct mgx_gemm_kernel *mgx_gemm_kernel_of(enum mgx_kernel_type type, enum mgx_isa isa,
                                                 int cols)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i]->type == type && kernels[i]->isa <= isa && kernels[i]->cols == cols)
            return kernels[i];
    return NULL;
}

const char *mgx_act_name(enum mgx_act act)
{
    static const char *const names[] = {
#define X(name, text, meaning) text,
        MGX_ACT_LIST(X)
#undef X
    };
    return names[act];
}
