// SPDX-License-Identifier: MIT
// Functions of float computed in double: pow, the trigonometric and hyperbolic ones and their
// inverses. In double a straight formula has digits to spare, so the result is off by little more
// than its own rounding, for all floats; it costs twice the vectors. Same habits as vmath.h.
#pragma once

#include "targets/cpu/kernel/vector/simd_f64.h"
#include "targets/cpu/kernel/vector/vmath.h"

#define THROUGH_F64(f, x) vf_join(f(vd_low(x)), f(vd_high(x)))

// --- exponentials and logarithms ---

// 2^x to 2^-34 for |x| <= 200; beyond, what no float holds.
SIMD vd vd_exp2(vd x)
{
    x = vd_max(vd_set(-200), vd_min(vd_set(200), x));
    const vd n = vd_round(x), r = vd_sub(x, n);
    vd p = vd_fma(vd_set(0x1.00f13206ec2d3p-16), r, vd_set(0x1.445e6b9baaa8ap-13));
    p = vd_fma(p, r, vd_set(0x1.5d8723aae608bp-10));
    p = vd_fma(p, r, vd_set(0x1.3b29f0fcca063p-7));
    p = vd_fma(p, r, vd_set(0x1.c6b08df45c00ep-5));
    p = vd_fma(p, r, vd_set(0x1.ebfbe07ab9873p-3));
    p = vd_fma(p, r, vd_set(0x1.62e42fef7b64ap-1));
    return vd_scale2(vd_fma(p, r, vd_set(1)), n);
}

// e^x - 1 = 2^n (e^r - 1) + 2^n - 1
SIMD vd vd_expm1(vd x)
{
    const vd one = vd_set(1);
    x = vd_max(vd_set(-100), vd_min(vd_set(100), x));
    const vd n = vd_round(vd_mul(x, vd_set(0x1.71547652b82fep+0)));
    const vd r = vd_fnma(n, vd_set(0x1.62e42fefa39efp-1), x);
    vd p = vd_fma(vd_set(0x1.a1a0cd8d73576p-13), r, vd_set(0x1.6d74822b53a11p-10));
    p = vd_fma(p, r, vd_set(0x1.111090079b867p-7));
    p = vd_fma(p, r, vd_set(0x1.5554add788d2bp-5));
    p = vd_fma(p, r, vd_set(0x1.55555588bb03fp-3));
    p = vd_fma(p, r, vd_set(0x1.00000027dd4c4p-1));
    const vd s = vd_scale2(one, n);
    return vd_fma(s, vd_fma(vd_mul(r, r), p, r), vd_sub(s, one));
}

// log of x in units of 1 / `unit`: e log 2 + 2 (z + z^3 S(z^2)), z = (m - 1) / (m + 1). A double
// made from a float is never a denormal. x < 0 gives NaN, 0 minus infinity.
SIMD vd vd_log_in(vd x, double log2_value, double unit)
{
    const vd one = vd_set(1), zero = vd_set(0), most = vd_set(0x1p1000);
    vd e;
    const vd m = vd_split(x, &e), z = vd_div(vd_sub(m, one), vd_add(m, one)), u = vd_mul(z, z);
    vd p = vd_fma(vd_set(0x1.9c187c3dcc65dp-4), u, vd_set(0x1.c5540793a1b9cp-4));
    p = vd_fma(p, u, vd_set(0x1.2496e288f9e28p-3));
    p = vd_fma(p, u, vd_set(0x1.99998f4931491p-3));
    p = vd_fma(p, u, vd_set(0x1.5555555915314p-2));
    vd y = vd_mul(vd_fma(vd_mul(p, u), z, z), vd_set(2 * unit));
    y = vd_fma(e, vd_set(log2_value), y);
    y = vd_below(x, most, y, x); // infinity and NaN stay
    return vd_below(zero, x, y, vd_below(x, zero, vd_set(NAN), vd_sub(x, vd_set(INFINITY))));
}

SIMD vd vd_log(vd x)
{
    return vd_log_in(x, 0x1.62e42fefa39efp-1, 1);
}

