// SPDX-License-Identifier: MIT
// Body of the depthwise kernels, compiled once per instruction set; see dw.h. Widths 3, 5 and 7
// with strides 1 and 2 are unrolled; others loop over taps.
//
// Where there are 32 registers two rows of outputs are summed at once: 14 accumulators, the weights
// of an input line's two kernel rows, one input. 3 x 3, stride 1: 36 loads of input and 12 of
// weights for 126 products, so the multipliers are the bound as long as the input comes from L2.
#include "target/cpu/kernel/dw.h"

#include <stddef.h>

#include "target/cpu/kernel/simd.h"

enum {
    PIXELS = 7, // divides the widths of image networks
    MAX_TAPS = 7,
    ROWS = 2,
    PAIRS = VL == 16, // whether the accumulators of two rows fit
};

// One step: up to 7 output pixels of `rows` rows.
struct step {
    const struct mgx_dw_args *args;
    int64_t x;   // position of the first pixel's first tap
    int pixels;  // stored
    bool masked; // positions may be outside, or channels fewer than a vector
};

SIMD bool is_inside(const struct step *s, int64_t x)
{
    return !s->masked || (uint64_t)x < (uint64_t)s->args->width;
}

SIMD vf load_pixel(const struct step *s, const float *line, int64_t x)
{
    const float *p = line + x * s->args->pixel;
    return s->masked ? vf_load_some(p, s->args->channels) : vf_load(p);
}

SIMD vf spread(vf v, int members, int m)
{
    return members == 1 ? v : vf_spread(v, members, m);
}

// Adds one line to rows first, ... < first + count: every input pixel goes to the outputs it is a
// tap of. w[r]: weights of the kernel row that the line is to row r.
SIMD void add_line(const struct step *s, const float *line, const float *const w[ROWS], int first,
                   int count, int taps, int stride, int members, int m, vf acc[ROWS][PIXELS])
{
    vf wv[ROWS][MAX_TAPS];
    UNROLL
    for (int r = first; r < first + count; r++) {
        UNROLL
        for (int k = 0; k < taps; k++)
            wv[r][k] = vf_load(w[r] + k * VL);
    }
    UNROLL
    for (int j = 0; j < (PIXELS - 1) * stride + taps; j++) {
        if (!is_inside(s, s->x + j))
            continue;
        vf v = spread(load_pixel(s, line, s->x + j), members, m);
        IN_REGISTER(v);
        UNROLL
        for (int k = 0; k < taps; k++) {
            const int i = j - k;
            if (i < 0 || i % stride || i / stride >= PIXELS)
                continue;
            UNROLL
            for (int r = first; r < first + count; r++)
                acc[r][i / stride] = vf_fma(v, wv[r][k], acc[r][i / stride]);
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
            const int64_t x = s->x + i * a->stride + k * a->dilation;
            if (is_inside(s, x))
                acc[i] = vf_fma(spread(load_pixel(s, line, x), members, m), wv, acc[i]);
        }
    }
}

SIMD void store_pixels(const struct step *s, int64_t at, int row, const vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    const bool part = s->masked && a->channels < VL;
    float *y = a->y + row * a->y_row + at * a->y_pixel;
    const float *residual =
        a->residual ? a->residual + row * a->residual_row + at * a->residual_pixel : NULL;
    UNROLL
    for (int i = 0; i < PIXELS; i++) {
        if (s->masked && i >= s->pixels)
            continue;
        vf v = acc[i];
        if (residual) {
            const float *r = residual + i * a->residual_pixel;
            v = vf_add(v, part ? vf_load_some(r, a->channels) : vf_load(r));
        }
        if (a->clamp)
            v = vf_min(vf_set(a->high), vf_max(vf_set(a->low), v));
        if (part)
            vf_store_some(y + i * a->y_pixel, v, a->channels);
        else
            vf_store(y + i * a->y_pixel, v);
    }
}

