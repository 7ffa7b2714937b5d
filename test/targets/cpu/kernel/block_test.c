// SPDX-License-Identifier: MIT
// Quantization in blocks (block.h) against a division and a rounding: the same byte for every value,
// those around the middle between two bytes, infinities, NaN and numbers of any size among them.
#include "targets/cpu/kernel/block.h"

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
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(bytes_are_those_of_a_division){NULL, NULL}};
    return check_run(cases, argc, argv);
}