SIMD vd vd_log2(vd x)
{
    return vd_log_in(x, 1, 0x1.71547652b82fep+0);
}

SIMD vf vf_log2(vf x)
{
    return THROUGH_F64(vd_log2, x);
}

// |x|^y by 2^(y log2 |x|), then what the standard says of signs and special values.
SIMD vd vd_pow(vd x, vd y)
{
    const vd one = vd_set(1), zero = vd_set(0), half = vd_set(0.5), size = vd_abs(x);
    const vd power = vd_exp2(vd_mul(y, vd_log2(size)));
    // Beyond 2^30 every float is even; below, rounding tells whole and odd.
    const vd small = vd_max(vd_set(-0x1p30), vd_min(vd_set(0x1p30), y)), h = vd_mul(small, half);
    const vd odd = vd_equal(vd_round(h), h, one, vd_set(-1));
    const vd sign = vd_with_sign(one, x); // of -0 too
    const vd whole_result = vd_mul(power, vd_below(sign, zero, odd, one));
    const vd other = vd_below(x, zero, vd_below(size, vd_set(INFINITY), vd_set(NAN), power), power);
    vd r = vd_equal(vd_round(small), small, whole_result, other);
    r = vd_equal(size, one, vd_equal(vd_abs(y), vd_set(INFINITY), one, r), r);
    return vd_equal(x, one, one, vd_equal(y, zero, one, r));
}

SIMD vf vf_pow(vf x, vf y)
{
    return vf_join(vd_pow(vd_low(x), vd_low(y)), vd_pow(vd_high(x), vd_high(y)));
}

// --- sine and cosine ---

// |x| = (4 k + *quadrant) pi / 2 + r for a float whose size makes subtracting multiples useless:
// its 24 bits times those bits of 2 / pi that matter modulo 4.
static __attribute__((noinline)) double quarter_turns(double x, double *quadrant)
{
    static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                           0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    *quadrant = 0;
    if (!(x < INFINITY))
        return NAN;
    int exponent;
    const uint64_t m = (uint64_t)(frexp(x, &exponent) * 0x1p24);
    const unsigned bit = (unsigned)(exponent - 24 - 2 + 32); // where a multiple of 4 ends
    const unsigned word = bit / 32, shift = bit % 32;
    uint32_t w[3];
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t two = (uint64_t)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
        w[i] = (uint32_t)(two << shift >> 32);
    }
    const uint64_t turns = m * ((uint64_t)w[0] << 32 | w[1]) + (m * w[2] >> 32);
    const uint64_t nearest = (turns + ((uint64_t)1 << 61)) >> 62;
    *quadrant = (double)(nearest & 3);
    return (double)(int64_t)(turns - (nearest << 62)) * (0x1p-62 * 0x1.921fb54442d18p+0);
}

// x >= 0 as n pi / 2 + r, |r| <= pi / 4; n modulo 4 is what counts. pi / 2 in three pieces, of
// which n times the first two is exact up to 2^20.
SIMD vd vd_reduce(vd x, vd *n)
{
    *n = vd_round(vd_mul(x, vd_set(0x1.45f306dc9c883p-1)));
    vd r = vd_fnma(*n, vd_set(0x1.921fb544p+0), x);
    r = vd_fnma(*n, vd_set(0x1.0b4611a6p-34), r);
    r = vd_fnma(*n, vd_set(0x1.3198a2e03707p-69), r);
    const vd most = vd_set(0x1p20);
    if (vd_any_below(most, x)) {
        double xs[VD], rs[VD], ns[VD];
        vd_store(xs, x);
        vd_store(rs, r);
        vd_store(ns, *n);
        for (int i = 0; i < VD; i++)
            if (!(xs[i] <= 0x1p20))
                rs[i] = quarter_turns(xs[i], &ns[i]);
        r = vd_load(rs);
        *n = vd_load(ns);
    }
    return r;
}

