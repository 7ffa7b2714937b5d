// SPDX-License-Identifier: MIT
// The arithmetic of requant.h on one vector, for tiles in memory and for those in registers.
#pragma once

#include "targets/cpu/kernel/end/requant.h"
#include "targets/cpu/kernel/vector/simd.h"

SIMD vf requant_clamped(vf v, float low, float high)
{
    return vf_min(vf_set(high), vf_max(v, vf_set(low))); // the second operand where one is NaN
}

// What is left to be rounded.
SIMD vf requant_first(const struct mgx_requant *q, vf x)
{
    return requant_clamped(q->divisor == 1 ? x : vf_div(x, vf_set(q->divisor)), q->low, q->high);
}

// The same after a second step, of v that was rounded where the description says so. `residual`:
// bytes as floats; what it and the term are does not matter where there is none.
SIMD vf requant_second(const struct mgx_requant *q, vf v, vf residual, vf term)
{
    if (q->residual) {
        const vf raised = vf_add(residual, vf_set((float)mgx_requant_raised(q)));
        v = vf_fma(v, vf_set(q->keep), vf_set(mgx_requant_offset(q)));
        v = vf_fma(raised, vf_set(q->share), v);
        v = q->term ? vf_add(v, term) : v;
    } else {
        v = q->term ? vf_fma(v, vf_set(q->keep), term) : vf_mul(v, vf_set(q->keep));
    }
    return q->saturates_last ? v : requant_clamped(v, q->low2, q->high2);
}

// What ends as a float.
SIMD vf requant_float(const struct mgx_requant *q, vf v)
{
    return vf_mul(q->rounds_last ? vf_round(v) : v, vf_set(q->unit));
}
