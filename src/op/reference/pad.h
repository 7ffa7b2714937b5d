// SPDX-License-Identifier: MIT
// What pad's reference and its kernels agree on: the attributes, and where a position comes from.
#pragma once

#include <math.h>

#include "op/rule/rule.h"

enum mgx_pad_mode { MGX_PAD_CONSTANT, MGX_PAD_REFLECT, MGX_PAD_EDGE, MGX_PAD_WRAP };

struct mgx_pad {
    int64_t mode;
    struct mgx_ints pads;
    double value;
};

// The padding value in x's type. A number beyond that type becomes its largest one: the lowest
// float, written for a maximum or a mask, must stay a number in half.
static inline void mgx_pad_store(enum mgx_type type, void *cell, double value)
{
    if (!mgx_type_is_number(type)) // a pair of numbers, or none: zeros
        return;
    if (mgx_type_is_float(type) && isfinite(value))
        value = fmin(fmax(value, mgx_type_lowest(type)), mgx_type_highest(type));
    mgx_store_double(type, cell, 0, value);
}

// The position in x that a position of y shows along an axis of length n; -1 for the value.
static inline int64_t mgx_pad_source(int64_t mode, int64_t at, int64_t n)
{
    if (at >= 0 && at < n)
        return at;
    if (mode == MGX_PAD_EDGE)
        return at < 0 ? 0 : n - 1;
    if (mode == MGX_PAD_WRAP)
        return (at % n + n) % n;
    if (mode == MGX_PAD_REFLECT) {
        const int64_t period = n > 1 ? 2 * (n - 1) : 1;
        const int64_t p = (at % period + period) % period;
        return p < n ? p : period - p;
    }
    return -1;
}
