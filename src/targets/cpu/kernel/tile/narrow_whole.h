// SPDX-License-Identifier: MIT
// A row of A as whole numbers, in vectors; a part of f32_narrow.h. See mgx_narrow_whole for what
// comes out where words are multiplied as pairs of 16 bits. Where fours of bytes are multiplied a
// whole number is a high byte and a low one, both with a sign:
//
//     v = 256 * high + low,  |v| <= 32639
//     of a word's numbers q[0], q[1], ... with `shift` numbers in a byte:
//     fours of high and of low of q[0], q[shift], ...; then of q[1], q[1 + shift], ...
//
// Many rows as bytes have their fours in the same order, those of MANY rows side by side. So have
// they what they are summed up to by blocks, less than zero, as a word, and their factors.
//
// Pairs and fours of high and low take 32 bytes for 16 numbers. A row of 768 takes a twentieth of
// the time that it takes in C, which every task of a product pays anew.
#pragma once

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
enum { MOST_WHOLE = 32639 };

static void put_whole(__m256i v, int bits, void *to)
{
    const __m256i high = _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(128)), 8);
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi16(255));
    __m128i h = _mm_packs_epi16(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    __m128i l = _mm_packus_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    const __m128i two = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m128i four = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    if (bits < 8) {
        h = _mm_shuffle_epi8(h, bits == 4 ? two : four);
        l = _mm_shuffle_epi8(l, bits == 4 ? two : four);
    }
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi32(h, l));
    _mm_storeu_si128((__m128i *)to + 1, _mm_unpackhi_epi32(h, l));
}
#else
enum { MOST_WHOLE = 32767 };

static void put_whole(__m256i v, int bits, void *to)
{
    const __m256i two = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1,
                                         4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    const __m256i four = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0,
                                          1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    const __m128i first = _mm256_castsi256_si128(v), last = _mm256_extracti128_si256(v, 1);
    if (bits == 2)
        v = _mm256_setr_m128i(_mm_unpacklo_epi16(first, last), _mm_unpackhi_epi16(first, last));
    else
        v = _mm256_shuffle_epi8(v, bits == 4 ? four : two);
    _mm256_storeu_si256((__m256i *)to, v);
}
#endif

enum { MANY = VL == 16 ? MGX_NARROW_MANY : MGX_NARROW_MANY / 2 }; // rows whose bytes lie together

// `words` of 16 numbers that are bytes, at every MANYth place.
static void put_bytes(__m256i v, int bits, int words, int32_t *to)
{
    __m128i x = _mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m128i four = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    int32_t part[4];
    if (bits < 8)
        x = _mm_shuffle_epi8(x, bits == 4 ? two : four);
    _mm_storeu_si128((__m128i *)(void *)part, x);
    for (int i = 0; i < words; i++)
        to[i * MANY] = part[i];
}

// 16 numbers times `up`, of which `count` are there, to the nearest whole ones.
SIMD __m256i whole_of(const float *a, int64_t count, vf up)
{
#if defined(__AVX512F__)
    const vf x = count < VL ? vf_load_some(a, (int)count) : vf_load(a);
    return _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(vf_mul(x, up)));
#else
    const vf x = count < VL ? vf_load_some(a, (int)count) : vf_load(a);
    const vf y = count >= 2 * VL ? vf_load(a + VL)
                 : count > VL    ? vf_load_some(a + VL, (int)count - VL)
                                 : vf_zero();
    return _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(vf_mul(x, up)), _mm256_cvtps_epi32(vf_mul(y, up))),
        0xd8);
#endif
}

SIMD int sum_words(__m256i x)
{
    __m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_add_epi32(y, _mm_shuffle_epi32(y, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 0xb1)));
}

// The largest magnitude; infinity where a value is not finite.
SIMD float largest_of(const float *a, int64_t count)
{
    vf most = vf_zero(), odd = vf_zero(); // a number times zero is zero, all else is not
    for (int64_t i = 0; i < count; i += VL) {
        const vf x = count - i < VL ? vf_load_some(a + i, (int)(count - i)) : vf_load(a + i);
        most = vf_max(most, vf_abs(x));
        odd = vf_fma(x, vf_zero(), odd);
    }
    return vf_sum(odd) == 0 ? vf_largest(most) : INFINITY;
}

// Numbers of a word of B, side by side, take as many words of bytes.
SIMD int words_of(int64_t numbers, int bits)
{
    return (int)mgx_ceil_div(numbers, 32 / bits) * (8 / bits);
}

// `count` numbers of one block; returns their sum, which `fast` bounds.
SIMD int whole_block(int bits, const float *a, int64_t count, float up, char *to)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; i += 16, to += 32) {
        const __m256i v = whole_of(a + i, count - i, vf_set(up));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, ones));
        if (count - i >= 16) {
            put_whole(v, bits, to);
            continue;
        }
        char rest[32];
        put_whole(v, bits, rest); // what lies behind the last word is the next block's
        memcpy(to, rest, (size_t)words_of(count - i, bits) * 8);
    }
    return sum_words(sum);
}

SIMD int byte_block(int bits, const float *a, int64_t count, float up, int32_t *to)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; i += 16, to += 4 * MANY) {
        const __m256i v = whole_of(a + i, count - i, vf_set(up));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, ones));
        put_bytes(v, bits, count - i >= 16 ? 4 : words_of(count - i, bits), to);
    }
    return sum_words(sum);
}

static bool whole_row(const struct mgx_narrow *form, const float *a, bool bytes, int32_t *pairs,
                      float *sums)
{
    const float limit = bytes ? 127 : MOST_WHOLE;
    for (int64_t k = 0; k < form->depth; k += form->block, sums += bytes ? 2 * MANY : 2) {
        const int64_t count = mgx_min_i64(form->block, form->depth - k);
        const float most = largest_of(a + k, count);
        if (!(most < INFINITY) || (most > 0 && most < 0x1p-100f))
            return false;
        const float up = most > 0 ? limit / most : 0;
        if (bytes) {
            const int sum = byte_block(form->bits, a + k, count, up, pairs + k / 4 * MANY);
            const int32_t less = -sum & 0xffff; // a word that zero points are multiplied by
            assert(sum >= INT16_MIN && sum <= INT16_MAX);
            memcpy(sums, &less, sizeof less);
        } else
            sums[0] = (float)whole_block(form->bits, a + k, count, up, (char *)(pairs + k / 2));
        sums[1] = most / limit;
    }
    return true;
}
