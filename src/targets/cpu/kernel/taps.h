// SPDX-License-Identifier: MIT
// Weighted pixels: what one output pixel of a channels-last image becomes of a list of others.
//
//     y[c] = (y[c] +) sum of weight[i] * x[offset[i] + c]          or the maximum of the terms
//
// A long list comes in pieces: `first` starts anew, else y goes on from what it holds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

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

void mgx_tap_pixel__generic(const struct mgx_tap_args *a);
void mgx_tap_pixel__avx2(const struct mgx_tap_args *a);
void mgx_tap_pixel__avx512(const struct mgx_tap_args *a);

typedef void (*mgx_tap_pixel)(const struct mgx_tap_args *a);

static inline mgx_tap_pixel mgx_tap_of(enum mgx_isa isa)
{
    return isa >= MGX_ISA_AVX512 ? mgx_tap_pixel__avx512
           : isa >= MGX_ISA_AVX2 ? mgx_tap_pixel__avx2
                                 : mgx_tap_pixel__generic;
}
