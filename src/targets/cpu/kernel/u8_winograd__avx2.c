// SPDX-License-Identifier: MIT
// The transforms of byte_winograd.h, AVX2: 16 channels of a patch in int16, 8 columns of a tile in
// int32. A patch takes some 120 cycles, a tile some 100 with its end.
#include <string.h>

#include "targets/cpu/kernel/byte_ends.h"
#include "targets/cpu/kernel/byte_winograd.h"

enum { EDGE = 6, OUT = 4, CHANNELS = MGX_BYTE_WINOGRAD_CHANNELS };

static const int32_t NINTH = 0x38E38E39; // 9 times it is 1 modulo 2^32

// o = B' d for one line of the patch.
SIMD void transform_in(const __m256i d[EDGE], __m256i o[EDGE])
{
    const __m256i even = _mm256_sub_epi16(d[4], _mm256_slli_epi16(d[2], 2)),
                  odd = _mm256_sub_epi16(d[3], _mm256_slli_epi16(d[1], 2)),
                  even2 = _mm256_sub_epi16(d[4], d[2]), step = _mm256_sub_epi16(d[3], d[1]),
                  odd2 = _mm256_add_epi16(step, step);
    o[0] = _mm256_add_epi16(_mm256_slli_epi16(_mm256_sub_epi16(d[0], d[2]), 2), even2);
    o[1] = _mm256_add_epi16(even, odd);
    o[2] = _mm256_sub_epi16(even, odd);
    o[3] = _mm256_add_epi16(even2, odd2);
    o[4] = _mm256_sub_epi16(even2, odd2);
    o[5] = _mm256_sub_epi16(_mm256_sub_epi16(d[5], d[3]), _mm256_slli_epi16(step, 2));
}

