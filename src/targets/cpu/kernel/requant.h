// SPDX-License-Identifier: MIT
// The last step of a quantised product or convolution: a tile of floats to bytes, and what a
// residual of bytes adds on the way.
//
//     v = tile[i][j] / divisor                 in steps of the result; a divisor of 1 is free
//     r = round(clamp(v, low, high))           ties to even; NaN becomes low
//     with a residual, and without that rounding unless `rounds`:
//         r = round(clamp(r * keep + (residual[i][j] - residual_zero) * share, low2, high2))
//     y = r + zero                             a byte, since low and high say so
//     y = table[y]                             where there is a table
//
// Costs some four instructions for eight values, eight with a residual.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_requant {
    bool is_signed;
    float divisor, low, high;
    int zero; // added last
    bool residual, residual_signed, rounds;
    float keep, share, low2, high2;
    int residual_zero;
    const uint8_t *table; // [256], by the byte as it lies in memory; NULL: none
};

// rows x cols floats, rows `stride` floats apart, to bytes, rows `out_row` apart. `residual` is read
// where the description says so.
typedef void (*mgx_requant_fn)(const struct mgx_requant *q, const float *tile, int64_t stride,
                               int rows, int cols, const void *residual, int64_t residual_row,
                               void *out, int64_t out_row);

struct mgx_requant_kernel {
    struct mgx_kernel base;
    mgx_requant_fn run;
};

MGX_KERNEL_KIND(requant)
