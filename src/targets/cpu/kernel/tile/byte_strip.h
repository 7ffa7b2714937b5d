// SPDX-License-Identifier: MIT
// How a strip is cut into tiles: as equal as can be, each of which fetches a share of what is read
// next, at once, or a few lines for every four k. Private to the kernels of bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile/tile.h"

// Where the next tile is, and how many there are after it.
struct strip_at {
    const char *a, *residual, *ahead;
    char *c;
    int64_t left, least, longer; // tiles, the rows of each, and how many have one more
    int64_t turns, step, owed;   // fours of k of a tile, bytes fetched for each, and in all
};

static inline struct strip_at strip_start(const struct mgx_tile_args *args, int64_t rows, int most)
{
    const int64_t count = (rows + most - 1) / most;
    return (struct strip_at){
        .a = args->a[0],
        .residual = args->residual[0],
        .ahead = args->ahead,
        .c = args->c[0],
        .left = count,
        .least = rows / count,
        .longer = rows % count,
    };
}

// Has every tile fetch some lines for every four k of its sums, until the shares of `tiles` tiles
// are there.
static inline void strip_spread(const struct mgx_tile_args *args, struct strip_at *at,
                                int64_t tiles)
{
    const int64_t turns = args->tap_count * (args->depth / 4), all = turns * at->left * 64;
    at->turns = turns;
    at->owed = args->ahead_step * tiles;
    at->step = all > 0 ? (at->owed + all - 1) / all * 64 : 0;
}

// The rows of the next tile; 0 behind the last.
static inline int64_t strip_rows(const struct strip_at *at)
{
    return at->left > 0 ? at->least + (at->longer > 0) : 0;
}

// The same, with its share fetched at once.
static inline int64_t strip_next(const struct mgx_tile_args *args, const struct strip_at *at)
{
    for (int64_t i = 0; at->left > 0 && i < args->ahead_step; i += 64)
        __builtin_prefetch(at->ahead + i, 0, 2);
    return strip_rows(at);
}

static inline void strip_advance(const struct mgx_tile_args *args, struct strip_at *at,
                                 int64_t rows)
{
    at->a += rows * args->a_row;
    at->c += rows * args->c_row;
    if (at->residual)
        at->residual += rows * args->residual_row;
    at->ahead += args->ahead_step;
    at->left--;
    at->longer--;
}

// The same where the share is spread over the sums.
static inline void strip_advance_spread(const struct mgx_tile_args *args, struct strip_at *at,
                                        int64_t rows)
{
    const int64_t fetched = at->turns * at->step;
    strip_advance(args, at, rows);
    at->ahead += fetched - args->ahead_step;
    at->owed -= fetched;
    if (at->owed <= 0)
        at->step = 0;
}
