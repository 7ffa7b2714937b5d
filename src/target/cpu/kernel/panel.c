// SPDX-License-Identifier: MIT
// Packing B into panels; see gemm.h for the layout. Costs one pass over B; columns whose depth is
// contiguous are transposed in registers, columns that are contiguous are copied.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "target/cpu/kernel/gemm.h"

int mgx_panel_width(const struct mgx_gemm_kernel *kernel, int64_t n, int64_t p)
{
    const int64_t left = n - p * kernel->cols;
    return left <= kernel->cols / 2 ? kernel->cols / 2 : kernel->cols;
}

bool mgx_panels_bytes(const struct mgx_gemm_kernel *kernel, int64_t depth, int64_t n, size_t *out)
{
    assert(depth >= 0 && n >= 0);
    const size_t cols = (size_t)kernel->cols;
    size_t bytes;
    if (!mgx_add_size((size_t)n, cols - 1, &bytes) ||
        !mgx_mul_size(bytes / cols, cols * sizeof(float), &bytes) ||
        !mgx_mul_size(bytes, (size_t)depth, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    if (n % kernel->cols && n % kernel->cols <= kernel->cols / 2)
        bytes -= (size_t)depth * cols / 2 * sizeof(float);
    *out = bytes;
    return true;
}

static void pack_rows(const float *b, int64_t b_row, int64_t depth, int cols, int width,
                      float *panel)
{
    for (int64_t k = 0; k < depth; k++, b += b_row, panel += width) {
        memcpy(panel, b, (size_t)cols * sizeof *b);
        memset(panel + cols, 0, (size_t)(width - cols) * sizeof *b);
    }
}

static void pack_strided(const float *b, int64_t b_row, int64_t b_col, int64_t depth, int cols,
                         int width, float *panel)
{
    for (int64_t k = 0; k < depth; k++, b += b_row, panel += width)
        for (int j = 0; j < width; j++)
            panel[j] = j < cols ? b[j * b_col] : 0.0f;
}

void mgx_panel_pack(const struct mgx_gemm_kernel *kernel, const float *b, int64_t b_row,
                    int64_t b_col, int64_t depth, int64_t n, int64_t p, float *panel)
{
    const int width = mgx_panel_width(kernel, n, p);
    const int64_t left = n - p * kernel->cols;
    const int cols = left < width ? (int)left : width;
    b += p * kernel->cols * b_col;
    if (b_col == 1)
        pack_rows(b, b_row, depth, cols, width, panel);
    else if (b_row == 1)
        kernel->pack_transposed(b, b_col, depth, cols, width, panel);
    else
        pack_strided(b, b_row, b_col, depth, cols, width, panel);
}
