// SPDX-License-Identifier: MIT
// Body of byte_dw.h, AVX-512 with vpdpbusd, for weights of eight bits: 64 channels at a time.
//
//     lines 0 to 3 of a pixel     a0 a1 ...  b0 b1 ...  c0 c1 ...  d0 d1 ...
//     two rounds of unpacking     a0 b0 c0 d0  a1 b1 c1 d1 ...      16 channels in each of 4 vectors
//     vpdpbusd with their weights                                   four taps of a channel at once
//
// Unpacking leaves channels in an order of their own, the same in every 16 bytes: vector s has
// those from 4 s on of each of these. Packing sums to bytes undoes it. Costs some 40 instructions
// for 64 outputs of a 3 x 3 kernel and the step to bytes, up to four outputs side by side.
#include "targets/cpu/kernel/image/byte_dw.h"
#include "targets/cpu/kernel/tile/byte_ends.h"

enum { CHANNELS = 64, LINES = 4, PARTS = CHANNELS / COLS, PIXELS = 4, LANE = 16 };

// What a kind of kernel is known by when it is compiled; taps 0: any kernel, stride and dilation.
struct kind {
    int taps, stride;
};

static int place(int channel)
{
    const int in_lane = channel % LANE;
    return in_lane / 4 * COLS + channel / LANE * 4 + in_lane % 4;
}

// One line's values, unsigned.
SIMD __m512i values_at(const uint8_t *line, int64_t at, __m512i flip)
{
    return _mm512_xor_si512(_mm512_loadu_si512(line + at), flip);
}

// A pixel's values of `lines` lines; those that are not there are 0.
SIMD void unpack(int lines, const uint8_t *const line[LINES], int64_t at, __m512i flip,
                 __m512i to[PARTS])
{
    const __m512i a = values_at(line[0], at, flip),
                  b = lines > 1 ? values_at(line[1], at, flip) : _mm512_setzero_si512(),
                  c = lines > 2 ? values_at(line[2], at, flip) : _mm512_setzero_si512(),
                  d = lines > 3 ? values_at(line[3], at, flip) : _mm512_setzero_si512();
    const __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)},
                  cd[2] = {_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)};
    UNROLL
    for (int s = 0; s < PARTS; s++)
        to[s] = s % 2 ? _mm512_unpackhi_epi16(ab[s / 2], cd[s / 2])
                      : _mm512_unpacklo_epi16(ab[s / 2], cd[s / 2]);
}

SIMD void add(const __m512i value[PARTS], const char *weights, sums c[PARTS])
{
    UNROLL
    for (int s = 0; s < PARTS; s++)
        __asm__("vpdpbusd %2, %1, %0"
                : "+v"(c[s])
                : "v"(value[s]), "m"(*(const struct { char c[64]; } *)(weights + s * 64)));
}

// Up to four lines of the kernel: every pixel is unpacked once for all outputs that it is a tap of.
SIMD void add_lines(int count, struct kind kind, int lines, const uint8_t *const line[LINES],
                    int64_t pixel, __m512i flip, const char *weights, sums c[PIXELS][PARTS])
{
    UNROLL
    for (int x = 0; x <= (count - 1) * kind.stride + kind.taps - 1; x++) {
        __m512i value[PARTS];
        unpack(lines, line, x * pixel, flip, value);
        UNROLL
        for (int k = 0; k < kind.taps; k++) {
            const int i = x - k;
            if (i >= 0 && i % kind.stride == 0 && i / kind.stride < count)
                add(value, weights + (int64_t)k * CHANNELS * 4, c[i / kind.stride]);
        }
    }
}

// The same for any kernel.
SIMD void add_lines_any(int count, const struct mgx_byte_dw_args *args, int lines,
                        const uint8_t *const line[LINES], __m512i flip, const char *weights,
                        sums c[PIXELS][PARTS])
{
    for (int64_t k = 0; k < args->kernel; k++, weights += CHANNELS * 4) {
        UNROLL
        for (int i = 0; i < count; i++) {
            __m512i value[PARTS];
            unpack(lines, line, (i * args->stride + k * args->dilation) * args->pixel, flip, value);
            add(value, weights, c[i]);
        }
    }
}

// What sums begin with: what the zero point, 128 larger where bytes are signed, adds over all taps.
SIMD void start(int count, const struct mgx_byte_dw_args *args, const char *weights,
                sums c[PIXELS][PARTS])
{
    const __m512i zero = _mm512_set1_epi32(-(args->zero + (args->is_signed ? 128 : 0)));
    UNROLL
    for (int s = 0; s < PARTS; s++) {
        const __m512i first = _mm512_mullo_epi32(sums_at(weights + s * 64), zero);
        UNROLL
        for (int i = 0; i < count; i++)
            c[i][s] = first;
    }
}

