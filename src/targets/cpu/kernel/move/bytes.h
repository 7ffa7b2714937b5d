// SPDX-License-Identifier: MIT
// Moving bytes: through a table, and from planes to pixels.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

struct mgx_bytes_kernel {
    struct mgx_kernel base;
    // to[i][j] = table[from[i][j]] for i < rows, j < cols; the two are the same or do not overlap.
    // Rows are so many bytes apart; those that touch cost nothing each.
    void (*look_up)(const uint8_t table[256], const uint8_t *from, int64_t from_row, uint8_t *to,
                    int64_t to_row, int64_t rows, int64_t cols);
    // to[i][c] = from[c][i] ^ flip for i < pixels, c < channels; flip too where c fills up whole
    // groups of four. Planes are `plane` bytes apart, pixels `pixel`, a multiple of 4.
    void (*interleave)(const uint8_t *from, int64_t plane, uint8_t *to, int64_t pixel,
                       int64_t pixels, int64_t channels, uint8_t flip);
};

MGX_KERNEL_KIND(bytes)
