// SPDX-License-Identifier: MIT
// Kernels over rows: what is computed along one contiguous axis, row by row. The tables hold one
// entry per instruction set; splitting rows over threads is the caller's.
//
//     softmax      y = exp(x - max) / sum
//     logsoftmax   y = x - max - log(sum)
//     norm         y = (x - mean) / sqrt(variance + epsilon) * scale + shift
//     rms          y = x / sqrt(mean of squares + epsilon) * scale + shift
//     fold         one value a row: sum, mean, max, min, product; NaN comes through
//     fold_across  the same over rows, column by column: y[j] = fold over i of x[i * stride + j]
//
// Two or three passes over a row that lies in the L1 cache; sums in vector lanes of float, rows
// longer than 4096 in pieces whose sums add up in double, so the error does not grow with the
// length.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

enum mgx_fold { MGX_FOLD_SUM, MGX_FOLD_MEAN, MGX_FOLD_MAX, MGX_FOLD_MIN, MGX_FOLD_PROD };

struct mgx_rows_kernel {
    struct mgx_kernel base;
    void (*softmax)(const float *x, float *y, int64_t n);
    void (*logsoftmax)(const float *x, float *y, int64_t n);
    // Along columns: n columns side by side, `count` values each, `stride` floats apart in x and y.
    void (*softmax_across)(const float *x, int64_t x_stride, float *y, int64_t y_stride,
                           int64_t count, int64_t n);
    // scale and shift may be NULL; y may be x.
    void (*norm)(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                 int64_t n);
    void (*rms)(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                int64_t n);
    float (*fold)(enum mgx_fold kind, const float *x, int64_t n);
    // `count` rows `stride` floats apart into y[n].
    void (*fold_across)(enum mgx_fold kind, const float *x, int64_t stride, int64_t count, float *y,
                        int64_t n);
};

MGX_KERNEL_KIND(rows)
