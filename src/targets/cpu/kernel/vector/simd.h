// SPDX-License-Identifier: MIT
// Vectors of float for kernels that are written once and compiled per instruction set: the set that
// the including file states (kernel.h) decides what the compiler may use, and that which vectors
// these are. Without AVX2 they have 128 bits, of whatever the compiler assumes.
//
//     vf             VL floats in a register: 16, 8 or 4
//     *_some(p, n)   the first n lanes only, 0 <= n <= VL; no byte behind them is touched
//
// NaN in the value operand (the last one) of vf_min and vf_max comes out again.
#pragma once

#include <stdint.h>
#include <string.h>

#include "targets/cpu/kernel/vector/simd_basic.h"

// Full unrolling of a loop whose count is a constant after inlining. Both compilers need to be told
// in their own words; without it accumulator arrays live in memory.
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
enum { VL = 16 };
typedef __m512 vf;
VECTOR_OF(vf, float, _mm512, ps)

SIMD __mmask16 first_lanes(int n)
{
    return (__mmask16)((1u << n) - 1);
}
SIMD vf vf_load_some(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
SIMD void vf_store_some(float *p, vf v, int n)
{
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
}
SIMD vf vf_abs(vf v)
{
    return _mm512_abs_ps(v);
}
SIMD vf vf_round(vf v) // to the nearest whole number, ties to even
{
    return _mm512_roundscale_ps(v, 8);
}
SIMD vf vf_below(vf a, vf b, vf yes, vf no) // a < b ? yes : no
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
SIMD vf vf_nan_or(vf a, vf v) // a where that is NaN, else v
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), v, a);
}
SIMD vf vf_first_digit(vf v) // 2^e of a v = +-1.f 2^e; of a NaN infinity
{
    return _mm512_castsi512_ps(
        _mm512_and_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(0x7f800000)));
}
SIMD vf vf_scale2(vf v, vf n) // v * 2^n for a whole n
{
    return _mm512_scalef_ps(v, n);
}
#define VF_LOOKUP
SIMD vf vf_lookup(const float table[16], vf at) // table[the four lowest bits of at]
{
    return _mm512_permutexvar_ps(_mm512_castps_si512(at), _mm512_loadu_ps(table));
}
// 2^((16 n + i) / 16) of m, a whole number 16 n + i added to 0x1.8p23: the lowest four bits choose
// 2^(i/16), those above are the exponent.
SIMD vf sixteenths(vf m)
{
    static const float roots[16] = {1.0f,        1.04427373f, 1.09050775f, 1.13878858f,
                                    1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
                                    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                                    1.68179286f, 1.75625217f, 1.83400810f, 1.91520655f};
    const __m512i power = _mm512_and_si512(_mm512_slli_epi32(_mm512_castps_si512(m), 19),
                                           _mm512_set1_epi32((int)0xff800000u));
    return _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_castps_si512(vf_lookup(roots, m))));
}
// e^x within 1 ulp, for |x| <= 80. x / ln 2 = (16 n + i + f) / 16, |f| <= 1/2: a polynomial of
// degree 3 is enough for 2^(f/16).
#define VF_POWER
SIMD vf vf_power(vf x)
{
    const vf magic = vf_set(12582912.0f), m = vf_fma(x, vf_set(23.0831203f), magic);
    const vf n = vf_sub(m, magic);
    // ln 2 / 16 in two pieces; the first has few enough bits for n times it to be exact.
    const vf r = vf_fnma(n, vf_set(1.996636456e-06f), vf_fnma(n, vf_set(4.331970215e-02f), x));
    const vf s = sixteenths(m);
    const vf p = vf_fma(vf_set(1.666703820e-01f), r, vf_set(5.000165105e-01f));
    return vf_fma(s, vf_fma(vf_mul(r, r), p, r), s);
}
SIMD vf vf_with_sign(vf v, vf s) // v >= 0 with the sign bit of s
{
    return _mm512_or_ps(v, _mm512_and_ps(s, _mm512_set1_ps(-0.0f)));
}
SIMD vf vf_split(vf x, vf *e) // x = m * 2^e, m in [2/3, 4/3), for a positive normal x; returns m
{
    const __m512i low = _mm512_set1_epi32(0x3f2aaaab);
    const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(x), low);
    *e = _mm512_cvtepi32_ps(_mm512_srai_epi32(above, 23));
    const __m512i m = _mm512_and_si512(above, _mm512_set1_epi32(0x7fffff));
    return _mm512_castsi512_ps(_mm512_add_epi32(m, low));
}
// x / (1 + e^-y) within 12 ulp; y is taken as 87 where it is larger, for e^-y. As above, with a
// parabola. Ten instructions on the multipliers.
#define VF_GATED
SIMD vf vf_gated(vf x, vf y)
{
    const vf magic = vf_set(12582912.0f), scale = vf_set(23.0831203f), one = vf_set(1.0f);
    const vf z = _mm512_range_ps(y, vf_set(87.0f), 2); // the smaller size with the sign of y
    const vf m = vf_fnma(z, scale, magic);
    const vf f = vf_fnma(z, scale, vf_sub(magic, m));
    const vf s = sixteenths(m);
    const vf p = vf_fma(vf_fma(vf_set(9.383845027e-04f), f, vf_set(4.332423210e-02f)), f, one);
    const vf d = vf_fma(p, s, one), r = _mm512_rcp14_ps(d);
    return vf_mul(x, vf_fma(r, vf_fnma(d, r, one), r));
}
SIMD vf vf_from_int(vf v) // lanes hold int32
{
    return _mm512_cvtepi32_ps(_mm512_castps_si512(v));
}
SIMD float vf_sum(vf v)
{
    return _mm512_reduce_add_ps(v);
}
SIMD float vf_largest(vf v) // of the lanes; any, with NaN among them
{
    return _mm512_reduce_max_ps(v);
}
// Lane 4i+j is p[(4 * i) * stride + ...]: four floats from each of VL/4 rows 4 rows apart.
SIMD vf vf_load_quads(const float *p, int64_t stride)
{
    const __m512 a = _mm512_castps128_ps512(_mm_loadu_ps(p));
    const __m512 b = _mm512_insertf32x4(a, _mm_loadu_ps(p + 4 * stride), 1);
    const __m512 c = _mm512_insertf32x4(b, _mm_loadu_ps(p + 8 * stride), 2);
    return _mm512_insertf32x4(c, _mm_loadu_ps(p + 12 * stride), 3);
}
// Lane i takes lane i / members * members + m, for 2, 4 or 8 members.
SIMD vf vf_spread(vf v, int members, int m)
{
    if (members == 8) {
        const __m512i base = _mm512_set_epi32(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0);
        return _mm512_permutexvar_ps(_mm512_add_epi32(base, _mm512_set1_epi32(m)), v);
    }
    if (members == 2)
        return m ? _mm512_movehdup_ps(v) : _mm512_moveldup_ps(v);
    return m == 0   ? _mm512_permute_ps(v, 0x00)
           : m == 1 ? _mm512_permute_ps(v, 0x55)
           : m == 2 ? _mm512_permute_ps(v, 0xaa)
                    : _mm512_permute_ps(v, 0xff);
}
#define UNPACK_LOW _mm512_unpacklo_ps
#define UNPACK_HIGH _mm512_unpackhi_ps
#define SHUFFLE_PAIRS _mm512_shuffle_ps

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
enum { VL = 8 };
typedef __m256 vf;
VECTOR_OF(vf, float, _mm256, ps)

