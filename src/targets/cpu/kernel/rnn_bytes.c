// SPDX-License-Identifier: MIT
// Recurrent layers of bytes: what their products need beside what products of floats do; see rnn.h.
//
//     a = clamp(round(x / scale) + zero)          scale, zero of the values' range with 0 in it
//     c[n] = (sum over k of (a - zero)(w - q)[k][n]) * (scale * scale of w[n]) + bias[n]
//
// -zero * (sum of the column) is what the sums begin with, so a step's zero point costs one
// multiplication for a column.
#include <assert.h>
#include <math.h>

#include "targets/cpu/kernel/convert.h"
#include "targets/cpu/kernel/rnn.h"
#include "targets/cpu/kernel/rows.h"

void mgx_rnn_widen(mgx_isa isa, const float *x, int64_t n, struct mgx_rnn_range *range)
{
    const struct mgx_rows_kernel *rows = mgx_rows_kernel(isa);
    if (n == 0)
        return;
    const float low = rows->fold(MGX_FOLD_MIN, x, n), high = rows->fold(MGX_FOLD_MAX, x, n);
    range->low = low >= range->low ? range->low : low; // and where it is NaN
    range->high = high <= range->high ? range->high : high;
}

struct mgx_requant mgx_rnn_requant(const struct mgx_rnn_range *range)
{
    const float step = (range->high - range->low) / 255, scale = step == 0 ? 1 : step;
    const float zero = nearbyintf(-range->low / scale);
    const int q = zero > 0 ? (int)fminf(zero, 255) : 0; // 0 for NaN
    return (struct mgx_requant){
        .divisor = scale, .low = (float)-q, .high = (float)(255 - q), .zero = q};
}

void mgx_rnn_multiply(const struct mgx_rnn_product *p, const struct mgx_requant *q,
                      struct mgx_pool *pool)
{
    const struct mgx_gemm_desc *d = &p->plan->desc;
    assert(mgx_kernel_shift(p->plan->kernel, d->a_type) == 0);
    mgx_gates_kernel(d->isa)->factors(p->scale, p->sums, q->divisor, q->zero, d->n, p->start,
                                      p->factors);
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
            sum += w->type == MGX_KERNEL_S8 ? (int8_t)*v : *v;
        sums[i] = (int32_t)sum;
    }
}
