// SPDX-License-Identifier: MIT
// Body of the transposition, compiled once per instruction set; see transpose.h. Elements are moved
// as floats, never computed with. Costs about a cycle for every four elements in cache.
#include "targets/cpu/kernel/move/transpose.h"

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

// Interleaves `cols` lines; the compiler makes vectors of it once cols is a constant.
SIMD void interleave(const float *restrict from, int64_t from_col, float *restrict to, int64_t rows,
                     int cols)
{
    for (int64_t i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < cols; j++)
            to[i * cols + j] = from[j * from_col + i];
    }
}

// Four rows of VL columns.
SIMD void block(const float *from, int64_t from_col, float *to, int64_t to_row)
{
    vf in[4], out[4];
    UNROLL
    for (int q = 0; q < 4; q++)
        in[q] = vf_load_quads(from + q * from_col, from_col);
    vf_transpose4(in, out);
    UNROLL
    for (int q = 0; q < 4; q++)
        vf_store(to + q * to_row, out[q]);
}

static void elements(const float *from, int64_t from_col, float *to, int64_t to_row, int64_t rows,
                     int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[i * to_row + j] = from[j * from_col + i];
}

static void transpose(const float *from, int64_t from_col, float *to, int64_t to_row, int64_t rows,
                      int64_t cols)
{
    if (cols == 2 && to_row == 2) {
        interleave(from, from_col, to, rows, 2);
        return;
    }
    if (cols == 3 && to_row == 3) {
        interleave(from, from_col, to, rows, 3);
        return;
    }
    if (cols == 4 && to_row == 4) {
        interleave(from, from_col, to, rows, 4);
        return;
    }
    const int64_t quads = rows & ~(int64_t)3;
    int64_t j = 0;
    for (; j + VL <= cols; j += VL) {
        for (int64_t i = 0; i < quads; i += 4)
            block(from + j * from_col + i, from_col, to + i * to_row + j, to_row);
        elements(from + j * from_col + quads, from_col, to + quads * to_row + j, to_row,
                 rows - quads, VL);
    }
    elements(from + j * from_col, from_col, to + j, to_row, rows, cols - j);
}

const struct mgx_transpose_kernel NAME(mgx_x_transpose) = {KERNEL_BASE("x_transpose"), transpose};
