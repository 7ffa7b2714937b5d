// SPDX-License-Identifier: MIT
// The transforms of byte_winograd.h, compiled once per instruction set: a vector of a patch's
// channels in int16, a vector of a tile's columns in int32. With AVX2 a patch of 16 channels takes
// some 120 cycles, a tile of 8 columns some 100 with its end; with AVX-512 a patch of 32 channels
// 90 and one that lacks something 140, a tile of 16 columns 100 and with a residual 160.
#include <string.h>

#include "targets/cpu/kernel/image/byte_winograd.h"
#include "targets/cpu/kernel/tile/byte_ends.h"
#if defined(__AVX512VNNI__)
#include "targets/cpu/kernel/image/s16_product.h"
#endif

KERNEL_FOR(AVX2, AVX512_VNNI)

enum { EDGE = 6, OUT = 4, CHANNELS = 2 * VL };

static const uint32_t EVERY = (uint32_t)(((uint64_t)1 << CHANNELS) - 1); // channel of a vector

static const uint32_t NINTH = 0x38E38E39; // 9 times it is 1 modulo 2^32

// Sums wrap.
typedef uint16_t v16 __attribute__((vector_size(4 * VL)));
typedef uint32_t v32 __attribute__((vector_size(4 * VL)));
typedef int32_t signed32 __attribute__((vector_size(4 * VL)));

// o = B' d for one line of the patch.
SIMD void transform_in(const v16 d[EDGE], v16 o[EDGE])
{
    const v16 even = d[4] - (d[2] << 2), odd = d[3] - (d[1] << 2), even2 = d[4] - d[2],
              step = d[3] - d[1], odd2 = step + step;
    o[0] = ((d[0] - d[2]) << 2) + even2;
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = even2 + odd2;
    o[4] = even2 - odd2;
    o[5] = d[5] - d[3] - (step << 2);
}

// The same of a short one.
SIMD void transform_short_in(const v16 d[EDGE], v16 o[EDGE])
{
    o[0] = d[0] - d[2];
    o[1] = d[1] + d[2];
    o[2] = d[2] - d[1];
    o[3] = o[4] = (v16){0};
    o[5] = d[1] - d[3];
}

// --- a pixel's channels ---

#if defined(__AVX512F__)
SIMD v16 load_pixel(const struct mgx_byte_winograd_input *in, const uint8_t *p, uint32_t exists,
                    bool all, bool is_signed)
{
    const __m512i zero = _mm512_set1_epi16((short)in->zero);
    const __m256i v = all ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                          : _mm256_maskz_loadu_epi8(exists, p);
    if (all)
        return (v16)(is_signed ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v));
    return (v16)(is_signed ? _mm512_mask_cvtepi8_epi16(zero, exists, v)
                           : _mm512_mask_cvtepu8_epi16(zero, exists, v));
}
#else
SIMD v16 load_pixel(const struct mgx_byte_winograd_input *in, const uint8_t *p, uint32_t exists,
                    bool all, bool is_signed)
{
    uint8_t room[CHANNELS] = {0};
    if (!all && !exists)
        return (v16){0} + (uint16_t)in->zero;
    if (!all && exists != EVERY)
        p = memcpy(room, p, (size_t)__builtin_popcount(exists));
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (v16)(is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v));
}
#endif

// --- a patch ---

// Six places at equal distances, of which few registers hold all: the address of the first, and its
// distance to the second, fourth and sixth. The empty asm keeps it so.
struct six {
    int64_t one, three, five; // bytes
};

SIMD struct six six_of(int64_t step)
{
    struct six s = {step, 3 * step, 5 * step};
    __asm__("" : "+r"(s.one), "+r"(s.three), "+r"(s.five));
    return s;
}

SIMD int64_t place_in(const struct six *s, int i)
{
    return i == 3 ? s->three : i == 5 ? s->five : i * s->one;
}

// What a patch lacks: how far each line and column is from the first one, or from one that exists
// in their place, since even without a lane to load an address nowhere can take hundreds of cycles;
// and the channels of each that exist.
struct lack {
    int64_t line[EDGE], pixel[EDGE];
    uint32_t in_line[EDGE], in_pixel[EDGE];
};

