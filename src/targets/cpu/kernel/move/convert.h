// SPDX-License-Identifier: MIT
// Runs of values from one element type to another, at the speed of memory: what operands need on
// their way into a kernel and results on their way out.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/kernel/type.h"

// Converts n contiguous values. Floats round to nearest, ties to even, and keep NaN; S8 to U8 adds
// 128; F32 to S32, S8 and U8 is for whole numbers that fit. `from` may equal `to` when their types
// have one size.
typedef void (*mgx_convert_fn)(const void *from, void *to, int64_t n);

// NULL when there is no such conversion: floats convert among F32, F16 and BF16, bytes to U8, S16
// and F32, S32 to F32, F32 to S32 and bytes, and every type to itself.
mgx_convert_fn mgx_convert(mgx_isa isa, enum mgx_kernel_type from, enum mgx_kernel_type to);

struct mgx_convert_kernel {
    struct mgx_kernel base;
    mgx_convert_fn f16_f32, f32_f16, bf16_f32, f32_bf16, f16_bf16, bf16_f16, s8_u8, s8_s16, u8_s16,
        s8_f32, u8_f32, f32_s32, s32_f32, f32_u8, f32_s8;
};

MGX_KERNEL_KIND(convert)
