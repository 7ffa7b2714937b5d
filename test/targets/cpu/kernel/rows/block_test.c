// SPDX-License-Identifier: MIT
// Quantization in blocks (block.h) against a division and a rounding: the same integer for every value,
// those around the middle between two, infinities, NaN and numbers of any size among them; and the
// floats of eight bits against the codec of half.h.
#include "base/half.h"
#include "targets/cpu/kernel/rows/block.h"

#include <math.h>

#include "targets/cpu/kernel/harness.h"

enum { LENGTH = 77 };

static float any_bits(struct rng *r)
{
    const uint32_t bits = rng_next(r);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Mostly what a scale is; now and then any positive number.
static float any_scale(struct rng *r)
{
    const float any = fabsf(any_bits(r));
    if (rng_below(r, 10) || !(any > 0))
        return ldexpf(1 + (float)rng_below(r, 1 << 23) / (1 << 23), rng_below(r, 24) - 16);
    return any;
}

// A value a few floats away from the middle between two bytes, or anything.
static float any_value(struct rng *r, float scale)
{
    if (rng_below(r, 8) == 0)
        return any_bits(r);
    float x = ((float)(rng_below(r, 600) - 300) + 0.5f) * scale;
    for (int steps = rng_below(r, 5) - 2; steps; steps += steps < 0 ? 1 : -1)
        x = nextafterf(x, steps < 0 ? -INFINITY : INFINITY);
    return x;
}

static float expected(float x, float scale, float zero, float low, float high)
{
    const float v = nearbyintf(x / scale) + zero;
    return v > low ? fminf(v, high) : low;
}

static void check(mgx_isa isa, struct rng *r, int code, float low, float high)
{
    float x[LENGTH], y[LENGTH + 1], scale = any_scale(r), zero = low + (float)rng_below(r, 256);
    const bool plain = rng_below(r, 4) == 0;
    const int n = 1 + rng_below(r, LENGTH);
    for (int i = 0; i < n; i++)
        x[i] = any_value(r, scale);
    y[n] = 4711;
    zero = plain ? 0 : zero;
    const struct mgx_block_operand in[] = {{x, false}, {&scale, true}, {&zero, true}};
    mgx_block_kernel(isa)->table[code](y, in, plain, 0, n);
    CHECK(y[n] == 4711);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(y[i], expected(x[i], scale, zero, low, high), 0);
}

CASE(bytes_are_those_of_a_division)
{
    struct rng r = {3};
    EACH_ISA(isa)
    for (int i = 0; i < 40000 && !check_failures; i++) {
        check(isa, &r, MGX_BLOCK_QUANT_U8, 0, 255);
        check(isa, &r, MGX_BLOCK_QUANT_S8, -128, 127);
        check(isa, &r, MGX_BLOCK_QUANT_U16, 0, 65535);
        check(isa, &r, MGX_BLOCK_QUANT_S16, -32768, 32767);
    }
}

// A quotient near the middle between two floats of eight bits, or anything.
static float any_for(struct rng *r, enum mgx_fp8 kind, float scale)
{
    const uint8_t code = (uint8_t)rng_next(r);
    const float a = mgx_fp8_to_float(kind, code), b = mgx_fp8_to_float(kind, (uint8_t)(code + 1));
    float x = (a + b) / 2 * scale;
    if (rng_below(r, 8) == 0 || isnan(x))
        return any_bits(r);
    for (int steps = rng_below(r, 5) - 2; steps; steps += steps < 0 ? 1 : -1)
        x = nextafterf(x, steps < 0 ? -INFINITY : INFINITY);
    return x;
}

CASE(floats_of_eight_bits_are_the_nearest)
{
    struct rng r = {5};
    EACH_ISA(isa)
    for (int i = 0; i < 20000 && !check_failures; i++) {
        const enum mgx_fp8 kind = (enum mgx_fp8)(i % 4);
        float x[LENGTH], y[LENGTH + 1], scale = any_scale(&r);
        const int n = 1 + rng_below(&r, LENGTH);
        for (int k = 0; k < n; k++)
            x[k] = any_for(&r, kind, scale);
        y[n] = 4711;
        const struct mgx_block_operand in[] = {{x, false}, {&scale, true}};
        mgx_block_kernel(isa)->table[MGX_BLOCK_QUANT_F8](y, in, 1, (float)kind, n);
        CHECK(y[n] == 4711);
        for (int k = 0; k < n; k++) {
            const float q = x[k] / scale;
            CHECK_NEAR(y[k], mgx_fp8_to_float(kind, mgx_fp8_from_double(kind, q, true)), 0);
        }
    }
}

CASE(sixteen_bits_are_the_nearest)
{
    struct rng r = {9};
    EACH_ISA(isa)
    for (int i = 0; i < 2000 && !check_failures; i++) {
        float x[LENGTH], y[LENGTH + 1], z[LENGTH + 1];
        const int n = 1 + rng_below(&r, LENGTH);
        for (int k = 0; k < n; k++) // any, or halfway between two
            x[k] = rng_below(&r, 4)
                       ? any_bits(&r)
                       : ldexpf((float)(2 * rng_below(&r, 2048) + 1), rng_below(&r, 40) - 30);
        y[n] = z[n] = 4711;
        const struct mgx_block_operand in[] = {{x, false}};
        mgx_block_kernel(isa)->table[MGX_BLOCK_ROUND_F16](y, in, 0, 0, n);
        mgx_block_kernel(isa)->table[MGX_BLOCK_ROUND_BF16](z, in, 0, 0, n);
        CHECK(y[n] == 4711 && z[n] == 4711);
        for (int k = 0; k < n; k++) {
            CHECK_NEAR(y[k], mgx_half_to_float(mgx_half_from_double((double)x[k])), 0);
            CHECK_NEAR(z[k], mgx_bf16_to_float(mgx_bf16_from_double((double)x[k])), 0);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(bytes_are_those_of_a_division) ROW(
        floats_of_eight_bits_are_the_nearest) ROW(sixteen_bits_are_the_nearest){NULL, NULL}};
    return check_run(cases, argc, argv);
}