SIMD void add_row(const struct step *s, int row, int taps, int stride, int members,
                  vf acc[ROWS][PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    for (int l = 0; l < a->line_count; l++) {
        const int kernel_row = a->kernel_rows[ROWS * l + row];
        if (kernel_row < 0)
            continue;
        const float *line = a->lines[l] + a->offset;
        const float *w[ROWS] = {a->weights + kernel_row * members * a->kernel * VL};
        UNROLL
        for (int m = 0; m < members; m++, w[0] += a->kernel * VL) {
            if (taps)
                add_line(s, line, w, 0, 1, taps, stride, members, m, acc);
            else
                add_line_any(s, line, w[0], members, m, acc[0]);
        }
    }
}

SIMD void add_pair(const struct step *s, int taps, int stride, vf acc[ROWS][PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    for (int l = 0; l < a->line_count; l++) {
        const int *kernel_row = &a->kernel_rows[ROWS * l];
        const float *line = a->lines[l] + a->offset;
        const float *const w[ROWS] = {a->weights + kernel_row[0] * taps * VL,
                                      a->weights + kernel_row[1] * taps * VL};
        if (kernel_row[1] < 0)
            add_line(s, line, w, 0, 1, taps, stride, 1, 0, acc);
        else if (kernel_row[0] < 0)
            add_line(s, line, w, 1, 1, taps, stride, 1, 0, acc);
        else
            add_line(s, line, w, 0, 2, taps, stride, 1, 0, acc);
    }
}

SIMD void finish_row(const struct step *s, int64_t at, int row, vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    if (a->scale) {
        const vf scale = vf_load_some(a->scale, a->channels);
        const vf added = a->bias ? vf_load_some(a->bias, a->channels) : vf_zero();
        UNROLL
        for (int i = 0; i < PIXELS; i++)
            acc[i] = vf_fma(acc[i], scale, added);
    }
    store_pixels(s, at, row, acc);
}

// Output row `row`, or both with rows = 2. `taps` 0: any kernel, stride and dilation.
SIMD void run_step(const struct step *s, int64_t at, int row, int rows, int taps, int stride,
                   int members)
{
    const struct mgx_dw_args *a = s->args;
    vf acc[ROWS][PIXELS];
    const vf bias = a->bias && !a->scale ? vf_load_some(a->bias, a->channels) : vf_zero();
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int i = 0; i < PIXELS; i++)
            acc[r][i] = bias;
    }
    if (rows == 2)
        add_pair(s, taps, stride, acc);
    else
        add_row(s, row, taps, stride, members, acc);
    UNROLL
    for (int r = 0; r < rows; r++)
        finish_row(s, at, row + r, acc[r]);
}

SIMD void run_rows(const struct mgx_dw_args *a, int row, int rows, int taps, int stride,
                   int members)
{
    const int64_t reach = (PIXELS - 1) * a->stride + (a->kernel - 1) * a->dilation;
    struct step s = {.args = a, .x = a->first};
    for (int64_t at = 0; at < a->count; at += PIXELS, s.x += PIXELS * a->stride) {
        const int64_t left = a->count - at;
        s.masked = left < PIXELS || s.x < 0 || s.x + reach >= a->width || a->channels < VL;
        if (!s.masked) {
            s.masked = false;
            run_step(&s, at, row, rows, taps, stride, members);
        } else {
            s.masked = true;
            s.pixels = left < PIXELS ? (int)left : PIXELS;
            run_step(&s, at, row, rows, taps, stride, members);
        }
    }
}

SIMD void run_any(const struct mgx_dw_args *a, int taps, int stride, int members)
{
    if (PAIRS && members == 1 && taps && a->rows == 2) {
        run_rows(a, 0, 2, taps, stride, 1);
        return;
    }
    for (int r = 0; r < a->rows; r++)
        run_rows(a, r, 1, taps, stride, members);
}

#define RUN(taps, stride, members)                                                                 \
    static void run_##taps##_##stride##_##members(const struct mgx_dw_args *a)                     \
    {                                                                                              \
        run_any(a, taps, stride, members);                                                         \
    }
RUN(3, 1, 1)
RUN(3, 2, 1)
RUN(5, 1, 1)
RUN(5, 2, 1)
RUN(7, 1, 1)
RUN(0, 0, 1)
RUN(0, 0, 2)
RUN(3, 1, 4)
RUN(3, 2, 4)
RUN(0, 0, 4)
#if !defined(VECTOR_OF_4)
RUN(3, 1, 8)
RUN(3, 2, 8)
RUN(0, 0, 8)
#endif

static const struct {
    int kernel, stride, members; // kernel 0: any, with any dilation
    void (*run)(const struct mgx_dw_args *args);
} kinds[] = {
    {3, 1, 1, run_3_1_1}, {3, 2, 1, run_3_2_1}, {5, 1, 1, run_5_1_1}, {5, 2, 1, run_5_2_1},
    {7, 1, 1, run_7_1_1}, {0, 0, 1, run_0_0_1}, {0, 0, 2, run_0_0_2}, {3, 1, 4, run_3_1_4},
    {3, 2, 4, run_3_2_4}, {0, 0, 4, run_0_0_4},
#if !defined(VECTOR_OF_4)
    {3, 1, 8, run_3_1_8}, {3, 2, 8, run_3_2_8}, {0, 0, 8, run_0_0_8},
#endif
};

static void rows_of_any(const struct mgx_dw_args *a)
{
    size_t i = 0;
    while (kinds[i].members != a->members ||
           (kinds[i].kernel &&
            (kinds[i].kernel != a->kernel || kinds[i].stride != a->stride || a->dilation != 1)))
        i++;
    kinds[i].run(a);
}
