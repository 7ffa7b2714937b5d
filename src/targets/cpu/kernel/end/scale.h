// SPDX-License-Identifier: MIT
// Rows of floats times a factor each: to[i][j] = from[i][j] * factor[i], i < rows, j < width; the
// rows are contiguous, the width a multiple of 4.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

typedef void (*mgx_scale_fn)(const float *from, const float *factor, float *to, int64_t rows,
                             int width);

struct mgx_scale_kernel {
    struct mgx_kernel base;
    mgx_scale_fn run;
};

MGX_KERNEL_KIND(scale)
