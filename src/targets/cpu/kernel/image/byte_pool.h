// SPDX-License-Identifier: MIT
// The largest bytes of a window, channel by channel: pooling of quantised images. Reads the window
// once for every 64 channels.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_byte_pool_args {                       // one output pixel
    const uint8_t *x;                             // first pixel of the window inside the image
    int64_t planes, rows, cols;                   // of the part of the window inside
    int64_t plane_stride, row_stride, col_stride; // in bytes
    bool is_signed;
    uint8_t *y;
    int64_t channels;
};

typedef void (*mgx_byte_pool_fn)(const struct mgx_byte_pool_args *a);

struct mgx_byte_pool_kernel {
    struct mgx_kernel base;
    mgx_byte_pool_fn run;
};

MGX_KERNEL_KIND(byte_pool)
