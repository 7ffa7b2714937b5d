// SPDX-License-Identifier: MIT
// exp, log, tanh, erf and what activations are made of, on vectors of float. Functions that a body
// can name are within 2 units of the last place over all floats, denormals included; docs/cpu.md
// has the table, test/targets/cpu/kernel/vmath_test.c makes it. Coefficients are own minimax fits
// of the relative error, by least squares with Lawson weights. NaN gives NaN, infinities their
// limits.
//
// Odd functions take |x| and give the result the sign of x, so that -0 stays -0.
#pragma once

#include <math.h>

#include "targets/cpu/kernel/vector/act.h"
#include "targets/cpu/kernel/vector/simd.h"

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

// e^x; infinity above 88.73, 0 below -103.98.
SIMD vf vf_exp(vf x)
{
    vf n;
    const vf q = vf_expm1_reduced(vf_max(vf_set(-104.0f), vf_min(vf_set(89.0f), x)), &n);
    return vf_scale2(vf_add(vf_set(1.0f), q), n);
}

#ifndef VF_POWER
// The same for |x| <= 80, where there is a faster way.
SIMD vf vf_power(vf x)
{
    return vf_exp(x);
}
#endif

// e^x - 1 for x <= 0.
SIMD vf vf_expm1_negative(vf x)
{
    vf n;
    const vf q = vf_expm1_reduced(vf_max(vf_set(-30.0f), x), &n), one = vf_set(1.0f);
    const vf s = vf_scale2(one, n);
    return vf_fma(s, q, vf_sub(s, one));
}

// x = 2^e (1 + f), |f| <= 1/3: e ln 2 + (f - f^2 / 2 + f^3 P(f)), small parts first.
SIMD vf vf_log(vf x)
{
    const vf least = vf_set(0x1p-126f), zero = vf_zero();
    const vf normal = vf_below(x, least, vf_mul(x, vf_set(0x1p24f)), x);
    vf e;
    const vf f = vf_sub(vf_split(normal, &e), vf_set(1.0f));
    e = vf_add(e, vf_below(x, least, vf_set(-24.0f), zero));
    vf p = vf_fma(vf_set(-1.287449598e-01f), f, vf_set(1.398672312e-01f));
    p = vf_fma(p, f, vf_set(-1.218834296e-01f));
    p = vf_fma(p, f, vf_set(1.400533915e-01f));
    p = vf_fma(p, f, vf_set(-1.668018103e-01f));
    p = vf_fma(p, f, vf_set(2.001044452e-01f));
    p = vf_fma(p, f, vf_set(-2.499980479e-01f));
    p = vf_fma(p, f, vf_set(3.333321512e-01f));
    const vf f2 = vf_mul(f, f);
    vf y = vf_fma(vf_mul(f2, f), p, vf_mul(e, vf_set(-2.12194440e-4f)));
    y = vf_fnma(f2, vf_set(0.5f), y);
    y = vf_fma(e, vf_set(0.693359375f), vf_add(f, y));
    y = vf_below(x, vf_set(INFINITY), y, x); // infinity and NaN stay
    return vf_below(zero, x, y, vf_below(x, zero, vf_set(NAN), vf_sub(x, vf_set(INFINITY))));
}

// 1 / (1 + e^-x), both parts times 2^-64 so that e^104 does not overflow: the last results before 0
// are denormals. The denominator, 1 + s + s q with s a power of 2, is rounded once: what 1 + s
// loses goes to the small part.
SIMD vf vf_sigmoid(vf x)
{
    vf n;
    const vf minus = vf_sub(vf_zero(), x), one = vf_set(0x1p-64f);
    const vf q = vf_expm1_reduced(vf_max(vf_set(-104.0f), vf_min(vf_set(104.0f), minus)), &n);
    const vf s = vf_scale2(one, n), sum = vf_add(one, s), lost = vf_sub(one, vf_sub(sum, s));
    return vf_div(one, vf_add(sum, vf_fma(s, q, lost)));
}

// The same with 1 + s rounded: 2.3 ulp, a tenth faster. For products with x.
SIMD vf vf_sigmoid_quick(vf x)
{
    vf n;
    const vf minus = vf_sub(vf_zero(), x), one = vf_set(0x1p-64f);
    const vf q = vf_expm1_reduced(vf_max(vf_set(-104.0f), vf_min(vf_set(104.0f), minus)), &n);
    const vf s = vf_scale2(one, n);
    return vf_div(one, vf_fma(s, q, vf_add(one, s)));
}

