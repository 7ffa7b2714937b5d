// SPDX-License-Identifier: MIT
// Recurrent layers of bytes: what their products need beside what products of floats do; see rnn.h.
//
//     a = clamp(round(x / scale) + zero)          scale, zero of the values' range with 0 in it
//     c[n] = (sum over k of (a - zero)(w - q)[k][n]) * (scale * scale of w[n]) + bias[n]
//
// -zero * (sum of the column) is what the sums begin with, so a step's zero point costs one
// multiplication for a column.
#include <assert.h>

#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/rnn.h"
#include "targets/cpu/kernel/rows/byte_range.h"

void mgx_rnn_multiply(const struct mgx_rnn_product *p, const struct mgx_range_bytes *how,
                      struct mgx_pool *pool)
{
    const struct mgx_gemm_desc *d = &p->plan->desc;
    assert(mgx_kernel_shift(p->plan->kernel, d->a_type) == 0);
    const struct mgx_byte_range_kernel *range = mgx_byte_range_kernel(d->isa);
    range->start(p->sums, how->zero, d->n, p->start);
    range->factors(p->scale, how->scale, d->n, p->factors);
    const struct mgx_gemm_args args = {.a = p->a,
                                       .b = p->packed,
                                       .bias = p->bias,
                                       .scale = p->factors,
                                       .start = p->start,
                                       .c = p->c,
                                       .workspace = p->workspace};
    mgx_gemm_run(p->plan, &args, pool);
}

void mgx_rnn_sums(const struct mgx_rnn_bytes *w, int64_t rows, int64_t depth, int32_t *sums)
{
    const uint8_t *v = w->values;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t zero = w->zero ? w->zero[i] : 0;
        int64_t sum = -zero * depth;
        for (int64_t k = 0; k < depth; k++, v++)
            sum += mgx_kernel_byte(w->type, *v);
        sums[i] = (int32_t)sum;
    }
}
