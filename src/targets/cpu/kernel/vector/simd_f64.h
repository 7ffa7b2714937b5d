// SPDX-License-Identifier: MIT
// Vectors of double, half as many lanes as simd.h has floats, for functions whose float result
// needs more digits on the way than a float has.
//
//     vf  ->  vd_low, vd_high  ->  ...  ->  vf_join  ->  vf
//
// Selections hand on NaN as those of simd.h do: from the value operand, the last one.
#pragma once

#include "targets/cpu/kernel/vector/simd.h"

enum { VD = VL / 2 };

#if defined(__AVX512F__) && defined(__AVX512VL__)
typedef __m512d vd;
VECTOR_OF(vd, double, _mm512, pd)

SIMD vd vd_low(vf v)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}
SIMD vd vd_high(vf v)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}
SIMD vf vf_join(vd low, vd high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}
SIMD vd vd_abs(vd v)
{
    return _mm512_abs_pd(v);
}
SIMD vd vd_round(vd v)
{
    return _mm512_roundscale_pd(v, 8);
}
SIMD vd vd_sqrt(vd v)
{
    return _mm512_sqrt_pd(v);
}
SIMD vd vd_below(vd a, vd b, vd yes, vd no) // a < b ? yes : no
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), no, yes);
}
SIMD vd vd_equal(vd a, vd b, vd yes, vd no) // a == b ? yes : no
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), no, yes);
}
SIMD int vd_any_below(vd a, vd b) // in any lane; with NaN in none
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ) != 0;
}
SIMD vd vd_with_sign(vd v, vd s) // v >= 0 with the sign bit of s
{
    return _mm512_or_pd(v, _mm512_and_pd(s, _mm512_set1_pd(-0.0)));
}
SIMD vd vd_scale2(vd v, vd n) // v * 2^n for a whole n, |n| < 1000
{
    return _mm512_scalef_pd(v, n);
}
SIMD vd vd_split(vd x, vd *e) // x = m * 2^e, m in [2/3, 4/3), for a positive normal x; returns m
{
    const __m512i low = _mm512_set1_epi64(0x3fe5555555555555);
    const __m512i above = _mm512_sub_epi64(_mm512_castpd_si512(x), low);
    *e = _mm512_cvtepi64_pd(_mm512_srai_epi64(above, 52));
    const __m512i m = _mm512_and_si512(above, _mm512_set1_epi64(0xfffffffffffff));
    return _mm512_castsi512_pd(_mm512_add_epi64(m, low));
}

#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256d vd;
VECTOR_OF(vd, double, _mm256, pd)

SIMD vd vd_low(vf v)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
SIMD vd vd_high(vf v)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}
SIMD vf vf_join(vd low, vd high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
}
SIMD vd vd_abs(vd v)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v);
}
SIMD vd vd_round(vd v)
{
    return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD vd vd_sqrt(vd v)
{
    return _mm256_sqrt_pd(v);
}
SIMD vd vd_below(vd a, vd b, vd yes, vd no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
SIMD vd vd_equal(vd a, vd b, vd yes, vd no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
}
SIMD int vd_any_below(vd a, vd b)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)) != 0;
}
SIMD vd vd_with_sign(vd v, vd s)
{
    return _mm256_or_pd(v, _mm256_and_pd(s, _mm256_set1_pd(-0.0)));
}
// Adding 2^52 + 2^51 leaves a whole number in the low bits.
SIMD vd vd_scale2(vd v, vd n)
{
    const __m256i bits = _mm256_castpd_si256(vd_add(n, vd_set(0x1.8p52 + 1023)));
    return vd_mul(v, _mm256_castsi256_pd(_mm256_slli_epi64(bits, 52)));
}
// The exponent as a double: 2^52 plus it, by its bits, less 2^52.
SIMD vd vd_split(vd x, vd *e)
{
    const __m256i low = _mm256_set1_epi64x(0x3fe5555555555555);
    const __m256i above = _mm256_sub_epi64(_mm256_castpd_si256(x), low);
    const __m256i shifted = _mm256_add_epi64(above, _mm256_set1_epi64x((int64_t)1024 << 52));
    const __m256i biased =
        _mm256_or_si256(_mm256_srli_epi64(shifted, 52), _mm256_castpd_si256(vd_set(0x1p52)));
    *e = vd_sub(_mm256_castsi256_pd(biased), vd_set(0x1p52 + 1024));
    const __m256i m = _mm256_and_si256(above, _mm256_set1_epi64x(0xfffffffffffff));
    return _mm256_castsi256_pd(_mm256_add_epi64(m, low));
}

#else
typedef double vd __attribute__((vector_size(16)));
typedef int64_t vl __attribute__((vector_size(16)));
typedef uint64_t vul __attribute__((vector_size(16))); // arithmetic on bits wraps
VECTOR_PLAIN(vd, double, vl)

SIMD vd vd_set(double x)
{
    return (vd){x, x};
}
SIMD vd vd_low(vf v)
{
    return (vd){v[0], v[1]};
}
SIMD vd vd_high(vf v)
{
    return (vd){v[2], v[3]};
}
SIMD vf vf_join(vd low, vd high)
{
    return (vf){(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
}
SIMD vd vd_abs(vd v)
{
    return (vd)((vl)v & INT64_MAX);
}
SIMD vd vd_round(vd v) // exact below 2^51
{
    const vd magic = vd_set(0x1.8p52);
    return (v + magic) - magic;
}
SIMD vd vd_sqrt(vd v)
{
    return (vd){__builtin_sqrt(v[0]), __builtin_sqrt(v[1])};
}
SIMD vd vd_equal(vd a, vd b, vd yes, vd no)
{
    return vd_choose((vl)(a == b), yes, no);
}
SIMD int vd_any_below(vd a, vd b)
{
    return (a[0] < b[0]) | (a[1] < b[1]);
}
SIMD vd vd_with_sign(vd v, vd s)
{
    return (vd)((vl)v | ((vl)s & INT64_MIN));
}
SIMD vd vd_scale2(vd v, vd n)
{
    return v * (vd)((vl)(n + vd_set(0x1.8p52 + 1023)) << 52);
}
SIMD vd vd_split(vd x, vd *e)
{
    const vl above = (vl)((vul)x - 0x3fe5555555555555u);
    *e = __builtin_convertvector(above >> 52, vd);
    return (vd)((above & 0xfffffffffffff) + 0x3fe5555555555555);
}
#endif
