// SPDX-License-Identifier: MIT
// What the planning and the running of the tile methods share; see conv_tile.c.
#pragma once

#include "target/cpu/kernel/conv_plan.h"

// A row of output pixels in the workspace of a thread.
struct mgx_conv_row {
    const char *a; // its first pixel's first tap
    float *c;
    const float *residual;
    int64_t pixel, width;
};

// Input positions that the outputs [0, count) of dimension i reach, in a strip. With a kernel of 1
// the strip leaves out what the stride skips.
static inline int64_t mgx_strip_stride(const struct mgx_conv_desc *d, int i)
{
    return d->kernel[i] > 1 ? d->stride[i] : 1;
}

static inline int64_t mgx_strip_length(const struct mgx_conv_desc *d, int i, int64_t count)
{
    const int64_t reach = d->kernel[i] > 1 ? (d->kernel[i] - 1) * d->dilation[i] : 0;
    return (count - 1) * mgx_strip_stride(d, i) + reach + 1;
}

// How far apart those positions are in the input.
static inline int64_t mgx_strip_step(const struct mgx_conv_desc *d, int i)
{
    return d->kernel[i] > 1 ? 1 : d->stride[i];
}

void mgx_conv_tile_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                       struct mgx_pool *pool);
