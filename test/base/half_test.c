// SPDX-License-Identifier: MIT
// Every code of every narrow format against the definition of the format, then rounding: each
// value, the midpoint to its neighbour and the doubles just beside that midpoint.
#include "base/half.h"

#include "check.h"

struct format {
    const char *name;
    int bits, mantissa, bias;
    unsigned max; // code of the largest finite value
    bool infinity, unsigned_zero;
    int kind; // fp8 kind, or -1 half, -2 bf16, -3 fp4
};

static const struct format formats[] = {
    {"half", 16, 10, 15, 0x7bff, true, false, -1},
    {"bf16", 16, 7, 127, 0x7f7f, true, false, -2},
    {"fp4", 4, 1, 1, 7, false, false, -3},
    {"e4m3fnuz", 8, 3, 8, 0x7f, false, true, MGX_F8_E4M3FNUZ},
    {"e4m3fn", 8, 3, 7, 0x7e, false, false, MGX_F8_E4M3FN},
    {"e5m2", 8, 2, 15, 0x7b, true, false, MGX_F8_E5M2},
    {"e5m2fnuz", 8, 2, 16, 0x7f, false, true, MGX_F8_E5M2FNUZ},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static float to_float(const struct format *f, unsigned code)
{
    switch (f->kind) {
    case -1:
        return mgx_half_to_float((uint16_t)code);
    case -2:
        return mgx_bf16_to_float((uint16_t)code);
    case -3:
        return mgx_fp4_to_float((uint8_t)code);
    default:
        return mgx_fp8_to_float((enum mgx_fp8)f->kind, (uint8_t)code);
    }
}

static unsigned from_double(const struct format *f, double value, bool saturate)
{
    switch (f->kind) {
    case -1:
        return mgx_half_from_double(value);
    case -2:
        return mgx_bf16_from_double(value);
    case -3:
        return mgx_fp4_from_double(value);
    default:
        return mgx_fp8_from_double((enum mgx_fp8)f->kind, value, saturate);
    }
}

// The definition: (-1)^s * 2^(e - bias) * 1.m, and * 2^(1 - bias) * 0.m for e = 0.
static double meaning(const struct format *f, unsigned code)
{
    const unsigned sign = code >> (f->bits - 1), magnitude = code & ((1u << (f->bits - 1)) - 1);
    if (f->unsigned_zero && sign && !magnitude)
        return NAN;
    if (magnitude > f->max)
        return f->infinity && magnitude == f->max + 1 ? (sign ? -INFINITY : INFINITY) : NAN;
    const int e = (int)(magnitude >> f->mantissa);
    const double m = magnitude & ((1u << f->mantissa) - 1);
    const double value =
        e ? ldexp(ldexp(m, -f->mantissa) + 1, e - f->bias) : ldexp(m, 1 - f->bias - f->mantissa);
    return sign ? -value : value;
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

CASE(every_code_decodes_as_defined_and_returns)
{
    for (int i = 0; i < FORMATS; i++)
        for (unsigned code = 0; code < 1u << formats[i].bits; code++) {
            const struct format *f = &formats[i];
            const double expected = meaning(f, code), actual = to_float(f, code);
            if (!same(actual, expected))
                CHECK_FAIL("%s %#x is %g, expected %g", f->name, code, actual, expected);
            const unsigned again = from_double(f, actual, false);
            if (isnan(actual) ? !isnan(to_float(f, again)) : again != code)
                CHECK_FAIL("%s %#x comes back as %#x", f->name, code, again);
        }
}

CASE(rounds_to_nearest_ties_to_even)
{
    for (int i = 0; i < FORMATS; i++)
        for (unsigned code = 0; code < formats[i].max; code++) {
            const struct format *f = &formats[i];
            const double low = meaning(f, code), high = meaning(f, code + 1);
            const double middle = (low + high) / 2; // exact: one more bit than the format
            const unsigned even = code & 1 ? code + 1 : code;
            CHECK_INT(from_double(f, middle, false), even);
            CHECK_INT(from_double(f, nextafter(middle, high), false), code + 1);
            CHECK_INT(from_double(f, nextafter(middle, low), false), code);
            const unsigned sign = f->unsigned_zero && even == 0 ? 0 : 1u << (f->bits - 1);
            CHECK_INT(from_double(f, -middle, false), even | sign);
        }
}

CASE(overflow_saturates_or_becomes_infinity_or_nan)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];
        const double max = meaning(f, f->max), step = max - meaning(f, f->max - 1);
        const bool odd = f->max & 1;
        const double inside = odd ? nextafter(max + step / 2, 0) : max + step / 2;
        const double outside = odd ? max + step / 2 : nextafter(max + step / 2, INFINITY);
        const double large[] = {outside, 2 * outside, 1e300, INFINITY};
        CHECK_INT(from_double(f, inside, false), f->max);
        for (int k = 0; k < 4; k++) {
            const double bare = to_float(f, from_double(f, large[k], false));
            const double negative = to_float(f, from_double(f, -large[k], false));
            const bool always = f->kind == -3;
            if (always ? bare != max : f->infinity ? bare != INFINITY : !isnan(bare))
                CHECK_FAIL("%s: %g becomes %g", f->name, large[k], bare);
            if (always ? negative != -max : f->infinity ? negative != -INFINITY : !isnan(negative))
                CHECK_FAIL("%s: %g becomes %g", f->name, -large[k], negative);
            if (f->kind >= 0) {
                CHECK_INT(from_double(f, large[k], true), f->max);
                CHECK_INT(from_double(f, -large[k], true), f->max | 0x80);
            }
        }
    }
}