// x + x^3 P(x^2) up to 0.625, from there on 1 - 2 / (e^2x + 1).
SIMD vf vf_tanh(vf x)
{
    vf n;
    const vf one = vf_set(1.0f), t = vf_min(vf_set(10.0f), vf_abs(x)), u = vf_mul(t, t);
    vf p = vf_fma(vf_set(-5.697340704e-03f), u, vf_set(2.063172124e-02f));
    p = vf_fma(p, u, vf_set(-5.373726785e-02f));
    p = vf_fma(p, u, vf_set(1.333141029e-01f));
    p = vf_fma(p, u, vf_set(-3.333328068e-01f));
    const vf small = vf_fma(vf_mul(p, u), t, t);
    const vf q = vf_expm1_reduced(vf_add(t, t), &n), s = vf_scale2(one, n);
    const vf large = vf_sub(one, vf_div(vf_set(2.0f), vf_fma(s, q, vf_add(one, s))));
    return vf_with_sign(vf_below(t, vf_set(0.625f), small, large), x);
}

// x + x P(x^2) up to 0.92, from there on 1 - 2^Q(x), which is 1 in float from 3.92 on.
SIMD vf vf_erf(vf x)
{
    const vf one = vf_set(1.0f), t = vf_min(vf_set(3.95f), vf_abs(x)), u = vf_mul(t, t);
    vf p = vf_fma(vf_set(-6.003800663e-04f), u, vf_set(4.995853640e-03f));
    p = vf_fma(p, u, vf_set(-2.676858008e-02f));
    p = vf_fma(p, u, vf_set(1.128187701e-01f));
    p = vf_fma(p, u, vf_set(-3.761250079e-01f));
    p = vf_fma(p, u, vf_set(1.283791512e-01f));
    const vf small = vf_fma(p, t, t);
    vf q = vf_fma(vf_set(2.843278053e-04f), t, vf_set(-4.406598397e-03f));
    q = vf_fma(q, t, vf_set(3.213097155e-02f));
    q = vf_fma(q, t, vf_set(-1.500746608e-01f));
    q = vf_fma(q, t, vf_set(-9.191085100e-01f));
    q = vf_fma(q, t, vf_set(-1.626981497e+00f));
    q = vf_fma(q, t, vf_set(-2.607269562e-04f));
    const vf n = vf_round(q), r = vf_sub(q, n);
    vf e = vf_fma(vf_set(1.546288258e-04f), r, vf_set(1.339098439e-03f));
    e = vf_fma(e, r, vf_set(9.618062526e-03f));
    e = vf_fma(e, r, vf_set(5.550359562e-02f));
    e = vf_fma(e, r, vf_set(2.402265072e-01f));
    e = vf_fma(e, r, vf_set(6.931471825e-01f));
    const vf large = vf_sub(one, vf_scale2(vf_fma(e, r, one), n));
    return vf_with_sign(vf_below(t, vf_set(0.92f), small, large), x);
}

// erf(x) = x P(x^2) / Q(x^2) for |x| < 4, all coefficients positive: an absolute error of 3e-7, in
// half the time. For where 1 is added to it.
SIMD vf vf_erf_quick(vf x)
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