SIMD vd vd_sine_series(vd r)
{
    const vd u = vd_mul(r, r);
    vd p = vd_fma(vd_set(0x1.6cd73226c5392p-19), u, vd_set(-0x1.a00f98e242b34p-13));
    p = vd_fma(p, u, vd_set(0x1.1111089073cbdp-7));
    p = vd_fma(p, u, vd_set(-0x1.5555554cb1ffdp-3));
    return vd_fma(vd_mul(p, u), r, r);
}

SIMD vd vd_cosine_series(vd r)
{
    const vd u = vd_mul(r, r);
    vd p = vd_fma(vd_set(0x1.99326e00a9897p-16), u, vd_set(-0x1.6c08773edcafep-10));
    p = vd_fma(p, u, vd_set(0x1.55553dfe89252p-5));
    p = vd_fma(p, u, vd_set(-0x1.ffffffd095b99p-2));
    return vd_fma(p, u, vd_set(1));
}

// The quadrant, -2 to 2, as n less the nearest multiple of 4.
SIMD vd vd_quadrant(vd n)
{
    return vd_fnma(vd_round(vd_mul(n, vd_set(0.25))), vd_set(4), n);
}

// sin(r + n pi / 2)
SIMD vd vd_turned_sine(vd r, vd n)
{
    const vd q = vd_quadrant(n), zero = vd_set(0);
    const vd y = vd_equal(vd_abs(q), vd_set(1), vd_cosine_series(r), vd_sine_series(r));
    const vd minus = vd_sub(zero, y);
    return vd_below(q, zero, minus, vd_below(vd_set(1), q, minus, y));
}

SIMD vd vd_sin(vd x)
{
    vd n;
    const vd r = vd_reduce(vd_abs(x), &n), y = vd_turned_sine(r, n);
    return vd_below(x, vd_set(0), vd_sub(vd_set(0), y), vd_equal(x, vd_set(0), x, y));
}

SIMD vd vd_cos(vd x)
{
    vd n;
    const vd r = vd_reduce(vd_abs(x), &n);
    return vd_turned_sine(r, vd_add(n, vd_set(1)));
}

SIMD vd vd_tan(vd x)
{
    vd n;
    const vd r = vd_reduce(vd_abs(x), &n), zero = vd_set(0), one = vd_set(1);
    const vd s = vd_sine_series(r), c = vd_cosine_series(r), q = vd_abs(vd_quadrant(n));
    const vd y = vd_div(vd_equal(q, one, vd_sub(zero, c), s), vd_equal(q, one, s, c));
    return vd_below(x, zero, vd_sub(zero, y), vd_equal(x, zero, x, y));
}

SIMD vf vf_sin(vf x)
{
    return THROUGH_F64(vd_sin, x);
}

SIMD vf vf_cos(vf x)
{
    return THROUGH_F64(vd_cos, x);
}

SIMD vf vf_tan(vf x)
{
    return THROUGH_F64(vd_tan, x);
}

// --- their inverses ---

// atan of a / b for a >= 0: turned by pi / 4 or pi / 2 so that the quotient t is at most
// tan(pi / 8), then t + t^3 P(t^2).
SIMD vd vd_atan_of(vd a, vd b)
{
    const vd zero = vd_set(0), limit = vd_mul(b, vd_set(0x1.a827999fcef32p-2));
    const vd far = vd_mul(b, vd_set(0x1.3504f333f9de6p+1)); // 1 + sqrt 2
    const vd over = vd_below(far, a, vd_sub(zero, b), vd_below(limit, a, vd_sub(a, b), a));
    const vd under = vd_below(far, a, a, vd_below(limit, a, vd_add(a, b), b));
    const vd turn = vd_below(far, a, vd_set(0x1.921fb54442d18p+0),
                             vd_below(limit, a, vd_set(0x1.921fb54442d18p-1), zero));
    const vd t = vd_div(over, under), u = vd_mul(t, t);
    vd p = vd_fma(vd_set(0x1.84cd383c0f208p-5), u, vd_set(-0x1.5b3c0d7894a46p-4));
    p = vd_fma(p, u, vd_set(0x1.c46669db69090p-4));
    p = vd_fma(p, u, vd_set(-0x1.247ef6e1c152fp-3));
    p = vd_fma(p, u, vd_set(0x1.999919c46e30bp-3));
    p = vd_fma(p, u, vd_set(-0x1.555554c7e6d7fp-2));
    return vd_add(turn, vd_fma(vd_mul(p, u), t, t));
}

