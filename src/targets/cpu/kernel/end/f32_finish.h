// SPDX-License-Identifier: MIT
// The loops of finish.h, compiled once per instruction set.
#include "targets/cpu/kernel/end/finish.h"

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

// What a residual that comes late makes of a value.
SIMD vf meet(const struct mgx_epilogue *e, vf x, vf residual)
{
    return e->residual == MGX_RESIDUAL_TIMES ? vf_mul(x, residual) : vf_add(x, residual);
}

SIMD void finish_rows(enum mgx_act act, float *c, int64_t stride, int rows, int cols,
                      const struct mgx_epilogue *e, const float *residual, int64_t residual_stride)
{
    const vf b = vf_set(e->b);
    if (!e->a_column && !e->factor && cols % VL == 0) {
        const vf a = vf_set(e->a);
        for (int i = 0; i < rows; i++, c += stride)
            for (int j = 0; j < cols; j += VL) {
                const vf x = vf_act(act, vf_load(c + j), a, b);
                vf_store(c + j,
                         residual ? meet(e, x, vf_load(residual + i * residual_stride + j)) : x);
            }
        return;
    }
    for (int i = 0; i < rows; i++, c += stride)
        for (int j = 0; j < cols; j += VL) {
            const int n = cols - j < VL ? cols - j : VL;
            const vf a = e->a_column ? vf_load_some(e->a_column + j, n) : vf_set(e->a);
            vf x = vf_act(act, n == VL ? vf_load(c + j) : vf_load_some(c + j, n), a, b);
            if (e->factor)
                x = vf_fma(x, vf_load_some(e->factor + j, n), vf_load_some(e->term + j, n));
            if (residual)
                x = meet(e, x, vf_load_some(residual + i * residual_stride + j, n));
            if (n == VL)
                vf_store(c + j, x);
            else
                vf_store_some(c + j, x, n);
        }
}

static void finish(float *c, int64_t stride, int rows, int cols, const struct mgx_epilogue *e,
                   const float *residual, int64_t residual_stride)
{
    switch (e->act) {
#define X(name, text, meaning)                                                                     \
    case name:                                                                                     \
        finish_rows(name, c, stride, rows, cols, e, residual, residual_stride);                    \
        break;
        MGX_ACT_LIST(X)
#undef X
    case MGX_ACT_COUNT:
        break;
    }
}

const struct mgx_finish_kernel NAME(mgx_f32_finish) = {KERNEL_BASE("f32_finish"), finish};
