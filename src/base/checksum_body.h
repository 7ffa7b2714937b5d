// SPDX-License-Identifier: MIT
// The loops of checksum.h, compiled once for any machine and once for AVX2. Lanes take the words in
// turn; each step (xor, multiplication by an odd number, rotation) can be undone, so a lane that
// differs once differs to the end, and so does what the lanes are folded into.
//
//     64 lanes of 32 bits: vectors of eight, which a compiler that has AVX2 keeps in eight
//     registers, enough to hide the multiplication's delay
#pragma once

#include <assert.h>
#include <string.h>

#include "base/checksum.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken as they lie");

static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;

static inline uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * FACTOR;
    return lane << 29 | lane >> 35;
}

static inline uint64_t finish(uint64_t h)
{
    h = (h ^ h >> 32) * FACTOR;
    return h ^ h >> 29;
}

enum { VECTORS = 8, WIDTH = 8, BLOCK = VECTORS * WIDTH * 4, CHAINS = 4, LINE = 64 };

// How far behind what is summed lines are asked for: memory gives a fifth more bytes than to a
// processor that guesses them. Chunks follow each other, so that few are asked for in vain.
enum { AHEAD = 8192 };

static const uint32_t FACTOR32 = 0x9e3779b1u;

typedef uint32_t vector __attribute__((vector_size(4 * WIDTH)));

static inline __attribute__((always_inline)) void take_block(vector *lane, const uint8_t *p)
{
#pragma GCC unroll 8
    for (int i = 0; i < VECTORS; i++) {
        vector word;
        memcpy(&word, p + sizeof word * (size_t)i, sizeof word);
        word = (lane[i] ^ word) * FACTOR32;
        lane[i] = word << 13 | word >> 19;
    }
}

// Pairs of lanes, in a few chains that do not wait for each other.
static inline uint64_t fold(const vector *lane, uint64_t size)
{
    uint64_t h[CHAINS] = {size * FACTOR + 1, 2, 3, 4}, pair[WIDTH / 2];
    for (int i = 0; i < VECTORS; i++) {
        memcpy(pair, &lane[i], sizeof pair);
        for (int j = 0; j < CHAINS; j++)
            h[j] = mix(h[j], pair[j]);
    }
    for (int j = 1; j < CHAINS; j++)
        h[0] = mix(h[0], h[j]);
    return finish(h[0]);
}

static inline __attribute__((always_inline)) uint64_t sum_of(const uint8_t *p, size_t size)
{
    vector lane[VECTORS];
    uint8_t rest[BLOCK] = {0};
    size_t at = 0;
    for (int i = 0; i < VECTORS; i++)
        for (int j = 0; j < WIDTH; j++)
            lane[i][j] = FACTOR32 * (unsigned)(WIDTH * i + j + 1);
    for (; size - at >= BLOCK; at += BLOCK) {
        for (int i = 0; i < BLOCK; i += LINE)
            __builtin_prefetch(p + at + AHEAD + i);
        take_block(lane, p + at);
    }
    if (at < size) {
        memcpy(rest, p + at, size - at);
        take_block(lane, rest);
    }
    return fold(lane, size);
}
