// SPDX-License-Identifier: MIT
// Caches in few bits, as attention to them reads them: numbers of 8 bits with a sign, or two of 4
// bits in a byte that are 8 more than what they stand for, the first one in the lower half; each
// times a scale.
//
//     kept 8   int8  {.., size}                   scales {1}, one for all,
//     kept 4   uint8 {.., (size + 1) / 2}         or {heads, size}: float
#pragma once

#include "op/rule/rule.h"

static inline int64_t mgx_kept_bytes(int64_t kept, int64_t size)
{
    return kept == 4 ? (size + 1) / 2 : size;
}

// Input `in` is such a cache of heads of `size`, along axis `heads`; input `scale` has its scales.
enum mgx_status mgx_require_kept(struct mgx_shape_call *c, int64_t kept, int in, int scale,
                                 int heads, struct mgx_dim size) MGX_NODISCARD;
// What such a cache stands for, keys as input 1 or values as input 2 of queries that are input 0,
// heads of their size and rounded to their type; `kept` 0: a cache as it is. NULL: no memory.
const double *mgx_kept_cache(struct mgx_compute_call *c, int64_t kept, int in, int heads);
