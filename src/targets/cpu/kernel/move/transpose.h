// SPDX-License-Identifier: MIT
// Transposing 32-bit elements: to[i * to_row + j] = from[j * from_col + i] for i < rows, j < cols.
// Any sizes and strides; the two do not overlap. A few columns that fill their row are interleaved
// (the shuffle of channels), others go through registers in blocks of 4 x vector.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

typedef void (*mgx_transpose_fn)(const float *from, int64_t from_col, float *to, int64_t to_row,
                                 int64_t rows, int64_t cols);

struct mgx_transpose_kernel {
    struct mgx_kernel base;
    mgx_transpose_fn run;
};

MGX_KERNEL_KIND(transpose)
