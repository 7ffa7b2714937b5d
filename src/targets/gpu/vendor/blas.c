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
