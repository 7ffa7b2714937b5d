// SPDX-License-Identifier: MIT
// Bytes less a shift, times a factor each, to bytes: what quantised models do to an image where a
// factor for every channel comes from the image itself, and batch normalization that no convolution
// takes in (DenseNet).
//
//     y[i][j] = q((dq(x[i][j]) - shift[i][j]) * factor[i][j])
//
// with the roundings of the operators that models say it with: the same to the bit.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

// A scale and zero point on either side; the factor lies in floats.
struct mgx_byte_scale {
    bool x_signed, y_signed;
    float x_scale, y_scale;
    int x_zero, y_zero;
};

struct mgx_byte_scale_args {
    const uint8_t *x;
    const float *factor, *shift; // no shift: NULL
    uint8_t *y;                  // may be x
    int64_t x_row, factor_row, shift_row, y_row;
    int64_t rows, cols;
    bool one_factor; // for all columns of a row, and one shift
};

typedef void (*mgx_byte_scale_fn)(const struct mgx_byte_scale *s,
                                  const struct mgx_byte_scale_args *a);

struct mgx_byte_scale_kernel {
    struct mgx_kernel base;
    mgx_byte_scale_fn run;
};

MGX_KERNEL_KIND(byte_scale)