#ifdef VF_LOOKUP
// x / 2 + |x| erf(|x| / sqrt 2) / 2, the latter by a polynomial about the nearest multiple of 0.36:
// an error of 1.5e-7 |x|, the last rounding included, and no division. From 5.4 on it is 1 / 2.
SIMD vf vf_gelu(vf x)
{
    static const float p[5][16] = {
        {4.337037448e-03f, 1.595443673e-02f, 2.274955995e-02f, 1.828283630e-02f, 7.885569707e-03f,
         -1.344283693e-03f, -5.737412255e-03f, -5.837326869e-03f, -4.007944837e-03f,
         -2.132240916e-03f, -9.234252502e-04f, -3.334638895e-04f, -1.018013427e-04f,
         -2.650391252e-05f, -5.919737305e-06f, 3.997933120e-03f},
        {-6.714321673e-02f, -5.396045744e-02f, -2.469422296e-02f, 5.977915134e-03f,
         2.506734058e-02f, 2.931658365e-02f, 2.360491827e-02f, 1.489428990e-02f, 7.714003790e-03f,
         3.353276290e-03f, 1.239007805e-03f, 3.922222822e-04f, 1.069439531e-04f, 2.521061469e-05f,
         5.152523954e-06f, 1.441660221e-03f},
        {3.878979260e-05f, -6.730173528e-02f, -1.108240485e-01f, -1.202315539e-01f,
         -1.018515155e-01f, -7.105629891e-02f, -4.180437699e-02f, -2.100473456e-02f,
         -9.081670083e-03f, -3.395311069e-03f, -1.101284521e-03f, -3.106359509e-04f,
         -7.632947381e-05f, -1.636039087e-05f, -3.061958978e-06f, 1.617882954e-04f},
        {3.989415765e-01f, 3.739083409e-01f, 3.078511357e-01f, 2.226550877e-01f, 1.414619386e-01f,
         7.895144075e-02f, 3.870720044e-02f, 1.666986756e-02f, 6.306348834e-03f, 2.095683245e-03f,
         6.117456360e-04f, 1.568588341e-04f, 3.532926348e-05f, 6.989429039e-06f, 1.214573444e-06f,
         6.043437679e-06f},
        {0.000000000e+00f, 1.405764222e-01f, 2.642374933e-01f, 3.599289060e-01f, 4.250662923e-01f,
         4.640696943e-01f, 4.846136570e-01f, 4.941322505e-01f, 4.980116189e-01f, 4.994023442e-01f,
         4.998408854e-01f, 4.999625385e-01f, 4.999921918e-01f, 4.999985695e-01f, 4.999997616e-01f,
         5.000000000e-01f},
    };
    const vf size = vf_abs(x), t = vf_min(vf_set(5.4f), size), whole = vf_set(0x1.8p23f);
    const vf n = vf_fma(t, vf_set(1 / 0.36f), whole); // the multiple's number in its lowest bits
    const vf r = vf_fnma(vf_sub(n, whole), vf_set(0.36f), t);
    vf y = vf_lookup(p[0], n);
    UNROLL
    for (int i = 1; i < 5; i++)
        y = vf_fma(y, r, vf_lookup(p[i], n));
    return vf_fma(size, y, vf_mul(x, vf_set(0.5f)));
}
#else
SIMD vf vf_gelu(vf x)
{
    const vf half = vf_mul(x, vf_set(0.5f));
    return vf_fma(half, vf_erf_quick(vf_mul(x, vf_set(0.70710678f))), half);
}
#endif

#ifndef VF_GATED
// x / (1 + e^-y)
SIMD vf vf_gated(vf x, vf y)
{
    return vf_mul(x, vf_sigmoid_quick(y));
}
#endif

// sqrt(2 / pi) (x + 0.044715 x^3)
SIMD vf vf_gelu_inner(vf x)
{
    return vf_mul(x, vf_fma(vf_mul(x, x), vf_set(0.0356774081f), vf_set(0.797884561f)));
}

// x / 2 (1 + tanh z) = x / (1 + e^-2z)
SIMD vf vf_gelu_tanh(vf x)
{
    const vf z = vf_gelu_inner(x);
    return vf_gated(x, vf_add(z, z));
}

// x / 2 * (1 + gate)
SIMD vf vf_halved(vf x, vf gate)
{
    return vf_mul(vf_mul(x, vf_set(0.5f)), vf_add(gate, vf_set(1.0f)));
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

// The activations of act.h. `act` should be a constant where it is called.
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
        return vf_gated(x, x);
    case MGX_ACT_GELU:
        return vf_gelu(x);
    case MGX_ACT_GELU_TANH:
        return vf_gelu_tanh(x);
    case MGX_ACT_HARD_SIGMOID:
        return vf_hard_sigmoid(x, a, b);
    case MGX_ACT_HARD_SWISH:
        return vf_mul(x, vf_hard_sigmoid(x, a, b));
    case MGX_ACT_ELU:
        return vf_below(x, vf_zero(), vf_mul(a, vf_expm1_negative(vf_min(vf_zero(), x))), x);
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
