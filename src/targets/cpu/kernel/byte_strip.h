// SPDX-License-Identifier: MIT
// How a strip is cut into tiles: as equal as can be, each of which fetches a share of what is read
// next. Private to the kernels of bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/kernel/tile.h"

// Where the next tile is, and how many there are after it.
struct strip_at {
    const char *a, *residual, *ahead;
    char *c;
    int64_t left, least, longer; // tiles, the rows of each, and how many have one more
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

// The rows of the next tile; 0 behind the last.
static inline int64_t strip_next(const struct mgx_tile_args *args, const struct strip_at *at)
{
    if (at->left <= 0)
        return 0;
    for (int64_t i = 0; i < args->ahead_step; i += 64)
        __builtin_prefetch(at->ahead + i, 0, 2);
    return at->least + (at->longer > 0);
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
