// SPDX-License-Identifier: MIT
// What the planning and the running of the tile methods share; see conv_tile.c.
#pragma once

#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/product/tiles.h"

// A row of output pixels in the workspace of a thread.
struct mgx_conv_row {
    struct mgx_tile_run run;          // of A: each pixel's first tap
    int64_t kernel_begin, kernel_end; // rows of the kernel that do not read padding alone
};

// A row of output pixels taken apart: where it is in the walk, and its range of pixels.
struct mgx_conv_place {
    int64_t n, z, y, begin, end;
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

// Copies what `rows` output rows from `at` on read of a group; see conv_copy.c.
void mgx_conv_copy_strip(const struct mgx_conv_plan *plan, const char *x, int64_t group,
                         const struct mgx_conv_place *at, int64_t rows, char *strip);
// Writes out the taps of all pixels of a row, those of kernel rows begin, ... < end; where the
// others would be is left as it is.
void mgx_conv_unroll_row(const struct mgx_conv_plan *plan, const char *x, int64_t group,
                         const struct mgx_conv_place *at, int64_t begin, int64_t end, char *to);

struct mgx_ahead mgx_conv_tile_first_read(const struct mgx_conv_plan *plan, const void *packed,
                                          int thread);
void mgx_conv_tile_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                       struct mgx_pool *pool);
