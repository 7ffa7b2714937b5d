// SPDX-License-Identifier: MIT
// Narrow floats; see half.h.
//
//     sign | exponent, e bits, biased | mantissa, m bits
//
// One codec serves every format: a format is a row of numbers. Encoding works on the bits of the
// double: the 53-bit significand is shifted right until the format's last place is bit 0, what fell
// off decides the rounding, and because exponent and mantissa are adjacent a carry out of the
// mantissa lands in the exponent where it belongs. The codes of positive numbers ascend with their
// values, so "too large" is one comparison with the code of the largest finite one. Cost: about 20
// integer operations a value.
#include "base/half.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct format {
    int bits;           // whole width, sign included
    int mantissa;       // explicit mantissa bits
    int bias;           // of the exponent
    uint32_t max;       // code of the largest finite value
    uint32_t beyond;    // code of infinity, or of NaN in formats without one
    uint32_t nan;       // canonical NaN
    bool unsigned_zero; // the "fnuz" formats: the code of -0 is the NaN, and the only one
};

static const struct format half_format = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00, false};
static const struct format bf16_format = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false};
static const struct format fp4_format = {4, 1, 1, 0x7, 0x7, 0x8, false};
static const struct format fp8_formats[] = {
    [MGX_F8_E4M3FNUZ] = {8, 3, 8, 0x7f, 0x80, 0x80, true},
    [MGX_F8_E4M3FN] = {8, 3, 7, 0x7e, 0x7f, 0x7f, false},
    [MGX_F8_E5M2] = {8, 2, 15, 0x7b, 0x7c, 0x7f, false},
    [MGX_F8_E5M2FNUZ] = {8, 2, 16, 0x7f, 0x80, 0x80, true},
};

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int32_t bits_of_float(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// value >> shift, rounded to nearest, ties to even.
static inline uint64_t shift_round(uint64_t value, int shift)
{
    assert(shift > 0 && shift < 64);
    const uint64_t kept = value >> shift;
    const uint64_t rest = value & (((uint64_t)1 << shift) - 1);
    const uint64_t tie = (uint64_t)1 << (shift - 1);
    return kept + (rest > tie || (rest == tie && (kept & 1)));
}

// Code of a finite magnitude, sign left out; anything above f->max means that it does not fit.
static inline uint32_t encode_magnitude(const struct format *f, uint64_t bits)
{
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const int lowest = 1 - f->bias; // exponent of the smallest normal number
    if (exponent == -1023)
        return 0; // zero, or a subnormal double: far below half of every format's smallest value
    const int above = exponent - lowest;
    if (above > 256)
        return UINT32_MAX;
    const uint64_t significand = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int shift = 52 - f->mantissa + (above < 0 ? -above : 0);
    if (shift > 54)
        return 0;
    return (above > 0 ? (uint32_t)above << f->mantissa : 0) +
           (uint32_t)shift_round(significand, shift);
}

static inline uint32_t encode(const struct format *f, double value, bool saturate)
{
    const uint64_t bits = double_bits(value);
    const uint64_t magnitude = bits & ~((uint64_t)1 << 63);
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    const uint32_t sign = (uint32_t)(bits >> 63) << (f->bits - 1);
    if (magnitude > infinity)
        return f->nan | sign;
    const uint32_t code = magnitude == infinity ? UINT32_MAX : encode_magnitude(f, magnitude);
    if (code > f->max)
        return sign | (saturate ? f->max : f->beyond);
    return f->unsigned_zero && code == 0 ? 0 : sign | code;
}

// Every value of the narrow formats is a normal float (bf16's subnormals take their own path).
static inline float decode(const struct format *f, uint32_t bits)
{
    const uint32_t sign_bit = 1u << (f->bits - 1);
    const uint32_t code = bits & (sign_bit - 1);
    if (f->unsigned_zero && bits == sign_bit)
        return NAN;
    const uint32_t exponent = code >> f->mantissa;
    const uint32_t fraction = code & ((1u << f->mantissa) - 1);
    float value;
    if (code > f->max)
        value = code == f->beyond && f->beyond != f->nan ? INFINITY : NAN;
    else if (exponent)
        value = float_of_bits((exponent + 127 - (uint32_t)f->bias) << 23 |
                              fraction << (23 - f->mantissa));
    else // subnormal: fraction * 2^(1 - bias - mantissa)
        value = (float)fraction * float_of_bits((uint32_t)(128 - f->bias - f->mantissa) << 23);
    return bits & sign_bit ? -value : value;
}

float mgx_half_to_float(uint16_t bits)
{
    return decode(&half_format, bits);
}

uint16_t mgx_half_from_double(double value)
{
    return (uint16_t)encode(&half_format, value, false);
}

// Normal halves: 112 leaves the exponent, and half a last place less one, one more where the kept
// one is odd, carries into it. Subnormal ones: added to 0.5 a float's last places are those of
// halves, and the addition rounds. From 65,520 on infinity, and NaN as the scalar has it.
void mgx_half_from_floats(const float *from, int64_t count, uint16_t *to)
{
    const int32_t half_bits = 126 << 23, rebias = 112 << 23;
    for (int64_t i = 0; i < count; i++) {
        const int32_t signed_bits = bits_of_float(from[i]), bits = signed_bits & 0x7fffffff;
        const int32_t normal = (bits - rebias + 0xfff + (bits >> 13 & 1)) >> 13;
        const int32_t subnormal = bits_of_float(fabsf(from[i]) + 0.5f) - half_bits;
        const int32_t small = -(bits < 113 << 23), large = -(bits >= 0x477ff000);
        const int32_t nan = -(bits > 0x7f800000) & 0x200;
        const int32_t code = (subnormal & small) | (normal & ~small & ~large) | (0x7c00 & large);
        to[i] = (uint16_t)(code | nan | (signed_bits >> 16 & 0x8000));
    }
}

// Its bits where a float's are, times 2^112: subnormal ones become normal by it. Infinity and NaN
// are the bits with all of the exponent's; a NaN is the scalar's.
void mgx_half_to_floats(const uint16_t *from, int64_t count, float *to)
{
    const float scale = float_of_bits((uint32_t)(127 + 112) << 23);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = from[i] & 0x7fffu, sign = (uint32_t)(from[i] & 0x8000u) << 16;
        const uint32_t finite = (uint32_t)bits_of_float(float_of_bits(code << 13) * scale);
        const uint32_t beyond = 0x7f800000u | (code > 0x7c00 ? 0x400000u : 0);
        to[i] = float_of_bits(sign | (code >= 0x7c00 ? beyond : finite));
    }
}

