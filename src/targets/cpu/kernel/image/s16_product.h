// SPDX-License-Identifier: MIT
// Products of int16 for byte_winograd.h, AVX-512 with vpdpwssd. They are shallow, many, and do
// nothing but sum: a tile starts and ends with one instruction for a vector, while its neighbours
// are multiplied, where a tile of tile_body.h stops for a hundred cycles.
//
//                  b: depth x 32
//     a            +------------+
//     +-------+    | 2 vectors  |      c[i][j] = sum over k: a[i][k] * b[k][j], k pairs of int16
//     | row 0 |    +------------+
//     |  ...  |    c: 14 x 32, 28 sums in registers, 2 of b, 1 of a
//     | row 13|
//     +-------+
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/image/byte_winograd.h"
#include "targets/cpu/kernel/vector/simd.h"

enum {
    PRODUCT_VECTORS = 2,
    PRODUCT_BYTES = 64,
    BASE_ROWS = 4,
    BASES = 4,
    C_ROW = MGX_BYTE_WINOGRAD_SUMS * PRODUCT_VECTORS * PRODUCT_BYTES
};

// Rows of A: a base for every fourth, so that few registers hold all addresses.
struct product_rows {
    const char *base[BASES];
    int64_t one, three;
};

SIMD __m512i pair_of_row(const struct product_rows *a, int i, int k)
{
    const int from = i % BASE_ROWS;
    const char *base = a->base[i / BASE_ROWS] + k * 4;
    __m512i pair;
    __asm__("vpbroadcastd %1, %0"
            : "=v"(pair)
            : "m"(*(const int32_t *)(const void *)(from == 3 ? base + a->three
                                                             : base + from * a->one)));
    return pair;
}

SIMD void product_step(int rows, int nv, const struct product_rows *a, int k, const char *b,
                       __m512i c[][PRODUCT_VECTORS])
{
    __m512i bv[PRODUCT_VECTORS];
    UNROLL
    for (int v = 0; v < nv; v++)
        bv[v] = _mm512_loadu_si512(b + v * PRODUCT_BYTES);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i pair = pair_of_row(a, i, k);
        UNROLL
        for (int v = 0; v < nv; v++)
            __asm__("vpdpwssd %2, %1, %0" : "+v"(c[i][v]) : "v"(pair), "v"(bv[v]));
    }
}

// Into L1 where it has room for the next element's panel beside this one's: 32 KB for 256 channels,
// of which a product takes 16 bytes a cycle. From L2 they come in time where the core's own
// prefetching follows, which it does in one process and not in the next: 172 us or 205 to 220 for
// 256 > 256 channels of 14 x 14 on a Zen 5 core. A Zen 4 core, whose L1 has no room, takes 434 us
// by L1 and 385 by L2.
SIMD void fetch_ahead(const struct mgx_byte_winograd_panel *p, const char *from)
{
    if (p->ahead_far)
        for (int64_t i = 0; i < p->ahead_lines; i++)
            __builtin_prefetch(from + i * 64, 0, 2);
    else
        for (int64_t i = 0; i < p->ahead_lines; i++)
            __builtin_prefetch(from + i * 64, 0, 3);
}

SIMD void product(int rows, int nv, const struct mgx_byte_winograd_panel *p, const char *a_first,
                  const char *b, char *to, const char *ahead)
{
    enum { STEPS = 4 };
    struct product_rows a = {.one = p->a_row, .three = 3 * p->a_row};
    __m512i c[MGX_BYTE_WINOGRAD_ROWS][PRODUCT_VECTORS];
    // The empty asm hides how a base was computed, else its parts take registers.
    UNROLL
    for (int i = 0; i < BASES; i++) {
        a.base[i] = a_first + i * BASE_ROWS * a.one;
        __asm__("" : "+r"(a.base[i]));
    }
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        c[i / nv][i % nv] = _mm512_setzero_si512();
    int64_t k = p->depth;
    for (; k >= STEPS; k -= STEPS) {
        fetch_ahead(p, ahead);
        ahead += p->ahead_lines * 64;
        UNROLL
        for (int u = 0; u < STEPS; u++)
            product_step(rows, nv, &a, u, b + u * nv * PRODUCT_BYTES, c);
        b += STEPS * nv * PRODUCT_BYTES;
        UNROLL
        for (int i = 0; i < BASES; i++)
            a.base[i] += STEPS * 4;
    }
    for (; k > 0; k--, b += nv * PRODUCT_BYTES) {
        product_step(rows, nv, &a, 0, b, c);
        UNROLL
        for (int i = 0; i < BASES; i++)
            a.base[i] += 4;
    }
    UNROLL
    for (int i = 0; i < rows * nv; i++)
        _mm512_storeu_si512(to + i / nv * C_ROW + i % nv * PRODUCT_BYTES, c[i / nv][i % nv]);
}

#define PRODUCT(rows)                                                                              \
    static void wide_##rows(const struct mgx_byte_winograd_panel *p, const char *a, const char *b, \
                            char *c, const char *ahead)                                            \
    {                                                                                              \
        product(rows, 2, p, a, b, c, ahead);                                                       \
    }                                                                                              \
    static void narrow_##rows(const struct mgx_byte_winograd_panel *p, const char *a,              \
                              const char *b, char *c, const char *ahead)                           \
    {                                                                                              \
        product(rows, 1, p, a, b, c, ahead);                                                       \
    }
