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

// What is asked of a type, a column each. `plain`: floats as registers have them, so that nothing
// is converted. `sums`: of whole numbers, stored without a scale. `low`: the lowest byte, of bytes.
struct mgx_kernel_type_row {
    const char *name; // as tuning caches and explanations have it
    int8_t size;      // bytes of one value
    bool is_float, plain, sums;
    int16_t low;
};

static const struct mgx_kernel_type_row mgx_kernel_type_rows[MGX_KERNEL_TYPES] = {
    [MGX_KERNEL_F32] = {"f32", 4, .is_float = true, .plain = true},
    [MGX_KERNEL_F16] = {"f16", 2, .is_float = true},
    [MGX_KERNEL_BF16] = {"bf16", 2, .is_float = true},
    [MGX_KERNEL_S8] = {"s8", 1, .low = INT8_MIN},
    [MGX_KERNEL_U8] = {"u8", 1},
    [MGX_KERNEL_S16] = {"s16", 2},
    [MGX_KERNEL_S32] = {"s32", 4, .sums = true},
};

static inline const char *mgx_kernel_type_name(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].name;
}

static inline bool mgx_kernel_is_float(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].is_float;
}

static inline bool mgx_kernel_is_plain(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].plain;
}

static inline bool mgx_kernel_is_sums(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].sums;
}

static inline int64_t mgx_kernel_size(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].size;
}

static inline bool mgx_kernel_is_byte(enum mgx_kernel_type type)
{
    return mgx_kernel_size(type) == 1;
}

// Signed bytes, and how much larger they are as unsigned ones.
static inline bool mgx_kernel_is_signed(enum mgx_kernel_type type)
{
    return mgx_kernel_type_rows[type].low < 0;
}

static inline int mgx_kernel_raise(enum mgx_kernel_type type)
{
    return -mgx_kernel_type_rows[type].low;
}

// A byte of either type as a number.
static inline int mgx_kernel_byte(enum mgx_kernel_type type, uint8_t bits)
{
    return mgx_kernel_is_signed(type) ? (int8_t)bits : bits;
}
