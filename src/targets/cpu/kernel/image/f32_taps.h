// SPDX-License-Identifier: MIT
// The loops of taps.h, compiled once per instruction set: strips of up to four vectors of channels,
// all taps.
#include "targets/cpu/kernel/image/taps.h"

#include <math.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

SIMD void strip(const struct mgx_tap_args *a, bool max, int nv, int64_t c, int tail)
{
    vf s[4];
    for (int v = 0; v < nv; v++) {
        float *y = a->y + c + v * VL;
        s[v] = a->first ? vf_set(max ? -INFINITY : 0) : tail ? vf_load_some(y, tail) : vf_load(y);
    }
    for (int i = 0; i < a->count; i++) {
        const float *p = a->x + a->offset[i] + c;
        const vf w = vf_set(a->weight[i]);
        for (int v = 0; v < nv; v++) {
            const vf x = tail ? vf_load_some(p, tail) : vf_load(p + v * VL);
            s[v] = max ? vf_max(s[v], vf_mul(w, x)) : vf_fma(w, x, s[v]);
        }
    }
    for (int v = 0; v < nv; v++) {
        const vf r = a->divide == 1 ? s[v] : vf_div(s[v], vf_set(a->divide));
        if (tail)
            vf_store_some(a->y + c, r, tail);
        else
            vf_store(a->y + c + v * VL, r);
    }
}

SIMD void pixel(const struct mgx_tap_args *a, bool max)
{
    int64_t c = 0;
    for (; c + 4 * VL <= a->channels; c += 4 * VL)
        strip(a, max, 4, c, 0);
    for (; c + VL <= a->channels; c += VL)
        strip(a, max, 1, c, 0);
    if (c < a->channels)
        strip(a, max, 1, c, (int)(a->channels - c));
}

static void tap_pixel(const struct mgx_tap_args *a)
{
    if (a->max)
        pixel(a, true);
    else
        pixel(a, false);
}

const struct mgx_tap_kernel NAME(mgx_f32_taps) = {KERNEL_BASE("f32_taps"), tap_pixel};
