// SPDX-License-Identifier: MIT
// exp, erf and what activations are made of, on vectors. Error bounds are of the AVX versions, in
// units of the last place, found by trying; the coefficients are own minimax fits of the relative
// error, by least squares with Lawson weights. NaN gives NaN, infinities their limits.
#pragma once

#include "target/cpu/kernel/epilogue.h"
#include "target/cpu/kernel/simd.h"

// x = n ln 2 + r, |r| <= ln 2 / 2, and e^r - 1 = r + r^2 P(r). *n is whole.
SIMD vf vf_expm1_reduced(vf x, vf *n)
{
    *n = vf_round(vf_mul(x, vf_set(1.44269504f)));
    // ln 2 in two pieces; the first has few enough bits for n times it to be exact.
    const vf r = vf_fnma(*n, vf_set(-2.12194440e-4f), vf_fnma(*n, vf_set(0.693359375f), x));
    vf p = vf_fma(vf_set(1.388239594e-03f), r, vf_set(8.367181115e-03f));
    p = vf_fma(p, r, vf_set(4.166722127e-02f));
    p = vf_fma(p, r, vf_set(1.666653868e-01f));
    p = vf_fma(p, r, vf_set(4.999999804e-01f));
    return vf_fma(vf_mul(r, r), p, r);
}

// e^x; under 2 ulp where the result is normal, infinity above 88.73, 0 below -103.98.
SIMD vf vf_exp(vf x)
{
    vf n;
    const vf q = vf_expm1_reduced(vf_max(vf_set(-104.0f), vf_min(vf_set(89.0f), x)), &n);
    return vf_scale2(vf_add(vf_set(1.0f), q), n);
}

// e^x - 1 for x <= 60; exact to 3 ulp around 0 too.
SIMD vf vf_expm1(vf x)
{
    vf n;
    const vf q = vf_expm1_reduced(vf_max(vf_set(-30.0f), x), &n), one = vf_set(1.0f);
    const vf s = vf_scale2(one, n);
    return vf_fma(s, q, vf_sub(s, one));
}

SIMD vf vf_sigmoid(vf x)
{
    const vf one = vf_set(1.0f);
    return vf_div(one, vf_add(one, vf_exp(vf_sub(vf_zero(), x))));
}

SIMD vf vf_tanh(vf x)
{
    const vf t = vf_max(vf_set(-10.0f), vf_min(vf_set(10.0f), x));
    const vf e = vf_expm1(vf_add(t, t));
    return vf_div(e, vf_add(e, vf_set(2.0f)));
}

// erf(x) = x P(x^2) / Q(x^2) for |x| < 4, all coefficients positive; 4 ulp.
SIMD vf vf_erf(vf x)
{
    const vf s = vf_min(vf_set(16.0f), vf_mul(x, x));
    vf p = vf_fma(vf_set(1.986768439e-06f), s, vf_set(2.845655401e-04f));
    p = vf_fma(p, s, vf_set(3.883363502e-03f));
    p = vf_fma(p, s, vf_set(5.310180571e-02f));
    p = vf_fma(p, s, vf_set(1.935456430e-01f));
    p = vf_fma(p, s, vf_set(1.128379139e+00f));
    vf q = vf_fma(vf_set(3.742000922e-05f), s, vf_set(1.185574307e-03f));
    q = vf_fma(q, s, vf_set(1.520729163e-02f));
    q = vf_fma(q, s, vf_set(1.153502249e-01f));
    q = vf_fma(q, s, vf_set(5.048579157e-01f));
    q = vf_fma(q, s, vf_set(1.0f));
    const vf inner = vf_div(vf_mul(x, p), q), four = vf_set(4.0f), one = vf_set(1.0f);
    return vf_below(four, x, one,
                    vf_below(x, vf_sub(vf_zero(), four), vf_sub(vf_zero(), one), inner));
}

SIMD vf vf_gelu(vf x)
{
    const vf half = vf_mul(x, vf_set(0.5f));
    return vf_fma(half, vf_erf(vf_mul(x, vf_set(0.70710678f))), half);
}

SIMD vf vf_gelu_tanh(vf x)
{
    const vf inner = vf_mul(x, vf_fma(vf_mul(x, x), vf_set(0.0356774081f), vf_set(0.797884561f)));
    const vf half = vf_mul(x, vf_set(0.5f));
    return vf_fma(half, vf_tanh(inner), half);
}

SIMD vf vf_hard_sigmoid(vf x, vf a, vf b)
{
    return vf_max(vf_zero(), vf_min(vf_set(1.0f), vf_fma(a, x, b)));
}

// log(1 + e^x) = max(x, 0) + log(1 + u), u = e^-|x|; log(1 + u) = u P(u) / Q(u) on [0, 1].
SIMD vf vf_softplus(vf x)
{
    const vf u = vf_exp(vf_sub(vf_zero(), vf_abs(x)));
    vf p = vf_fma(vf_set(1.237642928e-01f), u, vf_set(8.671934627e-01f));
    p = vf_fma(p, u, vf_set(9.999999810e-01f));
    vf q = vf_fma(vf_set(3.109454236e-02f), u, vf_set(4.740588493e-01f));
    q = vf_fma(q, u, vf_set(1.367191516e+00f));
    q = vf_fma(q, u, vf_set(1.0f));
    return vf_add(vf_max(vf_zero(), x), vf_div(vf_mul(u, p), q));
}

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); 1 in float from e^20 on.
SIMD vf vf_mish(vf x)
{
    const vf e = vf_exp(vf_min(vf_set(20.0f), x)), two = vf_set(2.0f);
    const vf t = vf_mul(e, vf_add(e, two));
    return vf_mul(x, vf_div(t, vf_add(t, two)));
}

// The activations of epilogue.h. `act` should be a constant where it is called.
SIMD vf vf_act(enum mgx_act act, vf x, vf a, vf b)
{
    switch (act) {
    case MGX_ACT_RELU:
        return vf_max(vf_zero(), x);
    case MGX_ACT_CLIP:
        return vf_min(b, vf_max(a, x));
    case MGX_ACT_LEAKY_RELU:
        return vf_below(x, vf_zero(), vf_mul(a, x), x);
    case MGX_ACT_SIGMOID:
        return vf_sigmoid(x);
    case MGX_ACT_TANH:
        return vf_tanh(x);
    case MGX_ACT_SILU:
        return vf_mul(x, vf_sigmoid(x));
    case MGX_ACT_GELU:
        return vf_gelu(x);
    case MGX_ACT_GELU_TANH:
        return vf_gelu_tanh(x);
    case MGX_ACT_HARD_SIGMOID:
        return vf_hard_sigmoid(x, a, b);
    case MGX_ACT_HARD_SWISH:
        return vf_mul(x, vf_hard_sigmoid(x, a, b));
    case MGX_ACT_ELU:
        return vf_below(x, vf_zero(), vf_mul(a, vf_expm1(vf_min(vf_zero(), x))), x);
    case MGX_ACT_SOFTPLUS:
        return vf_softplus(x);
    case MGX_ACT_SOFTSIGN:
        return vf_div(x, vf_add(vf_set(1.0f), vf_abs(x)));
    case MGX_ACT_MISH:
        return vf_mish(x);
    case MGX_ACT_AFFINE:
        return vf_fma(a, x, b);
    case MGX_ACT_SCALED_TANH:
        return vf_mul(a, vf_tanh(vf_mul(b, x)));
    case MGX_ACT_THRESHOLDED_RELU:
        return vf_below(a, x, x, vf_zero());
    case MGX_ACT_NONE:
    case MGX_ACT_COUNT:
        break;
    }
    return x;
}
