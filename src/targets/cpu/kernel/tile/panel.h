// SPDX-License-Identifier: MIT
// Panels: B as micro-kernels read it. A panel has some columns of B over the whole depth, `group`
// values of k of a column in 32 bits, and is read from the first byte to the last; columns that B
// does not have are zeros. The last panel is half as wide where that is enough.
//
//     [k0: columns 0..31][k1: columns 0..31] ...     f32; of bytes each column has 4 k in a row
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/tile/tile.h"

// Rows of 32 bits that `depth` elements take, and bytes of a matrix of so many rows and n columns;
// false when those do not fit.
int64_t mgx_panel_rows(const struct mgx_gemm_kernel *kernel, int64_t depth);
bool mgx_panels_bytes(const struct mgx_gemm_kernel *kernel, int64_t rows, int64_t n, size_t *out);
// Width in memory of panel `p`: that of the kernel, or half of it for a last one that is short.
int mgx_panel_width(const struct mgx_gemm_kernel *kernel, int64_t n, int64_t p);

// What is packed: a `depth` x `n` matrix, with strides in elements.
struct mgx_panel_source {
    const void *at;
    enum mgx_kernel_type type;
    int64_t row, col, depth, n;
};

// Packs panel `p` of it.
void mgx_panel_pack(const struct mgx_gemm_kernel *kernel, const struct mgx_panel_source *b,
                    int64_t p, void *panel);
// Takes a zero point off every column of a panel of 16-bit values of so many k.
void mgx_panel_shift(void *panel, int64_t depth, int width, int cols, const int32_t *zero);
// Sums have to start with this when all of A has been raised by `shift`: for every column -shift
// times the sum of the packed values.
void mgx_panel_starts(const struct mgx_gemm_kernel *kernel, const void *panel, int64_t rows,
                      int width, int shift, int32_t *starts);