float mgx_bf16_to_float(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

uint16_t mgx_bf16_from_double(double value)
{
    return (uint16_t)encode(&bf16_format, value, false);
}

float mgx_fp8_to_float(enum mgx_fp8 kind, uint8_t bits)
{
    return decode(&fp8_formats[kind], bits);
}

uint8_t mgx_fp8_from_double(enum mgx_fp8 kind, double value, bool saturate)
{
    return (uint8_t)encode(&fp8_formats[kind], value, saturate);
}

float mgx_fp4_to_float(uint8_t bits)
{
    return decode(&fp4_format, bits & 0xf);
}

uint8_t mgx_fp4_from_double(double value)
{
    return (uint8_t)encode(&fp4_format, value, true);
}

float mgx_e8m0_to_float(uint8_t bits)
{
    if (bits == 0xff)
        return NAN;
    return bits ? float_of_bits((uint32_t)bits << 23) : float_of_bits(1u << 22); // 2^-127
}

// Magnitudes only: the format has neither sign nor zero, so 0 becomes its smallest value, and
// infinity becomes NaN whether or not finite values saturate.
uint8_t mgx_e8m0_from_double(double value, char rounding, bool saturate)
{
    assert(rounding == 'u' || rounding == 'd' || rounding == 'n');
    if (!isfinite(value))
        return 0xff;
    int exponent; // |value| = fraction * 2^exponent, fraction in [0.5, 1)
    const double fraction = frexp(fabs(value), &exponent);
    if (fraction == 0)
        return 0;
    int code = exponent - 1 + 127;
    if (code >= 0) // below, everything is less than the smallest value
        code += rounding == 'u' ? fraction > 0.5 : rounding == 'n' && fraction >= 0.75;
    if (code < 0)
        return 0;
    return code > 0xfe ? (saturate ? 0xfe : 0xff) : (uint8_t)code;
}
