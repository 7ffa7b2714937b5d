// SPDX-License-Identifier: MIT
// Pooling over channels-last images: maximum and average, one vector of channels at a time.
//
//     y[oy][ox][c] = fold over the window's pixels inside the image; an average divides by their
//     number, or by the window's size, as the caller says per pixel
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/cpu/cpuid.h"

struct mgx_pool_args { // one output pixel
    const float *x;    // first pixel of the window inside the image
    int64_t rows, cols, row_stride,
        col_stride; // of the part of the window inside; strides in floats
    float scale;    // of an average
    bool max;
    float *y;
    int64_t channels;
};

void mgx_pool_pixel__generic(const struct mgx_pool_args *a);
void mgx_pool_pixel__avx2(const struct mgx_pool_args *a);
void mgx_pool_pixel__avx512(const struct mgx_pool_args *a);

typedef void (*mgx_pool_pixel)(const struct mgx_pool_args *a);

static inline mgx_pool_pixel mgx_pool_of(enum mgx_isa isa)
{
    return isa >= MGX_ISA_AVX512 ? mgx_pool_pixel__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_pool_pixel__avx2
                                 : mgx_pool_pixel__generic;
}
