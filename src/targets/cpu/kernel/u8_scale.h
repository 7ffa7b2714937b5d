// SPDX-License-Identifier: MIT
// Body of byte_scale.h, compiled once per instruction set; the compiler makes vectors of the loops
// between bytes and floats.
// Signed bytes are unsigned ones, 128 larger, with a zero point 128 larger.
#include "targets/cpu/kernel/byte_scale.h"
#include "targets/cpu/kernel/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { STRIP = 32 };

struct step {
    uint8_t x_flip, y_flip;
    float x_zero, x_scale, y_scale, y_zero;
};

// n <= STRIP columns.
SIMD void strip(const struct step *s, const uint8_t *x, const float *factor, bool one, uint8_t *y,
                int n)
{
    float v[STRIP] = {0};
    int32_t to[STRIP];
    const vf zero = vf_set(s->x_zero), scale = vf_set(s->x_scale), unit = vf_set(s->y_scale),
             y_zero = vf_set(s->y_zero);
    for (int k = 0; k < n; k++)
        v[k] = (float)(uint8_t)(x[k] ^ s->x_flip);
    for (int k = 0; k < n; k += VL) {
        const vf f = one          ? vf_set(*factor)
                     : n - k < VL ? vf_load_some(factor + k, n - k)
                                  : vf_load(factor + k);
        const vf product = vf_mul(f, vf_mul(vf_sub(vf_load(v + k), zero), scale));
        const vf r = vf_add(vf_round(vf_div(product, unit)), y_zero);
        vf_store(v + k, vf_min(vf_set(255), vf_max(r, vf_zero()))); // of NaN 0
    }
    for (int k = 0; k < n; k++)
        to[k] = (int32_t)v[k];
    for (int k = 0; k < n; k++)
        y[k] = (uint8_t)((uint8_t)to[k] ^ s->y_flip);
}

SIMD void row(const struct step *s, const uint8_t *x, const float *factor, bool one, uint8_t *y,
              int64_t cols)
{
    int64_t j = 0;
    for (; j + STRIP <= cols; j += STRIP)
        strip(s, x + j, one ? factor : factor + j, one, y + j, STRIP);
    if (j + STRIP / 2 <= cols) {
        strip(s, x + j, one ? factor : factor + j, one, y + j, STRIP / 2);
        j += STRIP / 2;
    }
    if (j + STRIP / 4 <= cols) {
        strip(s, x + j, one ? factor : factor + j, one, y + j, STRIP / 4);
        j += STRIP / 4;
    }
    if (j < cols)
        strip(s, x + j, one ? factor : factor + j, one, y + j, (int)(cols - j));
}

static void byte_scale(const struct mgx_byte_scale *s, const struct mgx_byte_scale_args *a)
{
    const struct step step = {.x_flip = s->x_signed ? 0x80 : 0,
                              .y_flip = s->y_signed ? 0x80 : 0,
                              .x_zero = (float)(s->x_zero + (s->x_signed ? 128 : 0)),
                              .x_scale = s->x_scale,
                              .y_scale = s->y_scale,
                              .y_zero = (float)(s->y_zero + (s->y_signed ? 128 : 0))};
    const uint8_t *x = a->x;
    const float *factor = a->factor;
    uint8_t *y = a->y;
    for (int64_t i = 0; i < a->rows; i++, x += a->x_row, factor += a->factor_row, y += a->y_row) {
        if (a->one_factor)
            row(&step, x, factor, true, y, a->cols);
        else
            row(&step, x, factor, false, y, a->cols);
    }
}

const struct mgx_byte_scale_kernel NAME(mgx_u8_scale) = {KERNEL_BASE("u8_scale"), byte_scale};
