// SPDX-License-Identifier: MIT
// The loops of rows.h, compiled once per instruction set. Tails use partial vectors, so nothing
// beyond a row is touched.
#include "targets/cpu/kernel/rows/rows.h"

#include <math.h>
#include <stdbool.h>

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { PIECE = 4096 };

static float lanes_max(vf v)
{
    float lane[VL], m;
    vf_store(lane, v);
    m = lane[0];
    for (int i = 1; i < VL; i++)
        m = lane[i] > m || lane[i] != lane[i] ? lane[i] : m;
    return m;
}

static float lanes_min(vf v)
{
    return -lanes_max(vf_sub(vf_zero(), v));
}

// A partial vector with other lanes set to `fill`.
SIMD vf load_tail(const float *x, int n, float fill)
{
    float lane[VL];
    vf_store(lane, vf_set(fill));
    memcpy(lane, x, (size_t)n * sizeof *x);
    return vf_load(lane);
}

// NaN among the values comes out: vf_max alone would forget one that lies in its first operand.
SIMD vf max_so_far(vf m, vf x)
{
    return vf_nan_or(m, vf_max(m, x));
}

SIMD vf min_so_far(vf m, vf x)
{
    return vf_nan_or(m, vf_min(m, x));
}

// The largest value of a row. Without `exact`, anything when there is NaN: softmax finds it anyway.
SIMD float largest(const float *x, int64_t n, bool exact)
{
    vf m[4]; // several, for the latency of each
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        m[k] = vf_set(-INFINITY);
    for (; i + 4 * VL <= n; i += 4 * VL)
        UNROLL
    for (int k = 0; k < 4; k++) {
        const vf v = vf_load(x + i + k * VL);
        m[k] = exact ? max_so_far(m[k], v) : vf_max(m[k], v);
    }
    m[0] = max_so_far(max_so_far(m[0], m[1]), max_so_far(m[2], m[3]));
    for (; i + VL <= n; i += VL)
        m[0] = max_so_far(m[0], vf_load(x + i));
    if (i < n)
        m[0] = max_so_far(m[0], load_tail(x + i, (int)(n - i), -INFINITY));
    return exact ? lanes_max(m[0]) : vf_largest(m[0]);
}

static float row_max(const float *x, int64_t n)
{
    return largest(x, n, true);
}

static float row_min(const float *x, int64_t n)
{
    vf m[4]; // as above
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        m[k] = vf_set(INFINITY);
    for (; i + 4 * VL <= n; i += 4 * VL)
        UNROLL
    for (int k = 0; k < 4; k++)
        m[k] = min_so_far(m[k], vf_load(x + i + k * VL));
    m[0] = min_so_far(min_so_far(m[0], m[1]), min_so_far(m[2], m[3]));
    for (; i + VL <= n; i += VL)
        m[0] = min_so_far(m[0], vf_load(x + i));
    if (i < n)
        m[0] = min_so_far(m[0], load_tail(x + i, (int)(n - i), INFINITY));
    return lanes_min(m[0]);
}

// Sum of f(x) over a row, in pieces.
#define ROW_SUM(name, f)                                                                           \
    static double name(const float *x, int64_t n, float mean)                                      \
    {                                                                                              \
        const vf m = vf_set(mean);                                                                 \
        double total = 0;                                                                          \
        (void)m;                                                                                   \
        for (int64_t start = 0; start < n; start += PIECE) {                                       \
            const int64_t end = n - start < PIECE ? n : start + PIECE;                             \
            vf s = vf_zero(), t = s, p = s, q = s;                                                 \
            int64_t i = start;                                                                     \
            for (; i + 4 * VL <= end; i += 4 * VL) {                                               \
                const vf u = vf_load(x + i), v = vf_load(x + i + VL);                              \
                const vf w = vf_load(x + i + 2 * VL), z = vf_load(x + i + 3 * VL);                 \
                s = vf_add(s, f(u));                                                               \
                t = vf_add(t, f(v));                                                               \
                p = vf_add(p, f(w));                                                               \
                q = vf_add(q, f(z));                                                               \
            }                                                                                      \
            s = vf_add(s, p);                                                                      \
            t = vf_add(t, q);                                                                      \
            for (; i + VL <= end; i += VL)                                                         \
                s = vf_add(s, f(vf_load(x + i)));                                                  \
            if (i < end)                                                                           \
                t = vf_add(t, f(load_tail(x + i, (int)(end - i), mean)));                          \
            total += (double)vf_sum(vf_add(s, t));                                                 \
        }                                                                                          \
        return total;                                                                              \
    }
