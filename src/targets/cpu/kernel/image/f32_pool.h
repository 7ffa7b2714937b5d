// SPDX-License-Identifier: MIT
// The loops of pool.h, compiled once per instruction set: strips of vectors of channels, all
// pixels. A strip is as wide as registers allow, since a large window comes from memory once per
// strip.
#include "targets/cpu/kernel/image/pool.h"

#include <math.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { STRIP = VL == 16 ? 8 : 4 };

SIMD vf load_part(const float *p, bool whole, int lanes)
{
    return whole ? vf_load(p) : vf_load_some(p, lanes);
}

// What a strip makes of its window: the sum, the maximum, or the maximum that a NaN wins.
enum fold { SUM, MAX, MAX_OR_NAN };

SIMD vf folded(enum fold fold, vf s, vf x)
{
    return fold == SUM ? vf_add(s, x) : fold == MAX ? vf_max(s, x) : vf_nan_or(s, vf_max(s, x));
}

// nv vectors from channel c on, `lanes` of the last one. vf_max loses a NaN that another value
// follows: MAX sums beside, and false says that the sums became NaN and nothing was stored.
SIMD bool strip(const struct mgx_pool_args *a, enum fold fold, int nv, int64_t c, int lanes)
{
    vf s[STRIP], sum[STRIP], all = vf_zero();
    UNROLL
    for (int v = 0; v < nv; v++) {
        s[v] = vf_set(fold == SUM ? 0 : -INFINITY);
        sum[v] = vf_zero();
    }
    for (int64_t z = 0; z < a->planes; z++)
        for (int64_t i = 0; i < a->rows; i++) {
            const float *p = a->x + z * a->plane_stride + i * a->row_stride + c;
            for (int64_t j = 0; j < a->cols; j++, p += a->col_stride) {
                UNROLL
                for (int v = 0; v < nv; v++) {
                    const vf x = load_part(p + v * VL, v + 1 < nv || lanes == VL, lanes);
                    s[v] = folded(fold, s[v], x);
                    sum[v] = fold == MAX ? vf_add(sum[v], x) : sum[v];
                }
            }
        }
    UNROLL
    for (int v = 0; v < nv; v++)
        all = vf_add(all, sum[v]);
    if (fold == MAX && isnan(vf_sum(all)))
        return false;
    UNROLL
    for (int v = 0; v < nv; v++) {
        const vf r = fold == SUM ? vf_mul(s[v], vf_set(a->scale)) : s[v];
        if (v + 1 < nv || lanes == VL)
            vf_store(a->y + c + v * VL, r);
        else
            vf_store_some(a->y + c + v * VL, r, lanes);
    }
    return true;
}

// The maxima again, a vector at a time.
static __attribute__((noinline)) void strip_with_nan(const struct mgx_pool_args *a, int64_t c,
                                                     int64_t channels)
{
    for (const int64_t end = c + channels; c < end; c += VL)
        strip(a, MAX_OR_NAN, 1, c, end - c < VL ? (int)(end - c) : VL);
}

SIMD void any_strip(const struct mgx_pool_args *a, bool max, int nv, int64_t c, int lanes)
{
    if (!max)
        strip(a, SUM, nv, c, lanes);
    else if (!strip(a, MAX, nv, c, lanes))
        strip_with_nan(a, c, (nv - 1) * VL + lanes);
}

SIMD void last_strip(const struct mgx_pool_args *a, bool max, int nv, int64_t c, int lanes)
{
    if (lanes == VL)
        any_strip(a, max, nv, c, VL);
    else
        any_strip(a, max, nv, c, lanes);
}

SIMD void pixel(const struct mgx_pool_args *a, bool max)
{
    int64_t c = 0;
    for (; c + STRIP * VL <= a->channels; c += STRIP * VL)
        any_strip(a, max, STRIP, c, VL);
    const int left = (int)(a->channels - c), lanes = left % VL ? left % VL : VL;
    switch ((left + VL - 1) / VL) {
    case 1:
        last_strip(a, max, 1, c, lanes);
        break;
    case 2:
        last_strip(a, max, 2, c, lanes);
        break;
    case 3:
        last_strip(a, max, 3, c, lanes);
        break;
    case 4:
        last_strip(a, max, 4, c, lanes);
        break;
#if defined(__AVX512F__)
    case 5:
        last_strip(a, max, 5, c, lanes);
        break;
    case 6:
        last_strip(a, max, 6, c, lanes);
        break;
    case 7:
        last_strip(a, max, 7, c, lanes);
        break;
    case 8:
        last_strip(a, max, 8, c, lanes);
        break;
#endif
    default:
        break;
    }
}

static void pool_pixel(const struct mgx_pool_args *a)
{
    if (a->max)
        pixel(a, true);
    else
        pixel(a, false);
}

static void blend_pixel(const float *const p[4], const float w[4], float *y, int64_t channels)
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

const struct mgx_pool_kernel NAME(mgx_f32_pool) = {KERNEL_BASE("f32_pool"), pool_pixel,
                                                   blend_pixel};
