// SPDX-License-Identifier: MIT
// Floats that become bytes by a range found when they run (DynamicQuantizeLinear), and what
// products of such bytes need then.
//
//     scale = (high - low) / 255, or 1 where that is 0     low <= 0 <= high, of all values
//     zero  = clamp(round(-low / scale), 0, 255)
//     a     = clamp(round(x / scale) + zero, 0, 255)       ties to even
//
//     sum (a - zero) w[n] * scale of w[n] * scale  =  (start[n] + sum a w[n]) * factors[n]
//
// NaN among the values makes scale NaN and zero 0.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/end/end.h"

// Begins as zeros. NaN stays.
struct mgx_byte_range {
    float low, high;
};

void mgx_byte_range_widen(mgx_isa isa, const float *x, int64_t n, struct mgx_byte_range *range);
float mgx_byte_range_scale(const struct mgx_byte_range *range);
int mgx_byte_range_zero(const struct mgx_byte_range *range, float scale);
// How values of that range become bytes, and by which scale and zero point.
struct mgx_range_bytes {
    float scale;
    int zero;
    struct mgx_end_step step[2];
};

struct mgx_range_bytes mgx_byte_range_bytes(const struct mgx_byte_range *range);
// Makes bytes of n values.
void mgx_byte_range_run(mgx_isa isa, const struct mgx_range_bytes *how, const float *x, int64_t n,
                        uint8_t *to);

struct mgx_byte_range_kernel {
    struct mgx_kernel base;
    // What the sums of n columns begin with, of the sums of their weights: -zero * sums, wrapping
    // as sums do.
    void (*start)(const int32_t *sums, int32_t zero, int64_t n, int32_t *restrict start);
    void (*factors)(const float *scale, float times, int64_t n, float *restrict factors);
    void (*repeat)(float value, int64_t n, float *to);
};

MGX_KERNEL_KIND(byte_range)
