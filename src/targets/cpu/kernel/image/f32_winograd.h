// SPDX-License-Identifier: MIT
// Body of the Winograd transforms, compiled once per instruction set; see winograd.h. A patch is
// transformed down its columns, then along its rows; the 36 vectors in between live in L1.
#include "targets/cpu/kernel/image/winograd.h"

#include <stddef.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { MAX_EDGE = 6 }; // m + 2

// o = B' d for one line of the patch.
SIMD void transform_in(int m, const vf d[MAX_EDGE], vf o[MAX_EDGE])
{
    if (m == 2) {
        o[0] = vf_sub(d[0], d[2]);
        o[1] = vf_add(d[1], d[2]);
        o[2] = vf_sub(d[2], d[1]);
        o[3] = vf_sub(d[1], d[3]);
        return;
    }
    const vf two = vf_set(2), four = vf_set(4), five = vf_set(5);
    const vf even = vf_fnma(four, d[2], d[4]), odd = vf_fnma(four, d[1], d[3]);
    const vf even2 = vf_sub(d[4], d[2]), odd2 = vf_mul(two, vf_sub(d[3], d[1]));
    o[0] = vf_fma(four, d[0], vf_fnma(five, d[2], d[4]));
    o[1] = vf_add(even, odd);
    o[2] = vf_sub(even, odd);
    o[3] = vf_add(even2, odd2);
    o[4] = vf_sub(even2, odd2);
    o[5] = vf_fma(four, d[1], vf_fnma(five, d[3], d[5]));
}

// o = A' s.
SIMD void transform_out(int m, const vf s[MAX_EDGE], vf o[4])
{
    const vf sum = vf_add(s[1], s[2]), difference = vf_sub(s[1], s[2]);
    if (m == 2) {
        o[0] = vf_add(s[0], sum);
        o[1] = vf_sub(difference, s[3]);
        return;
    }
    const vf sum2 = vf_add(s[3], s[4]), difference2 = vf_sub(s[3], s[4]);
    o[0] = vf_add(vf_add(s[0], sum), sum2);
    o[1] = vf_fma(vf_set(2), difference2, difference);
    o[2] = vf_fma(vf_set(4), sum2, sum);
    o[3] = vf_add(vf_fma(vf_set(8), difference2, difference), s[5]);
}

SIMD vf load_value(const struct mgx_winograd_input *in, int y, int x, int64_t c, int n, bool whole)
{
    const float *p = in->x + y * in->line + x * in->pixel + c;
    if (whole)
        return vf_load(p);
    const bool inside = y >= in->y_begin && y < in->y_end && x >= in->x_begin && x < in->x_end;
    return inside ? vf_load_some(p, n) : vf_zero();
}

SIMD void input_vector(const struct mgx_winograd_input *in, int m, int64_t c, int n, bool whole)
{
    const int edge = m + 2;
    vf mid[MAX_EDGE][MAX_EDGE];
    UNROLL
    for (int x = 0; x < edge; x++) {
        vf d[MAX_EDGE], o[MAX_EDGE];
        UNROLL
        for (int y = 0; y < edge; y++)
            d[y] = load_value(in, y, x, c, n, whole);
        transform_in(m, d, o);
        UNROLL
        for (int y = 0; y < edge; y++)
            mid[y][x] = o[y];
    }
    UNROLL
    for (int y = 0; y < edge; y++) {
        vf o[MAX_EDGE];
        transform_in(m, mid[y], o);
        UNROLL
        for (int x = 0; x < edge; x++)
            vf_store(in->v + (y * edge + x) * in->element + c, o[x]);
    }
}

SIMD void input_patch(const struct mgx_winograd_input *in, int m)
{
    const bool inside =
        in->y_begin == 0 && in->x_begin == 0 && in->y_end == m + 2 && in->x_end == m + 2;
    int64_t c = 0;
    if (inside)
        for (; c + VL <= in->channels; c += VL)
            input_vector(in, m, c, VL, true);
    for (; c < in->channels; c += VL) {
        const int64_t left = in->channels - c;
        input_vector(in, m, c, left < VL ? (int)left : VL, false);
    }
}

SIMD void store_value(const struct mgx_winograd_output *out, int y, int x, int c, int n, vf bias,
                      vf v)
{
    v = vf_add(v, bias);
    if (out->residual)
        v = vf_add(v, vf_load_some(
                          out->residual + y * out->residual_line + x * out->residual_pixel + c, n));
    if (out->clamp)
        v = vf_min(vf_set(out->high), vf_max(vf_set(out->low), v));
    float *p = out->y + y * out->line + x * out->pixel + c;
    if (n == VL)
        vf_store(p, v);
    else
        vf_store_some(p, v, n);
}