SIMD __m256i first_lanes(int n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - n));
}
SIMD vf vf_load_some(const float *p, int n)
{
    return n == VL ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
}
// A masked store takes a dozen cycles on some machines, a full one a single cycle.
SIMD void vf_store_some(float *p, vf v, int n)
{
    if (n == VL)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, first_lanes(n), v);
}
SIMD vf vf_abs(vf v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}
SIMD vf vf_round(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD vf vf_below(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
SIMD vf vf_nan_or(vf a, vf v)
{
    return _mm256_blendv_ps(v, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
SIMD vf vf_first_digit(vf v)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000)));
}
SIMD vf vf_pow2(__m256i n) // 2^n for -126 <= n <= 127
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
// In two steps, since 2^n itself may be too large or too small for a float.
SIMD vf vf_scale2(vf v, vf n)
{
    const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return vf_mul(vf_mul(v, vf_pow2(half)), vf_pow2(_mm256_sub_epi32(whole, half)));
}
SIMD vf vf_with_sign(vf v, vf s)
{
    return _mm256_or_ps(v, _mm256_and_ps(s, _mm256_set1_ps(-0.0f)));
}
// x / (1 + e^-y) within 4 ulp; y is taken as 87 where it is larger, for e^-y = 2^n 2^f, |f| <= 1/2.
// n is the low bits of m and goes to the exponent as it is: half the instructions of a division of
// x by what vf_exp gives.
#define VF_GATED
SIMD vf vf_gated(vf x, vf y)
{
    const vf magic = vf_set(12582912.0f), scale = vf_set(1.44269502f), one = vf_set(1.0f);
    const vf z = vf_min(vf_set(87.0f), vf_max(vf_set(-87.0f), y));
    const vf m = vf_fnma(z, scale, magic);
    const vf f = vf_fnma(z, vf_set(1.925963e-08f), vf_fnma(z, scale, vf_sub(magic, m)));
    vf p = vf_fma(vf_set(1.327647129e-03f), f, vf_set(9.675540961e-03f));
    p = vf_fma(p, f, vf_set(5.550713092e-02f));
    p = vf_fma(p, f, vf_set(2.402212024e-01f));
    p = vf_fma(p, f, vf_set(6.931469440e-01f));
    p = vf_fma(p, f, vf_set(1.000000119e+00f));
    const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(m), 23);
    const vf s = _mm256_castsi256_ps(_mm256_add_epi32(power, _mm256_castps_si256(p)));
    return vf_div(x, vf_add(one, s));
}
SIMD vf vf_split(vf x, vf *e)
{
    const __m256i low = _mm256_set1_epi32(0x3f2aaaab);
    const __m256i above = _mm256_sub_epi32(_mm256_castps_si256(x), low);
    *e = _mm256_cvtepi32_ps(_mm256_srai_epi32(above, 23));
    const __m256i m = _mm256_and_si256(above, _mm256_set1_epi32(0x7fffff));
    return _mm256_castsi256_ps(_mm256_add_epi32(m, low));
}
SIMD vf vf_from_int(vf v)
{
    return _mm256_cvtepi32_ps(_mm256_castps_si256(v));
}
SIMD float vf_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
SIMD float vf_largest(vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
SIMD vf vf_load_quads(const float *p, int64_t stride)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)),
                                _mm_loadu_ps(p + 4 * stride), 1);
}
SIMD vf vf_spread(vf v, int members, int m)
{
    if (members == 8)
        return _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(m));
    if (members == 2)
        return m ? _mm256_movehdup_ps(v) : _mm256_moveldup_ps(v);
    return m == 0   ? _mm256_permute_ps(v, 0x00)
           : m == 1 ? _mm256_permute_ps(v, 0x55)
           : m == 2 ? _mm256_permute_ps(v, 0xaa)
                    : _mm256_permute_ps(v, 0xff);
}
#define UNPACK_LOW _mm256_unpacklo_ps
#define UNPACK_HIGH _mm256_unpackhi_ps
#define SHUFFLE_PAIRS _mm256_shuffle_ps

