// SPDX-License-Identifier: MIT
// The inputs that one place of a sliding window sees, as a small box of strided runs in a packed
// plane. Poolings fold over it.
#pragma once

#include "op/reference/window.h"

struct mgx_region {
    int rank;
    int64_t start;               // element offset of the first input seen
    int64_t count[MGX_MAX_RANK]; // taps inside the input, per axis
    int64_t step[MGX_MAX_RANK];  // elements from one tap to the next
    int64_t padded;              // taps inside the input or its padding, all axes together
    int64_t seen;                // taps inside the input, all axes together
};

// The region of place at[] for windows axis[0..rank) over a packed plane.
void mgx_region_at(struct mgx_region *r, const struct mgx_window *axis, int rank,
                   const int64_t *at);
// Odometer over the outer axes: `offset` of the next innermost run (count[rank-1] elements,
// step[rank-1] apart). Starts with at[] all 0 and *offset = start; false after the last.
bool mgx_region_next(const struct mgx_region *r, int64_t *at, int64_t *offset);
