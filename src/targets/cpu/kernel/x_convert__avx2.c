// SPDX-License-Identifier: MIT
// Conversions, AVX2 and F16C; the body is x_convert.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/x_convert.h"

extern const struct mgx_convert_kernel NAME(mgx_x_convert);

const struct mgx_convert_kernel NAME(mgx_x_convert) = {
    .isa = MGX_ISA_AVX2,
    .f16_f32 = f16_f32,
    .f32_f16 = f32_f16,
    .bf16_f32 = bf16_f32,
    .f32_bf16 = f32_bf16,
    .f16_bf16 = f16_bf16,
    .bf16_f16 = bf16_f16,
    .s8_u8 = s8_u8,
    .s8_s16 = s8_s16,
    .u8_s16 = u8_s16,
    .s8_f32 = s8_f32,
    .u8_f32 = u8_f32,
    .f32_s32 = f32_s32,
    .s32_f32 = s32_f32,
    .f32_u8 = f32_u8,
    .f32_s8 = f32_s8,
};
#endif