SIMD struct lack lack_of(const struct mgx_byte_winograd_input *in)
{
    struct lack p;
    UNROLL
    for (int i = 0; i < EDGE; i++) {
        const bool line = i >= in->y_begin && i < in->y_end,
                   pixel = i >= in->x_begin && i < in->x_end;
        p.line[i] = (line ? i : in->y_begin) * in->line;
        p.pixel[i] = (pixel ? i : in->x_begin) * in->pixel;
        p.in_line[i] = line ? EVERY : 0;
        p.in_pixel[i] = pixel ? EVERY : 0;
    }
    return p;
}

// Column x of the patch, channels from c on. `lack` NULL: all of it exists.
SIMD void load_column(const struct mgx_byte_winograd_input *in, const struct lack *lack, int x,
                      int64_t c, bool is_signed, v16 d[EDGE])
{
    const uint32_t channels =
        in->channels - c >= CHANNELS ? EVERY : ((uint32_t)1 << (in->channels - c)) - 1;
    const struct six lines = six_of(in->line);
    const uint8_t *from = in->x + (lack ? lack->pixel[x] : x * in->pixel) + c;
    __asm__("" : "+r"(from));
    UNROLL
    for (int y = 0; y < EDGE; y++)
        d[y] = load_pixel(in, from + (lack ? lack->line[y] : place_in(&lines, y)),
                          lack ? channels & lack->in_line[y] & lack->in_pixel[x] : EVERY, !lack,
                          is_signed);
}

// Rows of B' add up to 0 but the second's, to -6, or 2 where it is short: the zero point is in that
// square alone, so many times.
SIMD int zeros_of(bool short_y, bool short_x)
{
    return (short_y ? 2 : -6) * (short_x ? 2 : -6);
}

SIMD void input_channels(const struct mgx_byte_winograd_input *in, const struct lack *lack,
                         int64_t c, bool is_signed)
{
    const bool short_y = lack && in->short_y, short_x = lack && in->short_x;
    v16 mid[EDGE][EDGE];
    UNROLL
    for (int x = 0; x < EDGE; x++) {
        v16 d[EDGE], o[EDGE];
        load_column(in, lack, x, c, is_signed, d);
        if (short_y)
            transform_short_in(d, o);
        else
            transform_in(d, o);
        UNROLL
        for (int y = 0; y < EDGE; y++)
            mid[y][x] = o[y];
    }
    const struct six elements = six_of(in->element * (int64_t)sizeof *in->v);
    char *to = (char *)(in->v + c);
    UNROLL
    for (int y = 0; y < EDGE; y++, to += EDGE * elements.one) {
        v16 o[EDGE];
        if (short_x)
            transform_short_in(mid[y], o);
        else
            transform_in(mid[y], o);
        if (y == 1)
            o[1] -= (uint16_t)(zeros_of(short_y, short_x) * in->zero);
        UNROLL
        for (int x = 0; x < EDGE; x++)
            memcpy(to + place_in(&elements, x), &o[x], sizeof *o);
    }
}

SIMD void input_patch(const struct mgx_byte_winograd_input *in, bool inside, bool is_signed)
{
    const struct lack lack = lack_of(in);
    int64_t c = 0;
    for (; c + CHANNELS <= in->channels; c += CHANNELS)
        input_channels(in, inside ? NULL : &lack, c, is_signed);
    if (c < in->channels)
        input_channels(in, &lack, c, is_signed);
}

static void input(const struct mgx_byte_winograd_input *in)
{
    const bool inside = in->y_begin == 0 && in->x_begin == 0 && in->y_end == EDGE &&
                        in->x_end == EDGE && !in->short_y && !in->short_x;
    if (inside && in->is_signed)
        input_patch(in, true, true);
    else if (inside)
        input_patch(in, true, false);
    else if (in->is_signed)
        input_patch(in, false, true);
    else
        input_patch(in, false, false);
}

// --- a tile ---

