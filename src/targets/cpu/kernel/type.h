// SPDX-License-Identifier: MIT
// Element types that kernels read, multiply and write. A family of micro-kernels multiplies one
// pair of them; others are converted on the way: A when its block is copied, B when it is packed, C
// when a tile is finished.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mgx_kernel_type {
    MGX_KERNEL_F32,
    MGX_KERNEL_F16,
    MGX_KERNEL_BF16,
    MGX_KERNEL_S8,
    MGX_KERNEL_U8,
    MGX_KERNEL_S16,
    MGX_KERNEL_S32
};
enum { MGX_KERNEL_TYPES = MGX_KERNEL_S32 + 1 };

static inline bool mgx_kernel_is_float(enum mgx_kernel_type type)
{
    return type <= MGX_KERNEL_BF16;
}

// Bytes of one value.
static inline int64_t mgx_kernel_size(enum mgx_kernel_type type)
{
    return type == MGX_KERNEL_F32 || type == MGX_KERNEL_S32 ? 4
           : type == MGX_KERNEL_S8 || type == MGX_KERNEL_U8 ? 1
                                                            : 2;
}
