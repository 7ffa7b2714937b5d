// SPDX-License-Identifier: MIT
// Rows of floats times a factor each: to[i][j] = from[i][j] * factor[i], i < rows, j < width; the
// rows are contiguous, the width a multiple of 4.
#pragma once

#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

typedef void (*mgx_scale_fn)(const float *from, const float *factor, float *to, int64_t rows,
                             int width);

void mgx_scale_rows__generic(const float *from, const float *factor, float *to, int64_t rows,
                             int width);
void mgx_scale_rows__avx2(const float *from, const float *factor, float *to, int64_t rows,
                          int width);
void mgx_scale_rows__avx512(const float *from, const float *factor, float *to, int64_t rows,
                            int width);

static inline mgx_scale_fn mgx_scale_of(enum mgx_isa isa)
{
#if defined(__x86_64__)
    return isa >= MGX_ISA_AVX512 ? mgx_scale_rows__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_scale_rows__avx2
                                 : mgx_scale_rows__generic;
#else
    (void)isa;
    return mgx_scale_rows__generic;
#endif
}