// o = A' s, 24, 12, 6 and 6 times.
SIMD void transform_out(const v32 s[EDGE], v32 o[OUT])
{
    const v32 sum = s[1] + s[2], difference = s[1] - s[2], sum2 = s[3] + s[4],
              difference2 = s[3] - s[4];
    o[0] = s[0] + (sum << 2) + sum2;
    o[1] = difference + difference + difference2;
    o[2] = sum + sum2;
    o[3] = difference + (difference2 + difference2) + s[5];
}

// The same of a short one, whose other outputs are nobody's.
SIMD void transform_short_out(const v32 s[EDGE], v32 o[OUT])
{
    const v32 sum = s[1] + s[2], difference = s[2] - s[1];
    o[0] = (s[0] - (sum << 1) - sum) << 2;
    o[1] = ((difference << 1) + difference - s[5]) << 1;
    o[2] = o[3] = (v32){0};
}

// Where a line of the tile goes, and what is added to it.
struct line {
    char *to;
    const char *residual; // NULL: nothing
};

static __attribute__((noinline)) void end_any(int pixels, const struct mgx_tile_args *all,
                                              struct line line, const sums c[OUT])
{
    struct mgx_tile_args args = *all;
    sums rows[END_ROWS];
    args.c[0] = line.to;
    args.residual[0] = line.residual;
    if (pixels == OUT) {
        UNROLL
        for (int i = 0; i < OUT; i++)
            rows[i] = c[i];
        end_tile(OUT, &args, rows);
        return;
    }
    for (int i = 0; i < pixels; i++, args.c[0] += args.c_row) {
        rows[0] = c[i];
        end_tile(1, &args, rows);
        if (args.residual[0])
            args.residual[0] += args.residual_row;
    }
}

SIMD void end_pixels(int pixels, enum mgx_end_form ending, const struct mgx_tile_args *args,
                     struct line line, const sums c[OUT])
{
    if (ending == MGX_END_PLAIN)
        end_plainly(pixels, 1, MGX_END_PLAIN, args, line.to, line.residual, c);
    else if (ending == MGX_END_LOOKUP)
        end_plainly(pixels, 1, MGX_END_LOOKUP, args, line.to, line.residual, c);
    else
        end_plainly(pixels, 1, MGX_END_MIXED, args, line.to, line.residual, c);
}

// Fewer pixels than a line has.
static __attribute__((noinline)) void end_some(int pixels, enum mgx_end_form ending,
                                               const struct mgx_tile_args *args, struct line line,
                                               const sums c[OUT])
{
    if (pixels == 1)
        end_pixels(1, ending, args, line, c);
    else if (pixels == 2)
        end_pixels(2, ending, args, line, c);
    else
        end_pixels(3, ending, args, line, c);
}

SIMD void end_line(int pixels, enum mgx_end_form ending, const struct mgx_tile_args *args,
                   struct line line, const sums c[OUT])
{
    if (ending == MGX_END_ANY)
        end_any(pixels, args, line, c);
    else if (pixels == OUT)
        end_plainly(OUT, 1, ending, args, line.to, line.residual, c);
    else
        end_some(pixels, ending, args, line, c);
}

// Adds what other channels came to. True: the outputs wait there for more.
SIMD bool with_others(const struct mgx_byte_winograd_output *out, int y, v32 o[OUT])
{
    int32_t *others = out->others + y * OUT * COLS;
    UNROLL
    for (int x = 0; x < OUT; x++, others += COLS) {
        if (out->adds) {
            v32 other;
            memcpy(&other, others, sizeof other);
            o[x] += other;
        }
        if (out->stays)
            memcpy(others, &o[x], sizeof *o);
    }
    return out->stays;
}

SIMD bool is_short(int outputs)
{
    return outputs <= MGX_BYTE_WINOGRAD_SHORT;
}

