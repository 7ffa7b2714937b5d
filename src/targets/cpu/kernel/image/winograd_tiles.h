// SPDX-License-Identifier: MIT
// Where the tiles of Winograd's method lie in an image. With a dilation of d the outputs d apart
// are a convolution of their own, over the inputs d apart: each of these phases has its own tiles,
// whose pixels are d apart.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv.h"

// Tiles of m along dimension i: of the first phases, whose outputs are one more than those of the
// rest, and of the rest.
struct mgx_winograd_phases {
    int64_t first, rest;             // how many phases
    int64_t first_tiles, rest_tiles; // of one
};

static inline struct mgx_winograd_phases mgx_winograd_phases(const struct mgx_conv_desc *d, int i,
                                                             int64_t m)
{
    assert(i >= 0 && i < MGX_CONV_DIMS && m > 0);
    const int64_t step = d->dilation[i], most = mgx_ceil_div(d->out[i], step);
    const int64_t first = d->out[i] - (most - 1) * step;
    return (struct mgx_winograd_phases){.first = first,
                                        .rest = mgx_min_i64(step, d->out[i]) - first,
                                        .first_tiles = mgx_ceil_div(most, m),
                                        .rest_tiles = mgx_ceil_div(most - 1, m)};
}

static inline int64_t mgx_winograd_tiles(const struct mgx_conv_desc *d, int i, int64_t m)
{
    const struct mgx_winograd_phases p = mgx_winograd_phases(d, i, m);
    return p.first * p.first_tiles + p.rest * p.rest_tiles;
}

// The first output of a tile.
static inline int64_t mgx_winograd_tile_at(const struct mgx_conv_desc *d, int i, int64_t m,
                                           int64_t tile)
{
    if (d->dilation[i] == 1) // divisions would take as long as a transform
        return tile * m;
    const struct mgx_winograd_phases p = mgx_winograd_phases(d, i, m);
    const int64_t others = tile - p.first * p.first_tiles, span = m * d->dilation[i];
    if (others < 0)
        return tile / p.first_tiles + tile % p.first_tiles * span;
    return p.first + others / p.rest_tiles + others % p.rest_tiles * span;
}

// How many steps it takes from 0 to `distance`, at most `most`.
static inline int mgx_winograd_steps(int64_t distance, int64_t step, int64_t most)
{
    if (distance <= 0)
        return 0;
    return (int)mgx_min_i64(step == 1 ? distance : mgx_ceil_div(distance, step), most); // as above
}
