// SPDX-License-Identifier: MIT
// Pooling over channels-last images: maximum and average, one vector of channels at a time.
//
//     y[oy][ox][c] = fold over the window's pixels inside the image; an average divides by their
//     number, or by the window's size, as the caller says per pixel
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

struct mgx_pool_args {                            // one output pixel
    const float *x;                               // first pixel of the window inside the image
    int64_t planes, rows, cols;                   // of the part of the window inside
    int64_t plane_stride, row_stride, col_stride; // in floats
    float scale;                                  // of an average
    bool max;
    float *y;
    int64_t channels;
};

void mgx_pool_pixel__generic(const struct mgx_pool_args *a);
void mgx_pool_pixel__avx2(const struct mgx_pool_args *a);
void mgx_pool_pixel__avx512(const struct mgx_pool_args *a);

// y = w0 p0 + w1 p1 + w2 p2 + w3 p3 over `channels` values: a pixel between four others (resize).
void mgx_blend_pixel__generic(const float *const p[4], const float w[4], float *y,
                              int64_t channels);
void mgx_blend_pixel__avx2(const float *const p[4], const float w[4], float *y, int64_t channels);
void mgx_blend_pixel__avx512(const float *const p[4], const float w[4], float *y, int64_t channels);

typedef void (*mgx_blend_pixel)(const float *const p[4], const float w[4], float *y,
                                int64_t channels);

static inline mgx_blend_pixel mgx_blend_of(enum mgx_isa isa)
{
    return isa >= MGX_ISA_AVX512 ? mgx_blend_pixel__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_blend_pixel__avx2
                                 : mgx_blend_pixel__generic;
}

typedef void (*mgx_pool_pixel)(const struct mgx_pool_args *a);

static inline mgx_pool_pixel mgx_pool_of(enum mgx_isa isa)
{
    return isa >= MGX_ISA_AVX512 ? mgx_pool_pixel__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_pool_pixel__avx2
                                 : mgx_pool_pixel__generic;
}
