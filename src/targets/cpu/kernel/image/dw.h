// SPDX-License-Identifier: MIT
// The depthwise kernel: one or two rows of output pixels, 7 pixels of all channels at a time.
// Groups may have 1, 2, 4 or 8 channels ("members") on both sides: each member in turn is spread
// over the lanes of its group, so nothing is multiplied in vain.
//
//       x     0  1  2  3  4  5  6
//     in     [ ][ ][ ][ ][ ][ ][ ][ ][ ]     7 accumulators per row, one per pixel; every input
//     w      [0][1][2]                       vector is loaded once and goes into each pixel of
//               [0][1][2]                    both rows that it is a tap of
//                  [0][1][2]
//
// At the edges, where taps fall outside the image, their products are skipped; channels that do not
// fill a vector are masked, and no others: all steps of a small image are at an edge, and masked
// stores are slow on some machines. Kernel rows outside the image are left out by the caller.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_dw_args {
    // Input lines, which hold pixels 0 <= x < width, and for each two kernel rows: the one that it
    // is to the first row of outputs and to the second; -1: none.
    const float *const *lines;
    const int *kernel_rows;
    int line_count;
    int rows;       // of output: 1 or 2
    int64_t offset; // of the first channel in a line
    int64_t width;
    int64_t pixel; // floats from pixel to pixel of a line
    int64_t first; // position of the first output's first tap in the line; may be negative
    int64_t kernel, stride, dilation;
    int members;            // channels of a group; divides the vector
    const float *weights;   // [vector of channels][kernel rows][member][kernel][lane]
    int64_t vector_weights; // floats from one vector's to the next
    const float *bias;      // may be NULL
    const float *scale;     // sums become sum * scale + bias; NULL: sum + bias
    const float *residual;  // added before the clamp; may be NULL
    int64_t residual_pixel, residual_row;
    float *y;
    int64_t y_pixel, y_row;
    int64_t count; // output pixels of a row
    int channels;  // 1 and more
    bool clamp;
    float low, high;
    // Called for pixels [at, at + pixels) of all rows when they have been stored; may be NULL.
    void (*finish)(void *user, const struct mgx_dw_args *args, int64_t at, int pixels);
    void *user;
};

struct mgx_dw_kernel {
    struct mgx_kernel base;
    int vector;
    void (*rows)(const struct mgx_dw_args *args);
};

MGX_KERNEL_KIND(dw)