// `some`: the tile is short, one way or both.
SIMD void output_tile(const struct mgx_byte_winograd_output *out, enum mgx_end_form ending,
                      bool some)
{
    static const int power[OUT] = {3, 2, 1, 1}; // of two, that is left of 24, 12, 6 and 6
    const bool short_y = some && is_short(out->lines), short_x = some && is_short(out->pixels);
    struct line line = {out->tile.c[0], out->tile.residual[0]};
    v32 mid[OUT][EDGE];
    UNROLL
    for (int x = 0; x < EDGE; x++) {
        v32 s[EDGE], o[OUT];
        UNROLL
        for (int y = 0; y < EDGE; y++)
            memcpy(&s[y], out->sums + (y * EDGE + x) * 2 * COLS, sizeof *s);
        if (short_y)
            transform_short_out(s, o);
        else
            transform_out(s, o);
        UNROLL
        for (int y = 0; y < OUT; y++)
            mid[y][x] = o[y];
    }
    UNROLL
    for (int y = 0; y < OUT; y++) {
        if (y == out->lines)
            break;
        v32 o[OUT];
        sums c[OUT];
        if (short_x)
            transform_short_out(mid[y], o);
        else
            transform_out(mid[y], o);
        UNROLL
        for (int x = 0; x < OUT; x++)
            o[x] = (v32)((signed32)(o[x] * NINTH) >> (power[y] + power[x]));
        if (out->others && with_others(out, y, o))
            continue;
        UNROLL
        for (int x = 0; x < OUT; x++)
            c[x] = (sums)o[x];
        end_line(out->pixels, ending, &out->tile, line, c);
        line.to += out->line;
        line.residual += line.residual ? out->residual_line : 0;
    }
}

// Each in a function of its own, which compiles in less time than all in one.
#define OUTPUT(name, ending, some)                                                                 \
    static void name(const struct mgx_byte_winograd_output *out)                                   \
    {                                                                                              \
        output_tile(out, ending, some);                                                            \
    }
OUTPUT(whole_any, MGX_END_ANY, false)
OUTPUT(whole_plain, MGX_END_PLAIN, false)
OUTPUT(whole_table, MGX_END_LOOKUP, false)
OUTPUT(whole_added, MGX_END_MIXED, false)
OUTPUT(short_any, MGX_END_ANY, true)
OUTPUT(short_plain, MGX_END_PLAIN, true)
OUTPUT(short_table, MGX_END_LOOKUP, true)
OUTPUT(short_added, MGX_END_MIXED, true)

static void output(const struct mgx_byte_winograd_output *out)
{
    static void (*const outputs[][MGX_END_FORMS])(const struct mgx_byte_winograd_output *) = {
        {whole_any, whole_plain, whole_table, whole_added},
        {short_any, short_plain, short_table, short_added},
    };
    const bool some = is_short(out->lines) || is_short(out->pixels);
    outputs[some][ending_of(&out->tile, COLS)](out);
}

#if defined(__AVX512VNNI__)
#define NAMES(width)                                                                               \
    {                                                                                              \
        NULL, width##_1, width##_2, width##_3, width##_4, width##_5, width##_6, width##_7,         \
            width##_8, width##_9, width##_10, width##_11, width##_12, width##_13, width##_14       \
    }
PRODUCT(1)
PRODUCT(2)
PRODUCT(3)
PRODUCT(4)
PRODUCT(5)
PRODUCT(6)
PRODUCT(7)
PRODUCT(8)
PRODUCT(9)
PRODUCT(10)
PRODUCT(11)
PRODUCT(12)
PRODUCT(13)
PRODUCT(14)
#define PRODUCTS .wide = NAMES(wide), .narrow = NAMES(narrow)
#define PACE                                                                                       \
    {                                                                                              \
        2.2, 45, 250, 240, 4                                                                       \
    }
#else
#define PRODUCTS .wide = {NULL}
#define PACE                                                                                       \
    {                                                                                              \
        7.4 / 6, 30, 120, 100, 8                                                                   \
    }
#endif

const struct mgx_byte_winograd_kernel NAME(mgx_u8_winograd) = {
    .base = KERNEL_BASE("u8_winograd"),
    .channels = CHANNELS,
    .cols = COLS,
    .pace = PACE,
    PRODUCTS,
    .input = input,
    .output = output,
};