#define ITSELF(v) (v)
#define SQUARE(v) vf_mul(v, v)
#define DEVIATION(v) vf_mul(vf_sub(v, m), vf_sub(v, m))
ROW_SUM(row_sum, ITSELF)
ROW_SUM(row_squares, SQUARE)
ROW_SUM(row_deviations, DEVIATION)

// y = exp(x - max), returns the sum.
static double row_exp(const float *x, float *y, int64_t n, float max)
{
    const vf m = vf_set(max);
    double total = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = n - start < PIECE ? n : start + PIECE;
        vf s = vf_zero();
        int64_t i = start;
        for (; i + VL <= end; i += VL) {
            const vf e = vf_exp(vf_sub(vf_load(x + i), m));
            vf_store(y + i, e);
            s = vf_add(s, e);
        }
        total += (double)vf_sum(s);
        if (i < end) {
            float lane[VL];
            vf_store(lane, vf_exp(vf_sub(load_tail(x + i, (int)(end - i), max), m)));
            for (int k = 0; k < (int)(end - i); k++) {
                y[i + k] = lane[k];
                total += (double)lane[k];
            }
        }
    }
    return total;
}

static void softmax(const float *x, float *y, int64_t n)
{
    const float max = largest(x, n, false);
    const double sum = row_exp(x, y, n, max == -INFINITY ? 0 : max);
    const vf scale = vf_set((float)(1 / sum));
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(y + i, vf_mul(vf_load(y + i), scale));
    if (i < n)
        vf_store_some(y + i, vf_mul(vf_load_some(y + i, (int)(n - i)), scale), (int)(n - i));
    if (max == -INFINITY && n) // as the formula has it: inf - inf
        for (i = 0; i < n; i++)
            y[i] = NAN;
}

static void logsoftmax(const float *x, float *y, int64_t n)
{
    const float max = largest(x, n, false);
    const double sum = row_exp(x, y, n, max);
    const float shift = (float)log(sum);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - max - shift;
}

// Lane l := the fold of all lanes of its column, l % n; n divides VL.
SIMD vf fold_columns(vf v, int n, bool sum)
{
    float lane[VL], column[VL];
    vf_store(lane, v);
    for (int j = 0; j < n; j++) {
        float all = lane[j];
        for (int l = j + n; l < VL; l += n)
            all = sum ? all + lane[l] : lane[l] > all ? lane[l] : all;
        column[j] = all;
    }
    for (int l = 0; l < VL; l++)
        lane[l] = column[l % n];
    return vf_load(lane);
}

// Few columns without gaps: VL / n rows at a time, every lane at work. `x` may be `y`.
static void softmax_few(const float *x, float *y, int64_t size, int n)
{
    const int64_t whole = size - size % VL;
    const int left = (int)(size - whole);
    vf max = left ? load_tail(x + whole, left, -INFINITY) : vf_set(-INFINITY), sum = vf_zero();
    for (int64_t i = 0; i < whole; i += VL)
        max = vf_max(max, vf_load(x + i));
    max = fold_columns(max, n, false);
    for (int64_t i = 0; i < whole; i += VL) {
        const vf e = vf_exp(vf_sub(vf_load(x + i), max));
        vf_store(y + i, e);
        sum = vf_add(sum, e);
    }
    if (left) { // what is beyond the end is 0 after exp, whatever the largest is
        float lane[VL] = {0};
        const vf e = vf_exp(vf_sub(load_tail(x + whole, left, 0), max));
        vf_store_some(lane, e, left);
        vf_store_some(y + whole, e, left);
        sum = vf_add(sum, vf_load(lane));
    }
    const vf scale = vf_div(vf_set(1), fold_columns(sum, n, true));
    for (int64_t i = 0; i < whole; i += VL)
        vf_store(y + i, vf_mul(vf_load(y + i), scale));
    if (left)
        vf_store_some(y + whole, vf_mul(vf_load_some(y + whole, left), scale), left);
}

static void softmax_across(const float *x, int64_t x_stride, float *y, int64_t y_stride,
                           int64_t count, int64_t n)
{
    if (x_stride == n && y_stride == n && n < VL && VL % n == 0) {
        softmax_few(x, y, count * n, (int)n);
        return;
    }
    for (int64_t j = 0; j < n; j += VL) {
        const int w = n - j < VL ? (int)(n - j) : VL;
        vf max = vf_set(-INFINITY), sum = vf_zero();
        for (int64_t i = 0; i < count; i++)
            max = vf_max(max, vf_load_some(x + i * x_stride + j, w));
        for (int64_t i = 0; i < count; i++) {
            const vf e = vf_exp(vf_sub(vf_load_some(x + i * x_stride + j, w), max));
            vf_store_some(y + i * y_stride + j, e, w);
            sum = vf_add(sum, e);
        }
        const vf scale = vf_div(vf_set(1), sum);
        for (int64_t i = 0; i < count; i++)
            vf_store_some(y + i * y_stride + j,
                          vf_mul(vf_load_some(y + i * y_stride + j, w), scale), w);
    }
}

