// SPDX-License-Identifier: MIT
// Looking up a vector of bytes at once. AVX2: of a table's sixteen pieces, the one that a byte is
// within, some 50 instructions. AVX-512: the table is 128 pairs of bytes in four registers, a
// permutation of two of them finds a pair; some 20 instructions.
#pragma once

#include <stdint.h>

#include "targets/cpu/kernel/vector/simd.h"

#if defined(__AVX512F__)
// The entries of numbers up to 255 in 16 bits.
SIMD __m512i entries_of(const __m512i table[4], __m512i number)
{
    const __m512i pair = _mm512_srli_epi16(number, 1), one = _mm512_set1_epi16(1);
    const __m512i low = _mm512_permutex2var_epi16(table[0], pair, table[1]),
                  high = _mm512_permutex2var_epi16(table[2], pair, table[3]);
    const __mmask32 upper = _mm512_test_epi16_mask(number, _mm512_set1_epi16(128));
    const __m512i shift = _mm512_slli_epi16(_mm512_and_si512(number, one), 3);
    const __m512i found = _mm512_srlv_epi16(_mm512_mask_mov_epi16(low, upper, high), shift);
    return _mm512_and_si512(found, _mm512_set1_epi16(255));
}

SIMD __m512i looked_up(const uint8_t *table, __m512i byte)
{
    const __m512i all[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
                            _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)};
    const __m512i even = entries_of(all, _mm512_and_si512(byte, _mm512_set1_epi16(255))),
                  odd = entries_of(all, _mm512_srli_epi16(byte, 8));
    return _mm512_or_si512(even, _mm512_slli_epi16(odd, 8));
}
#elif defined(__AVX2__)
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
