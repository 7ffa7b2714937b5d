// SPDX-License-Identifier: MIT
// Pooling over channels-last images: maximum and average, one vector of channels at a time.
//
//     y[oy][ox][c] = fold over the window's pixels inside the image; an average divides by their
//     number, or by the window's size, as the caller says per pixel
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_pool_args {                            // one output pixel
    const float *x;                               // first pixel of the window inside the image
    int64_t planes, rows, cols;                   // of the part of the window inside
    int64_t plane_stride, row_stride, col_stride; // in floats
    float scale;                                  // of an average
    bool max;
    float *y;
    int64_t channels;
};

// y = w0 p0 + w1 p1 + w2 p2 + w3 p3 over `channels` values: a pixel between four others (resize).
typedef void (*mgx_blend_pixel)(const float *const p[4], const float w[4], float *y,
                                int64_t channels);

typedef void (*mgx_pool_pixel)(const struct mgx_pool_args *a);

struct mgx_pool_kernel {
    struct mgx_kernel base;
    mgx_pool_pixel pixel;
    mgx_blend_pixel blend;
};

MGX_KERNEL_KIND(pool)
