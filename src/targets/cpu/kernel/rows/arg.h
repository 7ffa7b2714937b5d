// SPDX-License-Identifier: MIT
// The place of the largest or smallest of floats.
//
//     line: n values, `step` apart     largest of each block, then the place in the block that has it
//     lanes: many lines                step by step, for all of them at once
//
// Values are compared as integers in the same order: both zeros are one, a NaN is before every
// number. Of equal values the first is meant, or the last.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

enum {
    MGX_ARG_LANES = 256,
    MGX_ARG_SHORT = 64, // lines up to there are better lanes, even if these lie apart
};

struct mgx_arg {
    bool largest, last;
};

struct mgx_arg_kernel {
    struct mgx_kernel base;
    // n is at least 1 and below 2^31, as below.
    int64_t (*line)(const struct mgx_arg *how, const float *x, int64_t n, int64_t step);
    // Of each of `lanes`, at most MGX_ARG_LANES, which begin `apart` values from each other.
    void (*lanes)(const struct mgx_arg *how, const float *x, int64_t n, int64_t step, int lanes,
                  int64_t apart, int32_t *places);
};

MGX_KERNEL_KIND(arg)
