// SPDX-License-Identifier: MIT
// Which conversion for which types; see convert.h.
#include "targets/cpu/kernel/move/convert.h"

#include <stddef.h>
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

// Where a kernel has the conversion; 0: nowhere.
static const uint8_t members[MGX_KERNEL_TYPES][MGX_KERNEL_TYPES] = {
#define HAS(from, to, name)                                                                        \
    [MGX_KERNEL_##from][MGX_KERNEL_##to] = offsetof(struct mgx_convert_kernel, name)
    HAS(F16, F32, f16_f32),   HAS(F32, F16, f32_f16),   HAS(BF16, F32, bf16_f32),
    HAS(F32, BF16, f32_bf16), HAS(F16, BF16, f16_bf16), HAS(BF16, F16, bf16_f16),
    HAS(S8, U8, s8_u8),       HAS(S8, S16, s8_s16),     HAS(U8, S16, u8_s16),
    HAS(S8, F32, s8_f32),     HAS(U8, F32, u8_f32),     HAS(F32, S32, f32_s32),
    HAS(S32, F32, s32_f32),   HAS(F32, U8, f32_u8),     HAS(F32, S8, f32_s8),
#undef HAS
};
_Static_assert(sizeof(struct mgx_convert_kernel) <= UINT8_MAX, "a place is a byte");

// Called for every tile: a look into a table.
mgx_convert_fn mgx_convert(mgx_isa isa, enum mgx_kernel_type from, enum mgx_kernel_type to)
{
    if (from == to)
        return mgx_kernel_size(from) == 1 ? copy1 : mgx_kernel_size(from) == 2 ? copy2 : copy4;
    const char *kernel = (const char *)mgx_convert_kernel(isa);
    mgx_convert_fn run = NULL;
    if (members[from][to])
        memcpy(&run, kernel + members[from][to], sizeof run);
    return run;
}
