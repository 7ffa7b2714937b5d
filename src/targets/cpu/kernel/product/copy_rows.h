// SPDX-License-Identifier: MIT
// Rows of A, of any strides, copied side by side and converted on the way: what a product reads
// where A does not lie as its kernel wants it.
#pragma once

#include "targets/cpu/kernel/tile/tile.h"

struct mgx_copy_rows {
    mgx_isa isa;
    enum mgx_kernel_type from, to;
    int64_t row, col;       // elements from row to row and from column to column
    int64_t rows, elements; // of a row
    int64_t to_row;         // bytes from row to row of the copy
    int64_t to_bytes;       // of a row of the copy: zeros behind its elements
};

void mgx_copy_rows(const struct mgx_copy_rows *copy, const char *from, char *to);
