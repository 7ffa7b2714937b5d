// SPDX-License-Identifier: MIT
// The largest bytes of a window, channel by channel: pooling of quantised images. Reads the window
// once for every 64 channels.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

struct mgx_byte_pool_args {                       // one output pixel
    const uint8_t *x;                             // first pixel of the window inside the image
    int64_t planes, rows, cols;                   // of the part of the window inside
    int64_t plane_stride, row_stride, col_stride; // in bytes
    bool is_signed;
    uint8_t *y;
    int64_t channels;
};

typedef void (*mgx_byte_pool_fn)(const struct mgx_byte_pool_args *a);

void mgx_byte_pool__generic(const struct mgx_byte_pool_args *a);
void mgx_byte_pool__avx2(const struct mgx_byte_pool_args *a);
void mgx_byte_pool__avx512(const struct mgx_byte_pool_args *a);

static inline mgx_byte_pool_fn mgx_byte_pool_of(enum mgx_isa isa)
{
#if defined(__x86_64__)
    return isa >= MGX_ISA_AVX512 ? mgx_byte_pool__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_byte_pool__avx2
                                 : mgx_byte_pool__generic;
#else
    (void)isa;
    return mgx_byte_pool__generic;
#endif
}
