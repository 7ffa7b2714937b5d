// SPDX-License-Identifier: MIT
// Body of the depthwise kernels, compiled once per instruction set; see dw.h. Widths 3, 5 and 7
// with strides 1 and 2 are unrolled; others loop over taps. Bound by loads: 10 input and 3 weight
// vectors for 24 products (3 x 3, stride 1).
#include "target/cpu/kernel/dw.h"

#include <stddef.h>

#include "target/cpu/kernel/simd.h"

enum { PIXELS = 7, MAX_TAPS = 7 }; // 7 divides the widths of image networks

// One step: up to 7 output pixels.
struct step {
    const struct mgx_dw_args *args;
    int64_t x;   // position of the first pixel's first tap
    int pixels;  // stored
    bool masked; // positions may be outside, or channels fewer than a vector
};

SIMD vf load_pixel(const struct step *s, const float *line, int64_t x)
{
    const float *p = line + x * s->args->pixel;
    if (!s->masked)
        return vf_load(p);
    const bool inside = (uint64_t)x < (uint64_t)s->args->width;
    return vf_load_some(p, inside ? s->args->channels : 0);
}

SIMD vf spread(vf v, int members, int m)
{
    return members == 1 ? v : vf_spread(v, members, m);
}

// Adds one line: every input pixel goes to the outputs it is a tap of.
SIMD void add_line(const struct step *s, const float *line, const float *w, int taps, int stride,
                   int members, int m, vf acc[PIXELS])
{
    vf wv[MAX_TAPS];
    UNROLL
    for (int k = 0; k < taps; k++)
        wv[k] = vf_load(w + k * VL);
    UNROLL
    for (int j = 0; j < (PIXELS - 1) * stride + taps; j++) {
        vf v = spread(load_pixel(s, line, s->x + j), members, m);
        IN_REGISTER(v);
        UNROLL
        for (int k = 0; k < taps; k++) {
            const int i = j - k;
            if (i >= 0 && i % stride == 0 && i / stride < PIXELS)
                acc[i / stride] = vf_fma(v, wv[k], acc[i / stride]);
        }
    }
}

SIMD void add_line_any(const struct step *s, const float *line, const float *w, int members, int m,
                       vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    for (int64_t k = 0; k < a->kernel; k++) {
        const vf wv = vf_load(w + k * VL);
        UNROLL
        for (int i = 0; i < PIXELS; i++) {
            const vf v = load_pixel(s, line, s->x + i * a->stride + k * a->dilation);
            acc[i] = vf_fma(spread(v, members, m), wv, acc[i]);
        }
    }
}

SIMD void store_pixels(const struct step *s, int64_t at, const vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    UNROLL
    for (int i = 0; i < PIXELS; i++) {
        if (s->masked && i >= s->pixels)
            continue;
        const int n = s->masked ? a->channels : VL;
        vf v = acc[i];
        if (a->residual) {
            const float *r = a->residual + (at + i) * a->residual_pixel;
            v = vf_add(v, s->masked ? vf_load_some(r, n) : vf_load(r));
        }
        if (a->clamp)
            v = vf_min(vf_set(a->high), vf_max(vf_set(a->low), v));
        if (s->masked)
            vf_store_some(a->y + (at + i) * a->y_pixel, v, n);
        else
            vf_store(a->y + (at + i) * a->y_pixel, v);
    }
}

// `taps` 0: any kernel, stride and dilation.
SIMD void run_step(const struct step *s, int64_t at, int taps, int stride, int members)
{
    const struct mgx_dw_args *a = s->args;
    vf acc[PIXELS];
    const vf bias = a->bias && !a->scale ? vf_load_some(a->bias, a->channels) : vf_zero();
    UNROLL
    for (int i = 0; i < PIXELS; i++)
        acc[i] = bias;
    for (int l = 0; l < a->line_count; l++) {
        const float *w = a->weights + a->kernel_rows[l] * members * a->kernel * VL;
        UNROLL
        for (int m = 0; m < members; m++, w += a->kernel * VL) {
            if (taps)
                add_line(s, a->lines[l], w, taps, stride, members, m, acc);
            else
                add_line_any(s, a->lines[l], w, members, m, acc);
        }
    }
    if (a->scale) {
        const vf scale = vf_load_some(a->scale, a->channels);
        const vf added = a->bias ? vf_load_some(a->bias, a->channels) : vf_zero();
        UNROLL
        for (int i = 0; i < PIXELS; i++)
            acc[i] = vf_fma(acc[i], scale, added);
    }
    store_pixels(s, at, acc);
}

SIMD void run_row(const struct mgx_dw_args *a, int taps, int stride, int members)
{
    const int64_t reach = (PIXELS - 1) * a->stride + (a->kernel - 1) * a->dilation;
    struct step s = {.args = a, .x = a->first};
    for (int64_t at = 0; at < a->count; at += PIXELS, s.x += PIXELS * a->stride) {
        const int64_t left = a->count - at;
        if (left >= PIXELS && s.x >= 0 && s.x + reach < a->width && a->channels == VL) {
            s.masked = false;
            run_step(&s, at, taps, stride, members);
        } else {
            s.masked = true;
            s.pixels = left < PIXELS ? (int)left : PIXELS;
            run_step(&s, at, taps, stride, members);
        }
    }
}

#define ROW(taps, stride, members)                                                                 \
    static void row_##taps##_##stride##_##members(const struct mgx_dw_args *a)                     \
    {                                                                                              \
        run_row(a, taps, stride, members);                                                         \
    }
ROW(3, 1, 1)
ROW(3, 2, 1)
ROW(5, 1, 1)
ROW(5, 2, 1)
ROW(7, 1, 1)
ROW(0, 0, 1)
ROW(0, 0, 2)
ROW(3, 1, 4)
ROW(3, 2, 4)
ROW(0, 0, 4)
#if !defined(VECTOR_OF_4)
ROW(3, 1, 8)
ROW(3, 2, 8)
ROW(0, 0, 8)
#endif

static const struct {
    int kernel, stride, members; // kernel 0: any, with any dilation
    void (*run)(const struct mgx_dw_args *args);
} rows[] = {
    {3, 1, 1, row_3_1_1}, {3, 2, 1, row_3_2_1}, {5, 1, 1, row_5_1_1}, {5, 2, 1, row_5_2_1},
    {7, 1, 1, row_7_1_1}, {0, 0, 1, row_0_0_1}, {0, 0, 2, row_0_0_2}, {3, 1, 4, row_3_1_4},
    {3, 2, 4, row_3_2_4}, {0, 0, 4, row_0_0_4},
#if !defined(VECTOR_OF_4)
    {3, 1, 8, row_3_1_8}, {3, 2, 8, row_3_2_8}, {0, 0, 8, row_0_0_8},
#endif
};

static void row(const struct mgx_dw_args *a)
{
    size_t i = 0;
    while (rows[i].members != a->members ||
           (rows[i].kernel &&
            (rows[i].kernel != a->kernel || rows[i].stride != a->stride || a->dilation != 1)))
        i++;
    rows[i].run(a);
}
