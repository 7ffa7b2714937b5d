// SPDX-License-Identifier: MIT
// The depthwise kernel: a row of output pixels, one vector of channels at a time. Groups may have
// 1, 2, 4 or 8 channels ("members") on both sides: each member in turn is spread over the lanes of
// its group, so nothing is multiplied in vain.
//
//       x     0  1  2  3  4  5  6
//     in     [ ][ ][ ][ ][ ][ ][ ][ ][ ]     7 accumulators, one per pixel; every input vector is
//     w      [0][1][2]                       loaded once per kernel row and goes into each pixel
//               [0][1][2]                    that it is a tap of
//                  [0][1][2]
//
// Pixels at the edges, where taps fall outside the image, and channels that do not fill a vector
// take the same path with every load masked. Kernel rows outside the image are left out by the
// caller.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/cpu/cpuid.h"

struct mgx_dw_args {
    // Of the first channel: input lines, which hold pixels 0 <= x < width, and the kernel row that
    // each belongs to.
    const float *const *lines;
    const int *kernel_rows;
    int line_count;
    int64_t width;
    int64_t pixel; // floats from pixel to pixel of a line
    int64_t first; // position of the first output's first tap in the line; may be negative
    int64_t kernel, stride, dilation;
    int members;           // channels of a group; divides the vector
    const float *weights;  // [kernel rows][member][kernel][vector]
    const float *bias;     // may be NULL
    const float *scale;    // sums become sum * scale + bias; NULL: sum + bias
    const float *residual; // added before the clamp; may be NULL
    int64_t residual_pixel;
    float *y;
    int64_t y_pixel;
    int64_t count; // output pixels
    int channels;  // 1..vector
    bool clamp;
    float low, high;
};

struct mgx_dw_kernel {
    const char *name;
    enum mgx_isa isa;
    int vector;
    void (*row)(const struct mgx_dw_args *args);
};

const struct mgx_dw_kernel *mgx_dw_kernel(enum mgx_isa isa);
