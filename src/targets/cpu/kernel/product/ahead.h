// SPDX-License-Identifier: MIT
// What comes next, for the caches: which weights a thread will read first. A panel of weights is
// fetched into L2 while the one before it is multiplied; so is the first one of a later step, while
// the last one of this step is: else every thread would begin every step by waiting for memory.
//
// These are hints. Where tasks change hands, some bytes are fetched that another thread reads.
#pragma once

#include <stdint.h>

#include "base/size.h"
#include "targets/cpu/kernel/split.h"
#include "targets/cpu/machine/cpuid.h"

struct mgx_ahead {
    const char *at;
    int64_t bytes; // 0: nothing is known
};

// The same, of no more than may wait in L2.
static inline struct mgx_ahead mgx_ahead_of(const void *at, int64_t bytes)
{
    return (struct mgx_ahead){at, mgx_min_i64(bytes, mgx_cpu_l2() / 8)};
}

// The share of one tile: for every four of its `depth`, and for the whole of it.
struct mgx_ahead_step {
    int64_t bytes, tile_bytes;
};

// `tiles` tiles bring it, a line to eight for every 4 k. Eight are a panel of 32 columns whole, for
// a product of so few rows that it is one tile.
static inline struct mgx_ahead_step mgx_ahead_share(struct mgx_ahead ahead, int64_t depth,
                                                    int64_t tiles)
{
    const int64_t turns = mgx_max_i64(tiles * (depth / 4), 1);
    const int64_t lines = mgx_min_i64(mgx_ceil_div(ahead.bytes, 64 * turns), 8);
    return (struct mgx_ahead_step){64 * lines, depth / 4 * 64 * lines};
}
