// SPDX-License-Identifier: MIT
// Weighted pixels: what one output pixel of a channels-last image becomes of a list of others.
//
//     y[c] = (y[c] +) sum of weight[i] * x[offset[i] + c]          or the maximum of the terms
//
// A long list comes in pieces: `first` starts anew, else y goes on from what it holds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_tap_args {
    const float *x;
    const int64_t *offset; // in floats
    const float *weight;
    int count;
    bool max, first;
    float divide; // the result, at the end
    float *y;
    int64_t channels;
};

typedef void (*mgx_tap_pixel)(const struct mgx_tap_args *a);

struct mgx_tap_kernel {
    struct mgx_kernel base;
    mgx_tap_pixel run;
};

MGX_KERNEL_KIND(tap)
