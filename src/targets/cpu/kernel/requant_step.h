// SPDX-License-Identifier: MIT
// The arithmetic of requant.h on one vector, for tiles in memory and for those in registers.
#pragma once

#include "targets/cpu/kernel/requant.h"
#include "targets/cpu/kernel/simd.h"

SIMD vf requant_clamped(vf v, float low, float high)
{
    return vf_min(vf_set(high), vf_max(v, vf_set(low))); // the second operand where one is NaN
}

// What is left to be rounded. `residual`: bytes as floats, read where the description says so.
SIMD vf requant_step(const struct mgx_requant *q, bool with_residual, vf x, vf residual)
{
    vf v = q->divisor == 1 ? x : vf_div(x, vf_set(q->divisor));
    v = requant_clamped(v, q->low, q->high);
    if (!with_residual)
        return v;
    const vf r = vf_sub(residual, vf_set((float)q->residual_zero));
    v = vf_fma(r, vf_set(q->share), vf_mul(q->rounds ? vf_round(v) : v, vf_set(q->keep)));
    return requant_clamped(v, q->low2, q->high2);
}
