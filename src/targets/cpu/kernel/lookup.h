// SPDX-License-Identifier: MIT
// Looking up a vector of bytes at once, AVX2 or AVX-512: of a table's sixteen pieces, the one that a
// byte is within. Some 50 instructions, whatever the bytes are.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/simd.h"

#if defined(__AVX512F__)
SIMD __m512i looked_up(const uint8_t *table, __m512i byte)
{
    const __m512i sixteen = _mm512_set1_epi8(16), beyond = _mm512_set1_epi8(0x70);
    __m512i found = _mm512_setzero_si512();
    for (int i = 0; i < 16; i++) {
        const __m512i piece = _mm512_broadcast_i32x4(
            _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
        found = _mm512_or_si512(found, _mm512_shuffle_epi8(piece, _mm512_adds_epu8(byte, beyond)));
        byte = _mm512_sub_epi8(byte, sixteen);
    }
    return found;
}
#else
SIMD __m256i looked_up(const uint8_t *table, __m256i byte)
{
    const __m256i sixteen = _mm256_set1_epi8(16), beyond = _mm256_set1_epi8(0x70);
    __m256i found = _mm256_setzero_si256();
    for (int i = 0; i < 16; i++) {
        const __m256i piece = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
        found = _mm256_or_si256(found, _mm256_shuffle_epi8(piece, _mm256_adds_epu8(byte, beyond)));
        byte = _mm256_sub_epi8(byte, sixteen);
    }
    return found;
}
#endif
