// SPDX-License-Identifier: MIT
// The loops of pool.h, compiled once per instruction set: strips of up to four vectors of channels,
// all pixels.
#include "target/cpu/kernel/pool.h"

#include <math.h>

#include "target/cpu/kernel/simd.h"

SIMD void strip(const struct mgx_pool_args *a, bool max, int nv, int64_t c, int tail)
{
    vf s[4];
    for (int v = 0; v < nv; v++)
        s[v] = vf_set(max ? -INFINITY : 0);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            const float *p = a->x + i * a->row_stride + j * a->col_stride + c;
            for (int v = 0; v < nv; v++) {
                const vf x = tail ? vf_load_some(p, tail) : vf_load(p + v * VL);
                s[v] = max ? vf_max(s[v], x) : vf_add(s[v], x);
            }
        }
    for (int v = 0; v < nv; v++) {
        const vf r = max ? s[v] : vf_mul(s[v], vf_set(a->scale));
        if (tail)
            vf_store_some(a->y + c, r, tail);
        else
            vf_store(a->y + c + v * VL, r);
    }
}

SIMD void pixel(const struct mgx_pool_args *a, bool max)
{
    int64_t c = 0;
    for (; c + 4 * VL <= a->channels; c += 4 * VL)
        strip(a, max, 4, c, 0);
    for (; c + VL <= a->channels; c += VL)
        strip(a, max, 1, c, 0);
    if (c < a->channels)
        strip(a, max, 1, c, (int)(a->channels - c));
}

void NAME(mgx_pool_pixel)(const struct mgx_pool_args *a)
{
    if (a->max)
        pixel(a, true);
    else
        pixel(a, false);
}

void NAME(mgx_blend_pixel)(const float *const p[4], const float w[4], float *y, int64_t channels)
{
    const vf a = vf_set(w[0]), b = vf_set(w[1]), c = vf_set(w[2]), d = vf_set(w[3]);
    for (int64_t i = 0; i < channels; i += VL) {
        const int n = channels - i < VL ? (int)(channels - i) : VL;
        vf s = vf_mul(a, vf_load_some(p[0] + i, n));
        s = vf_fma(b, vf_load_some(p[1] + i, n), s);
        s = vf_fma(c, vf_load_some(p[2] + i, n), s);
        s = vf_fma(d, vf_load_some(p[3] + i, n), s);
        vf_store_some(y + i, s, n);
    }
}
