// SPDX-License-Identifier: MIT
// Activations that are more than a clamp, over a tile that has just been stored.
//
// What registers did not do: activation, then residual (rows `residual_stride` floats apart) if not
// NULL, on rows x cols floats. One for each width of vectors, which the tiles of all types share.
#pragma once

#include "targets/cpu/kernel/end/epilogue.h"
#include "targets/cpu/kernel/kernel.h"

struct mgx_finish_kernel {
    struct mgx_kernel base;
    void (*run)(float *c, int64_t stride, int rows, int cols, const struct mgx_epilogue *epilogue,
                const float *residual, int64_t residual_stride);
};

MGX_KERNEL_KIND(finish)
