// SPDX-License-Identifier: MIT
// Unfolding a plane (the spatial axes of one channel) into rows: row t holds what tap t of the
// kernel sees at every output place, 0 in the padding. Folding adds rows back. A convolution is a
// matrix product with unfolded rows; done for a run of places at a time it needs little memory.
#pragma once

#include "op/reference/gemm.h"
#include "op/reference/window.h"

struct mgx_unfold {
    int rank; // spatial axes, at least 1
    struct mgx_window axis[MGX_MAX_RANK];
    int64_t plane, places, taps; // elements of the input, of the output, of the kernel
};

// After axis[0..rank) are filled.
void mgx_unfold_count(struct mgx_unfold *u);
// Position of tap number t along each axis.
void mgx_unfold_tap(const struct mgx_unfold *u, int64_t t, int64_t *tap);
// row[0 .. to-from) = what `tap` sees at places from .. to of a packed plane.
void mgx_unfold_row(const struct mgx_unfold *u, const int64_t *tap, const union mgx_word *plane,
                    int64_t from, int64_t to, union mgx_word *row);
// plane += row, the other way round.
void mgx_fold_row(const struct mgx_unfold *u, const int64_t *tap, const union mgx_word *row,
                  int64_t from, int64_t to, bool ints, union mgx_word *plane);
