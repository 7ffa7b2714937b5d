// SPDX-License-Identifier: MIT
// The walks over a state of linear.h, compiled once per instruction set.
#include "targets/cpu/kernel/product/linear.h"

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

// Sums of TURNS rows are made apart: one chain of additions would wait for itself.
enum { NV = MGX_LINEAR_COLUMNS / VL, TURNS = NV < 8 ? 8 / NV : 1 };

SIMD void clear(vf sum[TURNS][NV])
{
    UNROLL
    for (int u = 0; u < TURNS; u++)
        UNROLL
    for (int n = 0; n < NV; n++)
        sum[u][n] = vf_zero();
}

SIMD void join(vf sum[TURNS][NV], vf *out)
{
    UNROLL
    for (int n = 0; n < NV; n++) {
        out[n] = sum[0][n];
        UNROLL
        for (int u = 1; u < TURNS; u++)
            out[n] = vf_add(out[n], sum[u][n]);
    }
}

SIMD void read_row(const float *s, float x, vf *sum)
{
    const vf by = vf_set(x);
    UNROLL
    for (int n = 0; n < NV; n++)
        sum[n] = vf_fma(by, vf_load(s + n * VL), sum[n]);
}

// S' x.
SIMD void read_state(const float *s, const float *x, int64_t rows, vf *out)
{
    vf sum[TURNS][NV];
    int64_t i = 0;
    clear(sum);
    for (; i + TURNS <= rows; i += TURNS)
        UNROLL
    for (int u = 0; u < TURNS; u++)
        read_row(s + (i + u) * MGX_LINEAR_COLUMNS, x[i + u], sum[u]);
    for (; i < rows; i++)
        read_row(s + i * MGX_LINEAR_COLUMNS, x[i], sum[0]);
    join(sum, out);
}

SIMD void advance_row(float *s, float by, float k, float q, const vf *d, vf *sum)
{
    const vf keep = vf_set(by), add = vf_set(k), read = vf_set(q);
    UNROLL
    for (int n = 0; n < NV; n++) {
        const vf x = vf_fma(keep, vf_load(s + n * VL), vf_mul(add, d[n]));
        vf_store(s + n * VL, x);
        sum[n] = vf_fma(read, x, sum[n]);
    }
}

// S = by S + k d', and S' q of that.
SIMD void advance(float *s, const float *by, const float *k, const float *q, int64_t rows,
                  const vf *d, vf *out)
{
    vf sum[TURNS][NV];
    int64_t i = 0;
    clear(sum);
    for (; i + TURNS <= rows; i += TURNS)
        UNROLL
    for (int u = 0; u < TURNS; u++)
        advance_row(s + (i + u) * MGX_LINEAR_COLUMNS, by[i + u], k[i + u], q[i + u], d, sum[u]);
    for (; i < rows; i++)
        advance_row(s + i * MGX_LINEAR_COLUMNS, by[i], k[i], q[i], d, sum[0]);
    join(sum, out);
}

// What a step keeps of each row, and that times k.
SIMD void make_decay(const struct mgx_linear_part *p, const float *decay, const float *k)
{
    const vf all = decay && !p->decay_each ? vf_exp(vf_set(*decay)) : vf_set(1);
    for (int64_t i = 0; i < p->rows; i += VL) {
        const int n = p->rows - i < VL ? (int)(p->rows - i) : VL;
        const vf by = p->decay_each ? vf_exp(vf_load_some(decay + i, n)) : all;
        vf_store_some(p->by + i, by, n);
        vf_store_some(p->seen_by + i, vf_mul(by, vf_load_some(k + i, n)), n);
    }
}

SIMD int lanes(const struct mgx_linear_part *p, int n)
{
    const int left = p->columns - n * VL;
    return left < 0 ? 0 : left < VL ? left : VL;
}

SIMD void put(const struct mgx_linear_part *p, float *y, const vf *sum)
{
    UNROLL
    for (int n = 0; n < NV; n++)
        if (lanes(p, n))
            vf_store_some(y + n * VL, vf_mul(vf_set(p->scale), sum[n]), lanes(p, n));
}

SIMD void step(const struct mgx_linear_part *p, int64_t t)
{
    const float *k = p->k + t * p->k_step, *q = p->q + t * p->q_step, *v = p->v + t * p->v_step;
    float *y = p->y + t * p->y_step;
    vf d[NV], sum[NV];
    make_decay(p, p->decay ? p->decay + t * p->decay_step : NULL, k);
    UNROLL
    for (int n = 0; n < NV; n++)
        d[n] = lanes(p, n) ? vf_load_some(v + n * VL, lanes(p, n)) : vf_zero();
    if (p->delta) {
        const vf rate = vf_set(p->beta[t * p->beta_step]);
        read_state(p->s, p->seen_by, p->rows, sum);
        UNROLL
        for (int n = 0; n < NV; n++)
            d[n] = vf_mul(rate, vf_sub(d[n], sum[n]));
    }
    advance(p->s, p->by, k, q, p->rows, d, sum);
    put(p, y, sum);
    for (int64_t i = 1; i < p->share; i++) {
        read_state(p->s, q + i * p->q_head, p->rows, sum);
        put(p, y + i * p->y_head, sum);
    }
}

static void run(const struct mgx_linear_part *p)
{
    for (int64_t t = 0; t < p->steps; t++)
        step(p, t);
}

const struct mgx_linear_kernel NAME(mgx_f32_linear) = {KERNEL_BASE("f32_linear"), run};
