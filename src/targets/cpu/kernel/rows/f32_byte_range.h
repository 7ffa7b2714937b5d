// SPDX-License-Identifier: MIT
// Body of byte_range.h, compiled once per instruction set: plain loops, a vector at a time.
#include "targets/cpu/kernel/rows/byte_range.h"

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

static void start_of(const int32_t *sums, int32_t zero, int64_t n, int32_t *restrict start)
{
    for (int64_t i = 0; i < n; i++)
        start[i] = (int32_t)(0u - (uint32_t)zero * (uint32_t)sums[i]);
}

static void factors_of(const float *scale, float times, int64_t n, float *restrict factors)
{
    for (int64_t i = 0; i < n; i++)
        factors[i] = times * scale[i];
}

static void repeat(float value, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

const struct mgx_byte_range_kernel NAME(mgx_f32_byte_range) = {KERNEL_BASE("f32_byte_range"),
                                                               start_of, factors_of, repeat};
