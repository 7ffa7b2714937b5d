// SPDX-License-Identifier: MIT
// See checksum.h. Eight lanes take the words in turn; each step (xor, multiplication by an odd
// number, rotation) can be undone, so a lane that differs once differs to the end, and so does what
// the lanes are folded into.
#include "base/checksum.h"

#include <string.h>

enum { LANES = 8, BLOCK = 8 * LANES };

static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;

static uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * FACTOR;
    return lane << 29 | lane >> 35;
}

static uint64_t finish(uint64_t h)
{
    h = (h ^ h >> 32) * FACTOR;
    return h ^ h >> 29;
}

uint64_t mgx_checksum(const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t lane[LANES], h = size * FACTOR + 1;
    size_t at = 0;
    for (int i = 0; i < LANES; i++)
        lane[i] = FACTOR * (unsigned)(i + 1);
    for (; size - at >= BLOCK; at += BLOCK)
        for (int i = 0; i < LANES; i++)
            lane[i] = mix(lane[i], word_at(p + at + 8 * i));
    uint8_t rest[BLOCK] = {0};
    if (at < size)
        memcpy(rest, p + at, size - at);
    for (int i = 0; i < LANES; i++)
        h = mix(h, mix(lane[i], word_at(rest + 8 * i)));
    return finish(h);
}