CASE(tiny_values_become_zero)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];
        const unsigned minus = f->unsigned_zero ? 0 : 1u << (f->bits - 1);
        const double half_smallest = meaning(f, 1) / 2;
        const double tiny[] = {half_smallest, half_smallest / 4, 1e-300, 5e-324, 0};
        for (int k = 0; k < 5; k++) {
            CHECK_INT(from_double(f, tiny[k], false), 0);
            CHECK_INT(from_double(f, -tiny[k], false), minus);
        }
    }
}

CASE(nan_stays_nan_where_there_is_one)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].kind != -3) {
            CHECK(isnan(to_float(&formats[i], from_double(&formats[i], NAN, false))));
            CHECK(isnan(to_float(&formats[i], from_double(&formats[i], -NAN, true))));
        }
    CHECK(mgx_fp4_to_float(mgx_fp4_from_double(NAN)) == 0);
}

// Every half, the midpoints to its neighbours, and the floats beside these: many at once as one by one.
CASE(many_halves_are_as_one)
{
    enum { AROUND = 5, AT_ONCE = 2 * AROUND + 1 };
    for (uint32_t code = 0; code < 0x10000; code++) {
        float x[AT_ONCE];
        uint16_t many[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) {
            uint32_t bits;
            const float half = mgx_half_to_float((uint16_t)code);
            memcpy(&bits, &half, sizeof bits);
            bits += (k & 1 ? 1u << 12 : 0) + (uint32_t)(k / 2) - AROUND / 2; // 2^12: half a place
            memcpy(&x[k], &bits, sizeof bits);
        }
        mgx_half_from_floats(x, AT_ONCE, many);
        for (int k = 0; k < AT_ONCE; k++)
            CHECK_INT(many[k], mgx_half_from_double(x[k]));
    }
    for (int i = 0; i < 1 << 16; i++) { // subnormal ones, and what is too small for these
        const float x = (float)ldexp((double)i * (i & 1 ? 1 : -1), -36);
        uint16_t one;
        mgx_half_from_floats(&x, 1, &one);
        CHECK_INT(one, mgx_half_from_double(x));
    }
}

CASE(many_floats_are_as_one)
{
    enum { ALL = 1 << 16 };
    static uint16_t codes[ALL];
    static float many[ALL];
    for (int i = 0; i < ALL; i++)
        codes[i] = (uint16_t)i;
    mgx_half_to_floats(codes, ALL, many);
    for (int i = 0; i < ALL; i++) {
        const float one = mgx_half_to_float(codes[i]);
        CHECK(isnan(one) ? isnan(many[i]) : memcmp(&one, &many[i], sizeof one) == 0);
    }
}

CASE(double_rounding_does_not_happen)
{
    // Just above the midpoint between 1 and the next half; as a float it would be the midpoint.
    CHECK_INT(mgx_half_from_double(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    CHECK_INT(mgx_bf16_from_double(1 + 0x1p-8 + 0x1p-40), 0x3f81);
}

CASE(e8m0_is_a_power_of_two)
{
    for (int code = 0; code < 255; code++) {
        const double value = ldexp(1, code - 127);
        CHECK(mgx_e8m0_to_float((uint8_t)code) == value);
        for (const char *r = "udn"; *r; r++) {
            CHECK_INT(mgx_e8m0_from_double(value, *r, true), code);
            CHECK_INT(mgx_e8m0_from_double(-value, *r, false), code);
        }
        const int next = code == 254 ? 255 : code + 1;
        CHECK_INT(mgx_e8m0_from_double(value * 1.25, 'u', false), next);
        CHECK_INT(mgx_e8m0_from_double(value * 1.25, 'd', false), code);
        CHECK_INT(mgx_e8m0_from_double(value * 1.25, 'n', false), code);
        CHECK_INT(mgx_e8m0_from_double(value * 1.5, 'n', false), next);
        CHECK_INT(mgx_e8m0_from_double(value * 1.75, 'd', false), code);
    }
    CHECK(isnan(mgx_e8m0_to_float(255)));
    CHECK_INT(mgx_e8m0_from_double(NAN, 'n', true), 255);
    CHECK_INT(mgx_e8m0_from_double(0, 'u', true), 0);
    CHECK_INT(mgx_e8m0_from_double(1e300, 'd', true), 254);
    CHECK_INT(mgx_e8m0_from_double(1e300, 'd', false), 255);
    CHECK_INT(mgx_e8m0_from_double(1e-300, 'u', false), 0);
}

TEST_MAIN(ROW(every_code_decodes_as_defined_and_returns) ROW(rounds_to_nearest_ties_to_even)
              ROW(overflow_saturates_or_becomes_infinity_or_nan) ROW(tiny_values_become_zero)
                  ROW(nan_stays_nan_where_there_is_one) ROW(many_halves_are_as_one)
                      ROW(many_floats_are_as_one) ROW(double_rounding_does_not_happen)
                          ROW(e8m0_is_a_power_of_two))