#else
#define VECTOR_OF_4
#if defined(                                                                                       \
    __x86_64__) // without AVX2: processors of before 2013, for which kernels have fewer forms
#define FEWER_FORMS
#endif
enum { VL = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16))); // arithmetic on bits wraps
VECTOR_PLAIN(vf, float, vi)

SIMD vf vf_set(float x)
{
    return (vf){x, x, x, x};
}
SIMD vf vf_load_some(const float *p, int n)
{
    vf v = {0};
    for (int i = 0; i < VL; i++)
        if (i < n)
            v[i] = p[i];
    return v;
}
SIMD void vf_store_some(float *p, vf v, int n)
{
    for (int i = 0; i < VL; i++)
        if (i < n)
            p[i] = v[i];
}
SIMD vf vf_abs(vf v)
{
    return (vf)((vi)v & INT32_MAX);
}
SIMD vf vf_nan_or(vf a, vf v)
{
    return vf_choose((vi)(a != a), a, v);
}
SIMD vf vf_first_digit(vf v)
{
    return (vf)((vi)v & 0x7f800000);
}
// Adding 1.5 * 2^23 leaves no room for a fraction. Exact below 2^22, all that is asked of it here.
SIMD vf vf_round(vf v)
{
    const vf magic = vf_set(12582912.0f);
    return (v + magic) - magic;
}
SIMD vf vf_scale2(vf v, vf n)
{
    const vi whole = __builtin_convertvector(n, vi), half = whole >> 1;
    return v * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
}
SIMD vf vf_with_sign(vf v, vf s)
{
    return (vf)((vi)v | ((vi)s & INT32_MIN));
}
SIMD vf vf_split(vf x, vf *e)
{
    const vi above = (vi)((vu)x - 0x3f2aaaabu);
    *e = __builtin_convertvector(above >> 23, vf);
    return (vf)((above & 0x7fffff) + 0x3f2aaaab); // below 2^31
}
SIMD vf vf_from_int(vf v)
{
    return __builtin_convertvector((vi)v, vf);
}
SIMD float vf_sum(vf v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}
SIMD float vf_largest(vf v)
{
    const float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}
