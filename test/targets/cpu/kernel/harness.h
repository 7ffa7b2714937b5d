// SPDX-License-Identifier: MIT
// What all kernel tests share: seeded random numbers, buffers with guards on both sides, the
// meaning of every activation in double, the loop over instruction sets, and the FMA peak that
// --bench compares with.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "check.h"
#include "targets/cpu/kernel/bench.h"
#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/vector/act.h"
#include "targets/cpu/machine/cpuid.h"
#include "targets/cpu/machine/pool.h"

// --- random ---

struct rng {
    uint64_t state;
};

static inline uint32_t rng_next(struct rng *r) // xorshift64*
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (uint32_t)(r->state * 2685821657736338717u >> 32);
}

static inline int rng_below(struct rng *r, int n)
{
    return (int)(rng_next(r) % (uint32_t)n);
}

static inline float rng_float(struct rng *r) // in [-1, 1)
{
    return (float)((int32_t)rng_next(r)) * 0x1p-31f;
}

// One of the values around which kernels change their ways.
static inline int rng_size(struct rng *r, const int *values, int count)
{
    const int base = values[rng_below(r, count)] + rng_below(r, 3) - 1;
    return base < 0 ? 0 : base;
}

// --- guarded buffers ---

enum { GUARD = 64, MAX_THREADS = 8 };

struct buffer {
    float *data; // aligned to 64 bytes
    int64_t count;
};

static const uint32_t GUARD_BITS = 0x7fa5c3e1; // a NaN: read by mistake it poisons the result

// On pages as large as a plan's memory has.
static inline struct buffer buffer_new(int64_t count)
{
    float *all = mgx_memory_aligned(64, (size_t)(count + 2 * GUARD) * sizeof *all);
    if (!all)
        abort();
    for (int64_t i = 0; i < count + 2 * GUARD; i++)
        memcpy(all + i, &GUARD_BITS, sizeof GUARD_BITS);
    return (struct buffer){all + GUARD, count};
}

static inline void buffer_free(struct buffer b)
{
    free(b.data - GUARD);
}

static inline bool is_guard(const float *p)
{
    return memcmp(p, &GUARD_BITS, sizeof GUARD_BITS) == 0;
}

static inline bool buffer_intact(struct buffer b)
{
    for (int i = 0; i < GUARD; i++)
        if (!is_guard(b.data - GUARD + i) || !is_guard(b.data + b.count + i))
            return false;
    return true;
}

// Whether so many bytes from `at` on lie in it; none do anywhere.
static inline bool buffer_holds(struct buffer b, const void *at, int64_t bytes)
{
    const char *first = (const char *)b.data, *from = at;
    return bytes == 0 || (bytes > 0 && from >= first && from + bytes <= first + 4 * b.count);
}

static inline void buffer_fill(struct buffer b, struct rng *r)
{
    for (int64_t i = 0; i < b.count; i++)
        b.data[i] = rng_float(r);
}

static inline struct buffer buffer_random(int64_t count, struct rng *r)
{
    struct buffer b = buffer_new(count);
    buffer_fill(b, r);
    return b;
}

// --- values of any element type in a buffer ---

static inline int64_t typed_size(enum mgx_kernel_type type)
{
    return mgx_kernel_size(type);
}

static inline double typed_get(enum mgx_kernel_type type, const void *data, int64_t i)
{
    const uint16_t *half = data;
    switch (type) {
    case MGX_KERNEL_F32:
        return ((const float *)data)[i];
    case MGX_KERNEL_F16:
        return mgx_half_to_float(half[i]);
    case MGX_KERNEL_BF16:
        return mgx_bf16_to_float(half[i]);
    case MGX_KERNEL_S8:
        return ((const int8_t *)data)[i];
    case MGX_KERNEL_U8:
        return ((const uint8_t *)data)[i];
    case MGX_KERNEL_S32:
        return ((const int32_t *)data)[i];
    case MGX_KERNEL_S16:
        break;
    }
    return ((const int16_t *)data)[i];
}

// Random values: floats in [-1, 1), bytes of their whole range.
static inline struct buffer typed_random(enum mgx_kernel_type type, int64_t count, struct rng *r)
{
    struct buffer b = buffer_new((count * typed_size(type) + 3) / 4);
    for (int64_t i = 0; i < count; i++) {
        const float x = rng_float(r);
        if (type == MGX_KERNEL_F32)
            b.data[i] = x;
        else if (type == MGX_KERNEL_F16 || type == MGX_KERNEL_BF16)
            ((uint16_t *)(void *)b.data)[i] =
                type == MGX_KERNEL_F16 ? mgx_half_from_double(x) : mgx_bf16_from_double(x);
        else
            ((uint8_t *)(void *)b.data)[i] = (uint8_t)rng_next(r);
    }
    return b;
}

// Signed bytes to a quarter of themselves: weights that chunks can hold.
static inline const void *small_bytes(struct buffer b)
{
    int8_t *byte = (int8_t *)(void *)b.data;
    for (int64_t i = 0; i < 4 * b.count; i++)
        byte[i] = (int8_t)(byte[i] / 4);
    return byte;
}

// Whether element i still has the guard's bytes.
static inline bool typed_untouched(enum mgx_kernel_type type, const void *data, int64_t i)
{
    const int64_t size = typed_size(type);
    return memcmp((const char *)data + i * size, (const char *)&GUARD_BITS + i * size % 4,
                  (size_t)size) == 0;
}

// Relative rounding of a stored value.
static inline double typed_epsilon(enum mgx_kernel_type type)
{
    return type == MGX_KERNEL_F16 ? 0x1p-11 : type == MGX_KERNEL_BF16 ? 0x1p-8 : 0x1p-24;
}

// --- activations ---