SIMD vd vd_atan(vd x) // no float tells 2^30 from infinity here
{
    return vd_with_sign(vd_atan_of(vd_min(vd_set(0x1p30), vd_abs(x)), vd_set(1)), x);
}

// sqrt(1 - x^2), exact enough next to 1; NaN beyond.
SIMD vd vd_other_leg(vd x)
{
    const vd one = vd_set(1);
    return vd_sqrt(vd_mul(vd_sub(one, x), vd_add(one, x)));
}

SIMD vd vd_asin(vd x)
{
    const vd size = vd_abs(x);
    return vd_with_sign(vd_atan_of(size, vd_other_leg(size)), x);
}

SIMD vd vd_acos(vd x) // the angle of |x| from the axis, or its supplement
{
    const vd y = vd_atan_of(vd_other_leg(x), vd_abs(x));
    return vd_below(x, vd_set(0), vd_sub(vd_set(0x1.921fb54442d18p+1), y), y);
}

SIMD vf vf_atan(vf x)
{
    return THROUGH_F64(vd_atan, x);
}

SIMD vf vf_asin(vf x)
{
    return THROUGH_F64(vd_asin, x);
}

SIMD vf vf_acos(vf x)
{
    return THROUGH_F64(vd_acos, x);
}

// --- hyperbolic functions and their inverses ---

// With t = e^|x| - 1: (t + t / (t + 1)) / 2.
SIMD vd vd_sinh(vd x)
{
    const vd t = vd_expm1(vd_abs(x));
    const vd sum = vd_add(t, vd_div(t, vd_add(t, vd_set(1))));
    return vd_with_sign(vd_mul(vd_set(0.5), sum), x);
}

SIMD vd vd_cosh(vd x)
{
    const vd e = vd_exp2(vd_mul(vd_abs(x), vd_set(0x1.71547652b82fep+0)));
    return vd_mul(vd_set(0.5), vd_add(e, vd_div(vd_set(1), e)));
}

// Where 1 + x would lose digits of x, `x` itself is the answer: to 2^-24 up to 2^-12 for odd
// functions.
SIMD vd vd_or_itself(vd y, vd size)
{
    return vd_below(size, vd_set(0x1p-12), size, y);
}

SIMD vd vd_asinh(vd x)
{
    const vd size = vd_abs(x), root = vd_sqrt(vd_fma(size, size, vd_set(1)));
    return vd_with_sign(vd_or_itself(vd_log(vd_add(size, root)), size), x);
}

SIMD vd vd_acosh(vd x)
{
    const vd one = vd_set(1), root = vd_sqrt(vd_mul(vd_sub(x, one), vd_add(x, one)));
    return vd_below(x, one, vd_set(NAN), vd_log(vd_add(x, root)));
}

SIMD vd vd_atanh(vd x)
{
    const vd one = vd_set(1), size = vd_abs(x);
    const vd y = vd_log(vd_div(vd_add(one, size), vd_sub(one, size)));
    return vd_with_sign(vd_or_itself(vd_mul(vd_set(0.5), y), size), x);
}

SIMD vf vf_sinh(vf x)
{
    return THROUGH_F64(vd_sinh, x);
}

SIMD vf vf_cosh(vf x)
{
    return THROUGH_F64(vd_cosh, x);
}

SIMD vf vf_asinh(vf x)
{
    return THROUGH_F64(vd_asinh, x);
}

SIMD vf vf_acosh(vf x)
{
    return THROUGH_F64(vd_acosh, x);
}

SIMD vf vf_atanh(vf x)
{
    return THROUGH_F64(vd_atanh, x);
}