SIMD __m256i load_pixel(const struct mgx_byte_winograd_input *in, int y, int x, int64_t c,
                        bool inside, bool whole, bool is_signed)
{
    if (!inside && (y < in->y_begin || y >= in->y_end || x < in->x_begin || x >= in->x_end))
        return _mm256_set1_epi16((short)in->zero);
    const uint8_t *p = in->x + y * in->line + x * in->pixel + c;
    uint8_t room[CHANNELS] = {0};
    if (!whole)
        p = memcpy(room, p, (size_t)(in->channels - c));
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

SIMD void input_channels(const struct mgx_byte_winograd_input *in, int64_t c, bool inside,
                         bool whole, bool is_signed)
{
    __m256i mid[EDGE][EDGE];
    UNROLL
    for (int x = 0; x < EDGE; x++) {
        __m256i d[EDGE], o[EDGE];
        UNROLL
        for (int y = 0; y < EDGE; y++)
            d[y] = load_pixel(in, y, x, c, inside, whole, is_signed);
        transform_in(d, o);
        UNROLL
        for (int y = 0; y < EDGE; y++)
            mid[y][x] = o[y];
    }
    UNROLL
    for (int y = 0; y < EDGE; y++) {
        __m256i o[EDGE];
        transform_in(mid[y], o);
        // Rows of B' add up to 0 but the second's, to -6: the zero point is in that square alone.
        if (y == 1)
            o[1] = _mm256_sub_epi16(o[1], _mm256_set1_epi16((short)(36 * in->zero)));
        UNROLL
        for (int x = 0; x < EDGE; x++)
            _mm256_storeu_si256((__m256i *)(void *)(in->v + (y * EDGE + x) * in->element + c),
                                o[x]);
    }
}

SIMD void input_patch(const struct mgx_byte_winograd_input *in, bool inside, bool is_signed)
{
    int64_t c = 0;
    for (; c + CHANNELS <= in->channels; c += CHANNELS)
        input_channels(in, c, inside, true, is_signed);
    if (c < in->channels)
        input_channels(in, c, false, false, is_signed);
}

static void input(const struct mgx_byte_winograd_input *in)
{
    const bool inside =
        in->y_begin == 0 && in->x_begin == 0 && in->y_end == EDGE && in->x_end == EDGE;
    if (inside && in->is_signed)
        input_patch(in, true, true);
    else if (inside)
        input_patch(in, true, false);
    else if (in->is_signed)
        input_patch(in, false, true);
    else
        input_patch(in, false, false);
}

// o = A' s, 24, 12, 6 and 6 times.
SIMD void transform_out(const __m256i s[EDGE], __m256i o[OUT])
{
    const __m256i sum = _mm256_add_epi32(s[1], s[2]), difference = _mm256_sub_epi32(s[1], s[2]),
                  sum2 = _mm256_add_epi32(s[3], s[4]), difference2 = _mm256_sub_epi32(s[3], s[4]);
    o[0] = _mm256_add_epi32(_mm256_add_epi32(s[0], _mm256_slli_epi32(sum, 2)), sum2);
    o[1] = _mm256_add_epi32(_mm256_add_epi32(difference, difference), difference2);
    o[2] = _mm256_add_epi32(sum, sum2);
    o[3] = _mm256_add_epi32(
        _mm256_add_epi32(difference, _mm256_add_epi32(difference2, difference2)), s[5]);
}

static __attribute__((noinline)) void end_line(int pixels, const struct mgx_tile_args *args,
                                               const sums c[OUT])
{
    sums all[END_ROWS];
    if (pixels == OUT) {
        UNROLL
        for (int i = 0; i < OUT; i++)
            all[i] = c[i];
        end_tile(OUT, args, all);
        return;
    }
    struct mgx_tile_args one = *args;
    for (int i = 0; i < pixels; i++, one.c[0] += one.c_row) {
        all[0] = c[i];
        end_tile(1, &one, all);
        if (one.residual[0])
            one.residual[0] += one.residual_row;
    }
}

// Adds what other channels came to. True: the outputs wait there for more.
SIMD bool with_others(const struct mgx_byte_winograd_output *out, int y, __m256i o[OUT])
{
    __m256i *others = (__m256i *)(void *)out->others + y * OUT;
    UNROLL
    for (int x = 0; x < OUT; x++) {
        if (out->adds)
            o[x] = _mm256_add_epi32(o[x], _mm256_loadu_si256(others + x));
        if (out->stays)
            _mm256_storeu_si256(others + x, o[x]);
    }
    return out->stays;
}

static void output(const struct mgx_byte_winograd_output *out)
{
    static const int power[OUT] = {3, 2, 1, 1}; // of two, that is left of 24, 12, 6 and 6
    const __m256i ninth = _mm256_set1_epi32(NINTH);
    struct mgx_tile_args args = out->tile;
    __m256i mid[OUT][EDGE];
    UNROLL
    for (int x = 0; x < EDGE; x++) {
        __m256i s[EDGE], o[OUT];
        UNROLL
        for (int y = 0; y < EDGE; y++)
            s[y] = _mm256_loadu_si256(
                (const __m256i *)(const void *)(out->sums + (y * EDGE + x) * out->element));
        transform_out(s, o);
        UNROLL
        for (int y = 0; y < OUT; y++)
            mid[y][x] = o[y];
    }
    UNROLL
    for (int y = 0; y < OUT; y++) {
        if (y == out->lines)
            break;
        __m256i o[OUT];
        transform_out(mid[y], o);
        UNROLL
        for (int x = 0; x < OUT; x++)
            o[x] = _mm256_srai_epi32(_mm256_mullo_epi32(o[x], ninth), power[y] + power[x]);
        if (out->others && with_others(out, y, o))
            continue;
        end_line(out->pixels, &args, o);
        args.c[0] += out->line;
        if (args.residual[0])
            args.residual[0] += out->residual_line;
    }
}

const struct mgx_byte_winograd_kernel mgx_u8_winograd__avx2 = {
    {"u8_winograd__avx2", .needs = MGX_ISA_AVX2}, input, output};