SIMD void output_tile(const struct mgx_winograd_output *out, int m)
{
    const int edge = m + 2;
    for (int c = 0; c < out->cols; c += VL) {
        const int n = out->cols - c < VL ? out->cols - c : VL;
        const vf bias = out->bias ? vf_load_some(out->bias + c, n) : vf_zero();
        vf mid[4][MAX_EDGE];
        UNROLL
        for (int x = 0; x < edge; x++) {
            vf s[MAX_EDGE], o[4];
            UNROLL
            for (int y = 0; y < edge; y++)
                s[y] = vf_load(out->sums + (y * edge + x) * out->element + c);
            transform_out(m, s, o);
            UNROLL
            for (int y = 0; y < m; y++)
                mid[y][x] = o[y];
        }
        UNROLL
        for (int y = 0; y < m; y++) {
            if (y == out->lines)
                break;
            vf o[4];
            transform_out(m, mid[y], o);
            UNROLL
            for (int x = 0; x < m; x++)
                if (x < out->pixels)
                    store_value(out, y, x, c, n, bias, o[x]);
        }
    }
}

static void input2(const struct mgx_winograd_input *in)
{
    input_patch(in, 2);
}

static void input4(const struct mgx_winograd_input *in)
{
    input_patch(in, 4);
}

static void output2(const struct mgx_winograd_output *out)
{
    output_tile(out, 2);
}

static void output4(const struct mgx_winograd_output *out)
{
    output_tile(out, 4);
}

// --- weights, in double: they are transformed once and read for ever ---

static const double g2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
static const double g4[6][3] = {{1 / 4.0, 0, 0},
                                {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                {0, 0, 1}};

// Loops over lanes become vectors of double.
SIMD void first_half(const double (*g)[3], int edge, const float *taps, int64_t stride,
                     double mid[MAX_EDGE][3][VL])
{
    for (int i = 0; i < edge; i++)
        for (int x = 0; x < 3; x++)
            for (int j = 0; j < VL; j++)
                mid[i][x][j] = g[i][0] * (double)taps[x * stride + j] +
                               g[i][1] * (double)taps[(3 + x) * stride + j] +
                               g[i][2] * (double)taps[(6 + x) * stride + j];
}

SIMD void transform_weights(const double (*g)[3], int edge, const float *taps, int64_t stride,
                            float *u, int64_t element)
{
    double mid[MAX_EDGE][3][VL];
    first_half(g, edge, taps, stride, mid);
    for (int i = 0; i < edge; i++)
        for (int k = 0; k < edge; k++)
            for (int j = 0; j < VL; j++)
                u[(i * edge + k) * element + j] =
                    (float)(g[k][0] * mid[i][0][j] + g[k][1] * mid[i][1][j] +
                            g[k][2] * mid[i][2][j]);
}

static void weights2(const float *taps, int64_t stride, int width, float *u, int64_t element)
{
    for (int j = 0; j < width; j += VL)
        transform_weights(g2, 4, taps + j, stride, u + j, element);
}

static void weights4(const float *taps, int64_t stride, int width, float *u, int64_t element)
{
    for (int j = 0; j < width; j += VL)
        transform_weights(g4, 6, taps + j, stride, u + j, element);
}

static void half4(const float *taps, int64_t stride, int width, float *u, int64_t row)
{
    for (int at = 0; at < width; at += VL) {
        double mid[MAX_EDGE][3][VL];
        first_half(g4, 6, taps + at, stride, mid);
        for (int i = 0; i < 6; i++)
            for (int x = 0; x < 3; x++)
                for (int j = 0; j < VL; j++)
                    u[i * row + x * width + at + j] = (float)mid[i][x][j];
    }
}

static void expand4(const float *half, int64_t depth, int width, float *u, int64_t element)
{
    const vf quarter = vf_set(0.25F), sixth = vf_set(1 / 6.0F), twelfth = vf_set(1 / 12.0F),
             last = vf_set(1 / 24.0F);
    for (int64_t c = 0; c < depth; c++, half += 3 * width)
        for (int j = 0; j < width; j += VL, u += VL) {
            const vf a = vf_load(half + j), b = vf_load(half + width + j),
                     d = vf_load(half + 2 * width + j);
            const vf sum = vf_mul(sixth, vf_add(a, d)), odd = vf_mul(sixth, b);
            const vf even = vf_fma(sixth, d, vf_mul(last, a)), odd2 = vf_mul(twelfth, b);
            vf_store(u, vf_mul(quarter, a));
            vf_store(u + element, vf_sub(vf_zero(), vf_add(sum, odd)));
            vf_store(u + 2 * element, vf_sub(odd, sum));
            vf_store(u + 3 * element, vf_add(even, odd2));
            vf_store(u + 4 * element, vf_sub(even, odd2));
            vf_store(u + 5 * element, d);
        }
}

const struct mgx_winograd_kernel NAME(mgx_f32_winograd) = {
    KERNEL_BASE("f32_winograd"),
    .vector = VL,
    .input2 = input2,
    .input4 = input4,
    .output2 = output2,
    .output4 = output4,
    .weights2 = weights2,
    .weights4 = weights4,
    .half4 = half4,
    .expand4 = expand4,
};
