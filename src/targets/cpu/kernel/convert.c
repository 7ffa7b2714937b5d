// SPDX-License-Identifier: MIT
// Which conversion for which types; see convert.h.
#include "targets/cpu/kernel/convert.h"

#include <string.h>

static void copy1(const void *from, void *to, int64_t n)
{
    memmove(to, from, (size_t)n);
}

static void copy2(const void *from, void *to, int64_t n)
{
    memmove(to, from, 2 * (size_t)n);
}

static void copy4(const void *from, void *to, int64_t n)
{
    memmove(to, from, 4 * (size_t)n);
}

mgx_convert_fn mgx_convert(mgx_isa isa, enum mgx_kernel_type from, enum mgx_kernel_type to)
{
    const struct mgx_convert_kernel *k = mgx_convert_kernel(isa);
    const struct {
        enum mgx_kernel_type from, to;
        mgx_convert_fn run;
    } known[] = {
        {MGX_KERNEL_F16, MGX_KERNEL_F32, k->f16_f32},
        {MGX_KERNEL_F32, MGX_KERNEL_F16, k->f32_f16},
        {MGX_KERNEL_BF16, MGX_KERNEL_F32, k->bf16_f32},
        {MGX_KERNEL_F32, MGX_KERNEL_BF16, k->f32_bf16},
        {MGX_KERNEL_F16, MGX_KERNEL_BF16, k->f16_bf16},
        {MGX_KERNEL_BF16, MGX_KERNEL_F16, k->bf16_f16},
        {MGX_KERNEL_S8, MGX_KERNEL_U8, k->s8_u8},
        {MGX_KERNEL_S8, MGX_KERNEL_S16, k->s8_s16},
        {MGX_KERNEL_U8, MGX_KERNEL_S16, k->u8_s16},
        {MGX_KERNEL_S8, MGX_KERNEL_F32, k->s8_f32},
        {MGX_KERNEL_U8, MGX_KERNEL_F32, k->u8_f32},
        {MGX_KERNEL_F32, MGX_KERNEL_S32, k->f32_s32},
        {MGX_KERNEL_S32, MGX_KERNEL_F32, k->s32_f32},
        {MGX_KERNEL_F32, MGX_KERNEL_U8, k->f32_u8},
        {MGX_KERNEL_F32, MGX_KERNEL_S8, k->f32_s8},
    };
    if (from == to)
        return mgx_kernel_size(from) == 1 ? copy1 : mgx_kernel_size(from) == 2 ? copy2 : copy4;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].from == from && known[i].to == to)
            return known[i].run;
    return NULL;
}