SIMD vf vf_load_quads(const float *p, int64_t stride)
{
    (void)stride;
    return vf_load(p);
}
SIMD vf vf_spread(vf v, int members, int m) // 2 or 4 members
{
    return members == 2 ? (vf){v[m], v[m], v[2 + m], v[2 + m]} : (vf){v[m], v[m], v[m], v[m]};
}
#define UNPACK_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UNPACK_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define SHUFFLE_PAIRS(a, b, code)                                                                  \
    ((code) == 0x44 ? __builtin_shufflevector(a, b, 0, 1, 4, 5)                                    \
                    : __builtin_shufflevector(a, b, 2, 3, 6, 7))
#endif

// Makes the value live in a register. Without it gcc folds a load into every instruction that uses
// the value, and loads it as often.
#if defined(__AVX512F__)
#define IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__x86_64__)
#define IN_REGISTER(v) __asm__("" : "+x"(v))
#else
#define IN_REGISTER(v) ((void)0)
#endif

SIMD vf vf_zero(void)
{
    return vf_set(0.0f);
}

// Rows to columns within each group of four lanes: out[j] lane 4i+k is in[k] lane 4i+j.
SIMD void vf_transpose4(const vf in[4], vf out[4])
{
    const vf ab0 = UNPACK_LOW(in[0], in[1]), ab1 = UNPACK_HIGH(in[0], in[1]);
    const vf cd0 = UNPACK_LOW(in[2], in[3]), cd1 = UNPACK_HIGH(in[2], in[3]);
    out[0] = SHUFFLE_PAIRS(ab0, cd0, 0x44);
    out[1] = SHUFFLE_PAIRS(ab0, cd0, 0xee);
    out[2] = SHUFFLE_PAIRS(ab1, cd1, 0x44);
    out[3] = SHUFFLE_PAIRS(ab1, cd1, 0xee);
}
