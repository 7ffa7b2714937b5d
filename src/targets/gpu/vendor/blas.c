// SPDX-License-Identifier: MIT
// See blas.h.
#include "targets/gpu/vendor/blas.h"

static void place(struct gpu_blas *b, int i, const struct gpu_vendor_matrix *m, int64_t lines,
                  int64_t length)
{
    b->matrix[i].rows = length;
    b->matrix[i].columns = lines;
    b->matrix[i].line = m->line;
    b->matrix[i].batch = m->batch;
}

// An operand of `rows` x `columns` by our count: its lines are BLAS's columns.
static void place_operand(struct gpu_blas *b, int i, const struct gpu_vendor_matrix *m,
                          int64_t rows, int64_t columns)
{
    b->transposed[i] = m->by_column;
    place(b, i, m, m->by_column ? columns : rows, m->by_column ? rows : columns);
}

struct gpu_blas gpu_blas_of(const struct gpu_vendor_product *p)
{
    struct gpu_blas b = {.m = p->columns, .n = p->rows, .k = p->depth};
    place_operand(&b, GPU_BLAS_FIRST, &p->b, p->depth, p->columns);
    place_operand(&b, GPU_BLAS_SECOND, &p->a, p->rows, p->depth);
    place(&b, GPU_BLAS_ADDED, p->last & GPU_VENDOR_ADD ? &p->add : &p->out, p->rows, p->columns);
    place(&b, GPU_BLAS_RESULT, &p->out, p->rows, p->columns);
    return b;
}

int gpu_blas_epilogue(unsigned last)
{
    enum { NONE = 1, RELU = 2, BIAS = 4, GELU = 32 };
    const int epilogue = (last & GPU_VENDOR_BIAS ? BIAS : 0) | (last & GPU_VENDOR_RELU ? RELU : 0) |
                         (last & GPU_VENDOR_GELU ? GELU : 0);
    return epilogue ? epilogue : NONE;
}
