// SPDX-License-Identifier: MIT
// The loops of attention.h over rows of scores, compiled once per instruction set.
#include "targets/cpu/kernel/product/attention.h"

#include <math.h>

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

static float lanes_max(vf v)
{
    float lane[VL];
    vf_store(lane, v);
    float m = lane[0];
    for (int i = 1; i < VL; i++)
        m = lane[i] > m ? lane[i] : m;
    return m;
}

// The last scores of a row, fewer than a vector of them; behind them comes -infinity.
static void scale_tail(float *s, int n, float scale, const float *mask, int64_t mask_col)
{
    for (int j = 0; j < VL; j++)
        s[j] = j < n ? s[j] * scale + (mask ? mask[j * mask_col] : 0) : -INFINITY;
}

static void scale_rows(const struct mgx_tile *tile, float scale, const float *mask,
                       int64_t mask_row, int64_t mask_col, float *high)
{
    const int64_t n = tile->cols, whole = n - n % VL;
    const vf by = vf_set(scale);
    float *s = tile->data;
    for (int i = 0; i < tile->rows; i++, s += tile->stride, mask = mask ? mask + mask_row : NULL) {
        const bool same = !mask || !mask_col;
        const vf all = vf_set(mask && same ? *mask : 0);
        vf m = vf_set(high[i]);
        for (int64_t j = 0; j < whole; j += VL) {
            const vf x = vf_fma(vf_load(s + j), by, same ? all : vf_load(mask + j));
            m = vf_max(m, x);
            vf_store(s + j, x);
        }
        if (whole < n) {
            scale_tail(s + whole, (int)(n - whole), scale, mask ? mask + whole * mask_col : NULL,
                       mask_col);
            m = vf_max(m, vf_load(s + whole));
        }
        high[i] = lanes_max(m);
    }
}

// e^x for x <= 0, or 0 where that is below 2^-92: the largest power of a row is 1, and no float
// tells such an addend from none. Down among the denormals every operation takes a hundred times as
// long, the products with V included.
SIMD vf power(vf x)
{
    const vf least = vf_set(-64.0f);
    return vf_below(x, least, vf_zero(), vf_power(vf_max(least, x)));
}

static void exp_rows(const struct mgx_tile *tile, const float *high, float *sum)
{
    const int64_t n = tile->cols;
    float *s = tile->data;
    for (int i = 0; i < tile->rows; i++, s += tile->stride) {
        // A row of nothing but -infinity: 0, not NaN, as later blocks may have more.
        const vf m = vf_set(high[i] == -INFINITY ? 0 : high[i]);
        vf a = vf_zero(), b = vf_zero();
        int64_t j = 0;
        for (; j + 2 * VL <= n; j += 2 * VL) {
            const vf x = power(vf_sub(vf_load(s + j), m));
            const vf y = power(vf_sub(vf_load(s + j + VL), m));
            vf_store(s + j, x);
            vf_store(s + j + VL, y);
            a = vf_add(a, x);
            b = vf_add(b, y);
        }
        for (; j < n; j += VL) {
            const vf x = power(vf_sub(vf_load(s + j), m));
            vf_store(s + j, x);
            a = vf_add(a, x);
        }
        sum[i] = vf_sum(vf_add(a, b));
    }
}

static void multiply_rows(const struct mgx_tile *tile, const float *factor)
{
    const int64_t n = tile->cols;
    float *y = tile->data;
    for (int i = 0; i < tile->rows; i++, y += tile->stride) {
        const vf f = vf_set(factor[i]);
        int64_t j = 0;
        for (; j + VL <= n; j += VL)
            vf_store(y + j, vf_mul(vf_load(y + j), f));
        if (j < n)
            vf_store_some(y + j, vf_mul(vf_load_some(y + j, (int)(n - j)), f), (int)(n - j));
    }
}

static void cap_rows(const struct mgx_tile *tile, float scale, float cap)
{
    const vf in = vf_set(scale / cap), out = vf_set(cap);
    const int64_t n = tile->cols;
    float *s = tile->data;
    for (int i = 0; i < tile->rows; i++, s += tile->stride)
        for (int64_t j = 0; j < n; j += VL)
            vf_store(s + j, vf_mul(vf_tanh(vf_mul(vf_load(s + j), in)), out));
}

enum { NV = VL == 16 ? 4 : 2 }; // 4 rows of sums in half of the registers

// Up to NV vectors of columns, from column `at` on.
SIMD void weigh_part(int rows, const struct mgx_tile *p, const float *v, int64_t v_row,
                     const struct mgx_tile *y, int at, const float *factor)
{
    const int n = y->cols - at;
    vf sum[4][NV];
    int lanes[NV];
    UNROLL
    for (int k = 0; k < NV; k++)
        lanes[k] = n - k * VL >= VL ? VL : n > k * VL ? n - k * VL : 0;
    const bool whole = n >= NV * VL;
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int k = 0; k < NV; k++)
        sum[i][k] = vf_zero();
    v += at;
    for (int64_t j = 0; j < p->cols; j++, v += v_row) {
        vf x[NV];
        UNROLL
        for (int k = 0; k < NV; k++)
            x[k] = whole ? vf_load(v + k * VL) : vf_load_some(v + k * VL, lanes[k]);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const vf by = vf_set(p->data[i * p->stride + j]);
            UNROLL
            for (int k = 0; k < NV; k++)
                sum[i][k] = vf_fma(by, x[k], sum[i][k]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int k = 0; k < NV; k++)
        vf_store_some(y->data + i * y->stride + at + k * VL, vf_mul(sum[i][k], vf_set(factor[i])),
                      lanes[k]);
}

static void weigh_rows(const struct mgx_tile *p, const float *v, int64_t v_row,
                       const struct mgx_tile *y, const float *factor)
{
    for (int at = 0; at < y->cols; at += NV * VL) {
        if (p->rows == 1)
            weigh_part(1, p, v, v_row, y, at, factor);
        else if (p->rows == 2)
            weigh_part(2, p, v, v_row, y, at, factor);
        else if (p->rows == 3)
            weigh_part(3, p, v, v_row, y, at, factor);
        else
            weigh_part(4, p, v, v_row, y, at, factor);
    }
}

const struct mgx_attention_kernel NAME(mgx_f32_attention) = {
    KERNEL_BASE("f32_attention"), scale_rows, exp_rows, multiply_rows, cap_rows, weigh_rows};
