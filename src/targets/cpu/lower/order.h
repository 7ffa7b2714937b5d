// SPDX-License-Identifier: MIT
// Sorting by 32-bit keys with positions: stable, linear.
#pragma once

#include <stdint.h>
#include <string.h>

// A key in the upper half, a position in the lower one: ascending order is by key, then position.
static inline uint64_t cpu_order_make(uint32_t key, uint32_t position)
{
    return (uint64_t)key << 32 | position;
}

// Keys of floats that ascend with the values; both zeros are equal, NaN comes last.
static inline uint32_t cpu_order_key(float x)
{
    uint32_t u;
    const float plain = x + 0.0f; // -0 becomes 0
    memcpy(&u, &plain, sizeof u);
    if (x != x)
        return UINT32_MAX;
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// By key; entries of equal keys stay as they are. `room` holds as many entries.
void cpu_order_sort(uint64_t *entries, uint64_t *room, int64_t count);
