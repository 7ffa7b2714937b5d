// SPDX-License-Identifier: MIT
// See copy_rows.h. One pass; columns that lie side by side in memory are read along them.
#include "targets/cpu/kernel/product/copy_rows.h"

#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/move/convert.h"

// Columns of memory are read along them: A transposed.
static void copy_transposed(const struct mgx_copy_rows *c, const char *from, char *to)
{
    const float *x = (const float *)(const void *)from;
    float *y = (float *)(void *)to;
    const int64_t row = c->to_row / (int64_t)sizeof *y;
    for (int64_t k = 0; k < c->elements; k++)
        for (int64_t i = 0; i < c->rows; i++)
            y[i * row + k] = x[k * c->col + i];
}

static void copy_floats(const char *from, int64_t step, int64_t elements, char *to)
{
    const float *x = (const float *)(const void *)from;
    float *y = (float *)(void *)to;
    for (int64_t k = 0; k < elements; k++)
        y[k] = x[k * step];
}

// Gathers, in pieces, what is not contiguous.
static void copy_strided(const struct mgx_copy_rows *c, const char *from, mgx_convert_fn convert,
                         char *to)
{
    enum { PIECE = 64 };
    const int64_t size = mgx_kernel_size(c->from), step = c->col * size;
    const int64_t to_size = mgx_kernel_size(c->to);
    char line[PIECE * 4];
    for (int64_t k = 0; k < c->elements; k += PIECE) {
        const int64_t count = mgx_min_i64(PIECE, c->elements - k);
        for (int64_t i = 0; i < count; i++, from += step)
            memcpy(line + i * size, from, (size_t)size);
        convert(line, to + k * to_size, count);
    }
}

void mgx_copy_rows(const struct mgx_copy_rows *c, const char *from, char *to)
{
    const bool floats = mgx_kernel_is_plain(c->from) && mgx_kernel_is_plain(c->to);
    const mgx_convert_fn convert = mgx_convert(c->isa, c->from, c->to);
    const int64_t used = c->elements * mgx_kernel_size(c->to);
    if (c->row == 1 && floats) {
        copy_transposed(c, from, to);
        return;
    }
    for (int64_t i = 0; i < c->rows; i++, to += c->to_row) {
        const char *x = from + i * c->row * mgx_kernel_size(c->from);
        if (c->col == 1)
            convert(x, to, c->elements);
        else if (floats)
            copy_floats(x, c->col, c->elements, to);
        else
            copy_strided(c, x, convert, to);
        memset(to + used, 0, (size_t)(c->to_bytes - used));
    }
}