// y = (x - mean) * by * scale + shift
static void affine(const float *x, const float *scale, const float *shift, float mean, float by,
                   float *y, int64_t n)
{
    const vf m = vf_set(mean), b = vf_set(by), one = vf_set(1), zero = vf_zero();
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vf v = vf_mul(vf_sub(vf_load(x + i), m), b);
        vf_store(y + i,
                 vf_fma(v, scale ? vf_load(scale + i) : one, shift ? vf_load(shift + i) : zero));
    }
    for (; i < n; i++)
        y[i] = (x[i] - mean) * by * (scale ? scale[i] : 1) + (shift ? shift[i] : 0);
}

static void norm(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                 int64_t n)
{
    // Squares as deviations from the mean: no cancellation.
    const float mean = (float)(row_sum(x, n, 0) / (double)n);
    const double variance = row_deviations(x, n, mean) / (double)n;
    affine(x, scale, shift, mean, (float)(1 / sqrt(variance + (double)epsilon)), y, n);
}

static void rms(const float *x, const float *scale, const float *shift, float epsilon, float *y,
                int64_t n)
{
    affine(x, scale, shift, 0,
           (float)(1 / sqrt(row_squares(x, n, 0) / (double)n + (double)epsilon)), y, n);
}

static float fold(enum mgx_fold kind, const float *x, int64_t n)
{
    if (kind == MGX_FOLD_SUM || kind == MGX_FOLD_MEAN) {
        const double sum = row_sum(x, n, 0);
        return (float)(kind == MGX_FOLD_MEAN ? sum / (double)n : sum);
    }
    if (kind == MGX_FOLD_MAX)
        return row_max(x, n);
    if (kind == MGX_FOLD_MIN)
        return row_min(x, n);
    double product = 1;
    for (int64_t i = 0; i < n; i++)
        product *= (double)x[i];
    return (float)product;
}

SIMD vf combine(enum mgx_fold kind, vf a, vf x)
{
    switch (kind) {
    case MGX_FOLD_MAX:
        return max_so_far(a, x);
    case MGX_FOLD_MIN:
        return min_so_far(a, x);
    case MGX_FOLD_PROD:
        return vf_mul(a, x);
    default:
        return vf_add(a, x);
    }
}

static float start_of(enum mgx_fold kind)
{
    return kind == MGX_FOLD_MAX    ? -INFINITY
           : kind == MGX_FOLD_MIN  ? INFINITY
           : kind == MGX_FOLD_PROD ? 1
                                   : 0;
}

// One strip of up to 4 vectors of columns, all rows.
SIMD void strip(enum mgx_fold kind, int nv, const float *x, int64_t stride, int64_t count, vf scale,
                float *y, int tail)
{
    vf s[4];
    for (int v = 0; v < nv; v++)
        s[v] = vf_set(start_of(kind));
    for (int64_t i = 0; i < count; i++, x += stride)
        for (int v = 0; v < nv; v++)
            s[v] = combine(kind, s[v], tail ? vf_load_some(x, tail) : vf_load(x + v * VL));
    for (int v = 0; v < nv; v++) {
        const vf r = vf_mul(s[v], scale);
        if (tail)
            vf_store_some(y, r, tail);
        else
            vf_store(y + v * VL, r);
    }
}

#define ACROSS(kind)                                                                               \
    case kind:                                                                                     \
        for (; j + 4 * VL <= n; j += 4 * VL)                                                       \
            strip(kind, 4, x + j, stride, count, scale, y + j, 0);                                 \
        for (; j + VL <= n; j += VL)                                                               \
            strip(kind, 1, x + j, stride, count, scale, y + j, 0);                                 \
        if (j < n)                                                                                 \
            strip(kind, 1, x + j, stride, count, scale, y + j, (int)(n - j));                      \
        break;

static void fold_across(enum mgx_fold kind, const float *x, int64_t stride, int64_t count, float *y,
                        int64_t n)
{
    const vf scale = vf_set(kind == MGX_FOLD_MEAN ? 1 / (float)count : 1);
    int64_t j = 0;
    switch (kind) {
        ACROSS(MGX_FOLD_SUM)
        ACROSS(MGX_FOLD_MEAN)
        ACROSS(MGX_FOLD_MAX)
        ACROSS(MGX_FOLD_MIN)
        ACROSS(MGX_FOLD_PROD)
    }
}

const struct mgx_rows_kernel NAME(mgx_f32_rows) = {
    KERNEL_BASE("f32_rows"), softmax, logsoftmax, softmax_across, norm, rms, fold, fold_across};
