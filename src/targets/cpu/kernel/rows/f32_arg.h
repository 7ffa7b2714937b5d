// SPDX-License-Identifier: MIT
// The loops of arg.h, compiled once per instruction set: plain ones over 32-bit integers, which
// compilers turn into vectors.
#include "targets/cpu/kernel/rows/arg.h"

#include <assert.h>
#include <string.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum { BLOCK = 512 };

// Ascends with what is looked for.
SIMD int32_t key_of(float x, int32_t flip)
{
    int32_t u;
    const float plain = x + 0.0f; // -0 becomes 0
    memcpy(&u, &plain, sizeof u);
    const int32_t key = (u ^ (u >> 31 & INT32_MAX)) ^ flip;
    return x != x ? INT32_MAX : key;
}

static int64_t place_in(const struct mgx_arg *how, const float *x, int64_t n, int64_t step)
{
    const int32_t flip = how->largest ? 0 : -1;
    int32_t best = key_of(x[0], flip);
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++) {
        const int32_t key = key_of(x[i * step], flip);
        if (key > best || (how->last && key == best)) {
            best = key;
            at = i;
        }
    }
    return at;
}

static int32_t best_of(const float *x, int64_t n, int32_t flip)
{
    int32_t best = INT32_MIN;
    for (int64_t i = 0; i < n; i++) {
        const int32_t key = key_of(x[i], flip);
        best = key > best ? key : best;
    }
    return best;
}

static int64_t line(const struct mgx_arg *how, const float *x, int64_t n, int64_t step)
{
    assert(n >= 1 && n <= INT32_MAX);
    if (step != 1 || n <= MGX_ARG_SHORT)
        return place_in(how, x, n, step);
    const int32_t flip = how->largest ? 0 : -1;
    int32_t best = INT32_MIN;
    int64_t block = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int32_t found = best_of(x + at, n - at < BLOCK ? n - at : BLOCK, flip);
        if (at == 0 || found > best || (how->last && found == best)) {
            best = found;
            block = at;
        }
    }
    return block + place_in(how, x + block, n - block < BLOCK ? n - block : BLOCK, 1);
}

SIMD void step_lanes(const float *x, int lanes, int64_t apart, int32_t place, int32_t flip,
                     bool last, int32_t *best, int32_t *places)
{
    for (int j = 0; j < lanes; j++) {
        const int32_t key = key_of(x[j * apart], flip);
        const bool wins = last ? key >= best[j] : key > best[j];
        best[j] = wins ? key : best[j];
        places[j] = wins ? place : places[j];
    }
}

static void lanes_of(const struct mgx_arg *how, const float *x, int64_t n, int64_t step, int lanes,
                     int64_t apart, int32_t *places)
{
    const int32_t flip = how->largest ? 0 : -1;
    int32_t best[MGX_ARG_LANES];
    assert(n >= 1 && n <= INT32_MAX && lanes >= 1 && lanes <= MGX_ARG_LANES);
    for (int j = 0; j < lanes; j++) {
        best[j] = key_of(x[j * apart], flip);
        places[j] = 0;
    }
    for (int64_t i = 1; i < n; i++) {
        x += step;
        if (how->last)
            step_lanes(x, lanes, apart, (int32_t)i, flip, true, best, places);
        else if (apart == 1)
            step_lanes(x, lanes, 1, (int32_t)i, flip, false, best, places);
        else
            step_lanes(x, lanes, apart, (int32_t)i, flip, false, best, places);
    }
}

const struct mgx_arg_kernel NAME(mgx_f32_arg) = {KERNEL_BASE("f32_arg"), line, lanes_of};
