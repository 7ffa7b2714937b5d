// SPDX-License-Identifier: MIT
// Transposing 32-bit elements: to[i * to_row + j] = from[j * from_col + i] for i < rows, j < cols.
// Any sizes and strides; the two do not overlap. A few columns that fill their row are interleaved
// (the shuffle of channels), others go through registers in blocks of 4 x vector.
#pragma once

#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

typedef void (*mgx_transpose_fn)(const float *from, int64_t from_col, float *to, int64_t to_row,
                                 int64_t rows, int64_t cols);

void mgx_transpose__generic(const float *from, int64_t from_col, float *to, int64_t to_row,
                            int64_t rows, int64_t cols);
void mgx_transpose__avx2(const float *from, int64_t from_col, float *to, int64_t to_row,
                         int64_t rows, int64_t cols);
void mgx_transpose__avx512(const float *from, int64_t from_col, float *to, int64_t to_row,
                           int64_t rows, int64_t cols);

static inline mgx_transpose_fn mgx_transpose_of(enum mgx_isa isa)
{
#if defined(__x86_64__)
    return isa >= MGX_ISA_AVX512 ? mgx_transpose__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_transpose__avx2
                                 : mgx_transpose__generic;
#else
    (void)isa;
    return mgx_transpose__generic;
#endif
}
