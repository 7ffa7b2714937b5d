// SPDX-License-Identifier: MIT
// See checksum.h; the loops are in checksum_body.h. What was before has 8 lanes of 64 bits, which
// no vector unit before AVX-512 multiplies.
#include "base/checksum_body.h"

uint64_t mgx_checksum_plain(const void *data, size_t size)
{
    return sum_of(data, size);
}

uint64_t mgx_checksum(const void *data, size_t size)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return mgx_checksum_avx2(data, size);
#endif
    return sum_of(data, size);
}

// --- as it was ---

enum { LANES = 8, OLD_BLOCK = 8 * LANES };

static uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

uint64_t mgx_checksum_old(const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t lane[LANES], h = size * FACTOR + 1;
    size_t at = 0;
    for (int i = 0; i < LANES; i++)
        lane[i] = FACTOR * (unsigned)(i + 1);
    for (; size - at >= OLD_BLOCK; at += OLD_BLOCK)
        for (int i = 0; i < LANES; i++)
            lane[i] = mix(lane[i], word_at(p + at + 8 * i));
    uint8_t rest[OLD_BLOCK] = {0};
    if (at < size)
        memcpy(rest, p + at, size - at);
    for (int i = 0; i < LANES; i++)
        h = mix(h, mix(lane[i], word_at(rest + 8 * i)));
    return finish(h);
}