// `offset`: of the first output's first tap and channel in every line.
SIMD void sum_pixels(int count, struct kind kind, const struct mgx_byte_dw_args *args,
                     int64_t offset, const char *weights, sums c[PIXELS][PARTS])
{
    const int64_t bytes = args->kernel * (int64_t)CHANNELS * 4;
    const __m512i flip = _mm512_set1_epi8(args->is_signed ? (char)0x80 : 0);
    const char *w = weights + CHANNELS * 4;
    const int height = kind.taps ? kind.taps : args->height;
    start(count, args, weights, c);
    for (int y = 0; y < height; y += LINES, w += bytes) {
        const int left = height - y;
        const uint8_t *line[LINES];
        UNROLL
        for (int i = 0; i < LINES; i++)
            line[i] = args->lines[i < left ? y + i : y] + offset;
        if (!kind.taps) // lines that are not there have weights of 0
            add_lines_any(count, args, LINES, line, flip, w, c);
        else if (left >= LINES)
            add_lines(count, kind, LINES, line, args->pixel, flip, w, c);
        else
            add_lines(count, kind, kind.taps % LINES, line, args->pixel, flip, w, c);
    }
}

// --- how outputs end ---

// Vectors with channels in order from vectors as unpacking leaves them, and the other way round:
// part s of lane l is part l of lane s.
SIMD void swap_lanes(const __m512i from[PARTS], __m512i to[PARTS])
{
    const __m512i a = _mm512_shuffle_i32x4(from[0], from[1], 0x44),
                  b = _mm512_shuffle_i32x4(from[0], from[1], 0xee),
                  c = _mm512_shuffle_i32x4(from[2], from[3], 0x44),
                  d = _mm512_shuffle_i32x4(from[2], from[3], 0xee);
    to[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    to[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    to[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    to[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

// What the outputs of a vector of channels share.
struct ends {
    enum mgx_end_form ending;
    int channels;
    vf scale[PARTS], bias[PARTS]; // as unpacking leaves channels
};

// Of `cols` channels, those that are not there 0.
SIMD void load_parts(const float *p, int cols, vf to[PARTS])
{
    __m512i from[PARTS], order[PARTS];
    UNROLL
    for (int l = 0; l < PARTS; l++) {
        const int left = cols - l * COLS;
        const vf v =
            !p || left <= 0 ? vf_zero() : load_cols(p + l * COLS, left < COLS ? left : COLS);
        from[l] = _mm512_castps_si512(v);
    }
    swap_lanes(from, order);
    UNROLL
    for (int s = 0; s < PARTS; s++)
        to[s] = _mm512_castsi512_ps(order[s]);
}

// Bytes, perhaps through a table.
SIMD void end_vector_of_bytes(const struct ends *e, const struct mgx_end_step *q, char *to,
                              const sums c[PARTS])
{
    const __m512i zero = _mm512_set1_epi16((short)q->byte.zero);
    __m512i v[PARTS];
    UNROLL
    for (int s = 0; s < PARTS; s++)
        v[s] = _mm512_cvtps_epi32(vf_fma(vf_from_int((vf)c[s]), e->scale[s], e->bias[s]));
    const __m512i x = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero),
                  y = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
    __m512i byte = q->byte.is_signed ? _mm512_packs_epi16(x, y) : _mm512_packus_epi16(x, y);
    if (e->ending == MGX_END_LOOKUP)
        byte = looked_up(q->byte.table, byte);
    if (e->channels == CHANNELS)
        _mm512_storeu_si512(to, byte);
    else
        _mm512_mask_storeu_epi8(to, ((__mmask64)1 << e->channels) - 1, byte);
}

// Anything else, sixteen channels of `count` outputs at a time.
SIMD void end_others(int count, const struct mgx_byte_dw_args *args, int channels,
                     const struct mgx_tile_args *tile, sums c[PIXELS][PARTS])
{
    struct mgx_tile_args own = *tile;
    sums order[PIXELS][PARTS];
    for (int i = 0; i < count; i++)
        swap_lanes(c[i], order[i]);
    for (int l = 0; l * COLS < channels; l++) {
        const int left = channels - l * COLS;
        sums rows[END_ROWS];
        for (int i = 0; i < count; i++)
            rows[i] = order[i][l];
        own.cols = left < COLS ? left : COLS;
        end_tile(count, &own, rows);
        own.c[0] += COLS * args->c_size;
        own.residual[0] += own.residual[0] ? COLS * args->residual_size : 0;
        own.scale += own.scale ? COLS : 0;
        own.bias += own.bias ? COLS : 0;
    }
}

static __attribute__((noinline)) void end_any(int count, const struct mgx_byte_dw_args *args,
                                              int channels, const struct mgx_tile_args *tile,
                                              sums c[PIXELS][PARTS])
{
    struct mgx_tile_args own = *tile;
    if (count == PIXELS) {
        end_others(PIXELS, args, channels, &own, c);
        return;
    }
    for (int i = 0; i < count; i++) {
        end_others(1, args, channels, &own, c + i);
        own.c[0] += own.c_row;
        own.residual[0] += own.residual[0] ? own.residual_row : 0;
    }
}

SIMD void end_pixels(int count, const struct mgx_byte_dw_args *args, const struct ends *e,
                     const struct mgx_tile_args *tile, sums c[PIXELS][PARTS])
{
    if (e->ending != MGX_END_PLAIN && e->ending != MGX_END_LOOKUP) {
        sums own[PIXELS][PARTS]; // so that the sums themselves stay in registers
        memcpy(own, c, sizeof own);
        end_any(count, args, e->channels, tile, own);
        return;
    }
    UNROLL
    for (int i = 0; i < count; i++)
        end_vector_of_bytes(e, tile->end.last, tile->c[0] + i * tile->c_row, c[i]);
}

// --- a row ---

SIMD void run_pixels(int count, struct kind kind, const struct mgx_byte_dw_args *args,
                     int64_t offset, const char *weights, const struct ends *e,
                     const struct mgx_tile_args *tile)
{
    sums c[PIXELS][PARTS];
    sum_pixels(count, kind, args, offset, weights, c);
    end_pixels(count, args, e, tile, c);
}

// All outputs of a vector of channels.
SIMD void run_vector(struct kind kind, const struct mgx_byte_dw_args *args, int64_t offset,
                     const char *weights, const struct ends *e, struct mgx_tile_args tile)
{
    const int64_t step = args->stride * args->pixel;
    for (int64_t left = args->count, done; left > 0; left -= done) {
        done = left < PIXELS ? left : PIXELS;
        if (done == 4)
            run_pixels(4, kind, args, offset, weights, e, &tile);
        else if (done == 3)
            run_pixels(3, kind, args, offset, weights, e, &tile);
        else if (done == 2)
            run_pixels(2, kind, args, offset, weights, e, &tile);
        else
            run_pixels(1, kind, args, offset, weights, e, &tile);
        offset += done * step;
        tile.c[0] += done * tile.c_row;
        tile.residual[0] += tile.residual[0] ? done * tile.residual_row : 0;
    }
}

typedef void (*vector_fn)(const struct mgx_byte_dw_args *args, int64_t offset, const char *weights,
                          const struct ends *e, const struct mgx_tile_args *tile);

#define VECTOR(taps, stride)                                                                       \
    static void vector_##taps##_##stride(const struct mgx_byte_dw_args *args, int64_t offset,      \
                                         const char *weights, const struct ends *e,                \
                                         const struct mgx_tile_args *tile)                         \
    {                                                                                              \
        run_vector((struct kind){taps, stride}, args, offset, weights, e, *tile);                  \
    }
VECTOR(3, 1)
VECTOR(3, 2)
VECTOR(5, 1)
VECTOR(5, 2)
VECTOR(0, 0)

static vector_fn vector_of(const struct mgx_byte_dw_args *a)
{
    if (a->dilation != 1 || a->kernel != a->height || a->stride > 2)
        return vector_0_0;
    if (a->kernel == 3)
        return a->stride == 1 ? vector_3_1 : vector_3_2;
    if (a->kernel == 5)
        return a->stride == 1 ? vector_5_1 : vector_5_2;
    return vector_0_0;
}

static void row(const struct mgx_byte_dw_args *args);

const struct mgx_byte_dw_kernel mgx_u8_dw__avx512_vnni = {
    .base = {"u8_dw__avx512_vnni", .needs = MGX_ISA_AVX512_VNNI},
    .channels = CHANNELS,
    .lines = LINES,
    .place = place,
    .row = row,
};

static void row(const struct mgx_byte_dw_args *args)
{
    const int64_t bytes = mgx_byte_dw_vector(&mgx_u8_dw__avx512_vnni, args->height, args->kernel);
    const vector_fn run = vector_of(args);
    const char *weights = args->weights;
    struct mgx_tile_args tile = args->tile;
    struct ends e;
    int64_t offset = 0;
    tile.cols = CHANNELS;
    e.ending = ending_of(&tile, CHANNELS);
    for (int64_t left = args->channels; left > 0; left -= CHANNELS, offset += CHANNELS) {
        e.channels = left < CHANNELS ? (int)left : CHANNELS;
        load_parts(tile.scale, e.channels, e.scale);
        load_parts(tile.bias, e.channels, e.bias);
        run(args, offset, weights, &e, &tile);
        tile.c[0] += CHANNELS * args->c_size;
        tile.residual[0] += tile.residual[0] ? CHANNELS * args->residual_size : 0;
        tile.scale += tile.scale ? CHANNELS : 0;
        tile.bias += tile.bias ? CHANNELS : 0;
        weights += bytes;
    }
}