static inline double act_meaning(enum mgx_act act, double x, double a, double b)
{
    const double hard = fmin(fmax(a * x + b, 0), 1);
    switch (act) {
    case MGX_ACT_RELU:
        return x > 0 ? x : 0;
    case MGX_ACT_CLIP:
        return fmin(fmax(x, a), b);
    case MGX_ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case MGX_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case MGX_ACT_TANH:
        return tanh(x);
    case MGX_ACT_SILU:
        return x / (1 + exp(-x));
    case MGX_ACT_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case MGX_ACT_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case MGX_ACT_HARD_SIGMOID:
        return hard;
    case MGX_ACT_HARD_SWISH:
        return x * hard;
    case MGX_ACT_ELU:
        return x < 0 ? a * expm1(x) : x;
    case MGX_ACT_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case MGX_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case MGX_ACT_MISH:
        return x * tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)));
    case MGX_ACT_AFFINE:
        return a * x + b;
    case MGX_ACT_SCALED_TANH:
        return a * tanh(b * x);
    case MGX_ACT_THRESHOLDED_RELU:
        return x > a ? x : 0;
    default:
        return x;
    }
}

// --- instruction sets: what runs once for each that a kernel needs and this machine has ---

// Sets below are left out: of a test that is compiled for one set.
#ifndef LEAST_ISA
#define LEAST_ISA MGX_ISA_GENERIC
#endif

// The next of them from number *at on.
static inline bool harness_isa(mgx_isa *at, mgx_isa *isa)
{
    while (mgx_kernel_isa((int)*at, isa)) {
        if (mgx_isa_holds(*isa, LEAST_ISA))
            return true;
        ++*at;
    }
    return false;
}

// `isa##_at` counts them.
#define EACH_ISA(isa) for (mgx_isa isa = 0, isa##_at = 0; harness_isa(&isa##_at, &isa); isa##_at++)

// --- running the cases ---

// Keeps workers alive from case to case: starting and ending them costs more than the kernels.
// Skipped (77) where there is no set to test.
static inline int harness_run(const struct check_case *cases, int argc, char **argv)
{
    enum { SKIPPED = 77 };
    mgx_isa isa, at = 0;
    if (!harness_isa(&at, &isa)) {
        printf("skipped: this machine has no such instruction set\n");
        return SKIPPED;
    }
    struct mgx_pool *pool = NULL;
    if (mgx_pool_acquire(5, &pool, NULL) != MGX_OK)
        return 1;
    const int failed = check_run(cases, argc, argv);
    mgx_pool_release(pool);
    return failed;
}

enum { MAX_SETS = 32 };

// --- the peak ---

#if defined(__x86_64__)
typedef float peak_v16 __attribute__((vector_size(64)));
typedef float peak_v8 __attribute__((vector_size(32)));
#if defined(__clang__)
#define PEAK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PEAK_UNROLL _Pragma("GCC unroll 24")
#endif
#define PEAK(name, features, type, count)                                                          \
    __attribute__((target(features), noinline)) static void name(void *user)                       \
    {                                                                                              \
        type acc[count], x, y;                                                                     \
        memcpy(&x, user, sizeof x);                                                                \
        y = x * 0.5f;                                                                              \
        PEAK_UNROLL                                                                                \
        for (int i = 0; i < count; i++)                                                            \
            acc[i] = x;                                                                            \
        for (int i = 0; i < 20000; i++) {                                                          \
            PEAK_UNROLL                                                                            \
            for (int j = 0; j < count; j++)                                                        \
                __asm__("vfmadd231ps %1, %2, %0" : "+v"(acc[j]) : "v"(x), "v"(y));                 \
        }                                                                                          \
        PEAK_UNROLL                                                                                \
        for (int i = 1; i < count; i++)                                                            \
            acc[0] += acc[i];                                                                      \
        memcpy(user, &acc[0], sizeof acc[0]);                                                      \
    }
PEAK(peak_avx512, "avx512f", peak_v16, 24)
PEAK(peak_avx2, "avx2,fma", peak_v8, 12)
#endif

// GFLOP/s of independent fused multiply-adds on one thread, the best of some rounds; 0 where not
// known. Measured anew each time, next to what it is compared with: clocks and neighbours change.
static inline double peak_of(mgx_isa isa, int rounds)
{
#if defined(__x86_64__)
    _Alignas(64) float values[16] = {1e-30f};
    if (mgx_isa_holds(isa, MGX_ISA_AVX512))
        return 2 * 16 * 24 * 20000 * 1e-9 / bench_time(peak_avx512, values, rounds);
    if (mgx_isa_holds(isa, MGX_ISA_AVX2))
        return 2 * 8 * 12 * 20000 * 1e-9 / bench_time(peak_avx2, values, rounds);
#endif
    (void)isa, (void)rounds;
    return 0;
}

static inline double peak_gflops(mgx_isa isa)
{
    return peak_of(isa, 5);
}

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// A call of so many GFLOP: the least seconds of its rounds, and the median share of the peak of
// `threads` threads, which is measured around every round: a clock that falls under load falls for
// both.
struct paced {
    double seconds, share;
};

static inline struct paced bench_paced(const struct bench *b, int threads, mgx_isa isa,
                                       double gflop)
{
    enum { ROUNDS = 31 };
    struct paced p = {1e30, 0};
    double share[ROUNDS], before = peak_of(isa, 1);
    for (int r = 0; r < ROUNDS; r++) {
        const double seconds = bench_round(b), after = peak_of(isa, 1);
        share[r] = gflop / seconds / (threads * (before + after) / 2);
        p.seconds = seconds < p.seconds ? seconds : p.seconds;
        before = after;
    }
    qsort(share, ROUNDS, sizeof *share, ascending);
    p.share = share[ROUNDS / 2];
    return p;
}
