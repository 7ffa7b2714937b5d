// SPDX-License-Identifier: MIT
// Body of byte_dw.h, AVX2. The usual kernels are unrolled (KINDS), others loop over taps.
#include "targets/cpu/kernel/image/byte_dw.h"
#include "targets/cpu/kernel/tile/byte_ends.h"

enum { CHANNELS = 8, MOST_TAPS = 5 };

// What a kind of kernel is known by when it is compiled; taps 0: any kernel, stride and dilation.
struct kind {
    int taps, stride;
    bool is_signed;
};

// Two lines' values of eight channels, side by side in 16 bits; of one line: the other's are 0, or
// what its weights of 0 make no matter.
SIMD __m256i pair_at(const uint8_t *a, const uint8_t *b, bool is_signed)
{
    const __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
    if (!b)
        return is_signed ? _mm256_cvtepi8_epi32(x) : _mm256_cvtepu8_epi32(x);
    const __m128i both = _mm_unpacklo_epi8(x, _mm_loadl_epi64((const __m128i *)(const void *)b));
    return is_signed ? _mm256_cvtepi8_epi16(both) : _mm256_cvtepu8_epi16(both);
}

SIMD __m256i tap_at(const char *weights, int64_t k)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(weights + k * CHANNELS * 4));
}

SIMD void add(sums *c, __m256i pair, __m256i tap)
{
    const __m256i both = _mm256_madd_epi16(pair, tap);
    __asm__("vpaddd %1, %0, %0" : "+x"(*c) : "x"(both));
}

SIMD void add_lines(int count, struct kind kind, const uint8_t *a, const uint8_t *b, int64_t pixel,
                    const char *weights, sums c[END_ROWS])
{
    __m256i tap[MOST_TAPS];
    UNROLL
    for (int k = 0; k < kind.taps; k++)
        tap[k] = tap_at(weights, k);
    UNROLL
    for (int x = 0; x <= (count - 1) * kind.stride + kind.taps - 1; x++) {
        const __m256i v = pair_at(a + x * pixel, b ? b + x * pixel : NULL, kind.is_signed);
        UNROLL
        for (int k = 0; k < kind.taps; k++) {
            const int i = x - k;
            if (i >= 0 && i % kind.stride == 0 && i / kind.stride < count)
                add(&c[i / kind.stride], v, tap[k]);
        }
    }
}

// The same for any kernel.
SIMD void add_lines_any(int count, const struct mgx_byte_dw_args *args, bool is_signed,
                        const uint8_t *a, const uint8_t *b, int64_t pixel, const char *weights,
                        sums c[END_ROWS])
{
    for (int64_t k = 0; k < args->kernel; k++) {
        const __m256i tap = tap_at(weights, k);
        UNROLL
        for (int i = 0; i < count; i++) {
            const int64_t x = i * args->stride + k * args->dilation;
            add(&c[i], pair_at(a + x * pixel, b ? b + x * pixel : NULL, is_signed), tap);
        }
    }
}

// `offset`: of the step's first tap and channel in every line.
SIMD void run_step(int count, struct kind kind, const struct mgx_byte_dw_args *args, int64_t offset,
                   const char *weights, sums c[END_ROWS])
{
    const int64_t bytes = args->kernel * (int64_t)CHANNELS * 4, pixel = args->pixel;
    const __m256i start = _mm256_mullo_epi32(tap_at(weights, 0), _mm256_set1_epi32(-args->zero));
    sums own[END_ROWS];
    UNROLL
    for (int i = 0; i < count; i++)
        own[i] = start;
    const char *w = weights + CHANNELS * 4;
    int y = 0;
    for (; y + 1 < args->height; y += 2, w += bytes) {
        const uint8_t *a = args->lines[y] + offset, *b = args->lines[y + 1] + offset;
        if (kind.taps)
            add_lines(count, kind, a, b, pixel, w, own);
        else
            add_lines_any(count, args, kind.is_signed, a, b, pixel, w, own);
    }
    if (y < args->height && kind.taps)
        add_lines(count, kind, args->lines[y] + offset, NULL, pixel, w, own);
    else if (y < args->height)
        add_lines_any(count, args, kind.is_signed, args->lines[y] + offset, NULL, pixel, w, own);
    UNROLL
    for (int i = 0; i < count; i++)
        c[i] = own[i];
}

typedef void (*step_fn)(const struct mgx_byte_dw_args *args, int64_t offset, const char *weights,
                        sums c[END_ROWS]);

#define STEP(count, taps, stride, is_signed)                                                       \
    static void step_##count##_##taps##_##stride##_##is_signed(                                    \
        const struct mgx_byte_dw_args *args, int64_t offset, const char *weights,                  \
        sums c[END_ROWS])                                                                          \
    {                                                                                              \
        run_step(count, (struct kind){taps, stride, is_signed}, args, offset, weights, c);         \
    }
#define STEPS(taps, stride, is_signed)                                                             \
    STEP(1, taps, stride, is_signed)                                                               \
    STEP(4, taps, stride, is_signed)                                                               \
    STEP(7, taps, stride, is_signed)                                                               \
    STEP(8, taps, stride, is_signed)
#define KINDS(X)                                                                                   \
    X(3, 1, 0) X(3, 1, 1) X(3, 2, 0) X(3, 2, 1) X(5, 1, 0) X(5, 1, 1) X(5, 2, 0) X(5, 2, 1)

KINDS(STEPS)
STEP(1, 0, 0, 0)
STEP(1, 0, 0, 1)
STEP(4, 0, 0, 0)
STEP(4, 0, 0, 1)

// By the number of pixels; those that are missing are made of fewer.
struct steps {
    int taps, stride, is_signed;
    step_fn run[END_ROWS + 1];
};

static const struct steps kinds[] = {
#define ROW_OF(taps, stride, is_signed)                                                            \
    {taps,                                                                                         \
     stride,                                                                                       \
     is_signed,                                                                                    \
     {[1] = step_1_##taps##_##stride##_##is_signed,                                                \
      [4] = step_4_##taps##_##stride##_##is_signed,                                                \
      [7] = step_7_##taps##_##stride##_##is_signed,                                                \
      [8] = step_8_##taps##_##stride##_##is_signed}},
    KINDS(ROW_OF){0, 0, 0, {[1] = step_1_0_0_0, [4] = step_4_0_0_0}},
    {0, 0, 1, {[1] = step_1_0_0_1, [4] = step_4_0_0_1}},
};

static const struct steps *steps_of(const struct mgx_byte_dw_args *a)
{
    const struct steps *s = kinds;
    while (s->is_signed != a->is_signed ||
           (s->taps && (s->taps != a->kernel || s->stride != a->stride || a->dilation != 1)))
        s++;
    return s;
}

#define END(count)                                                                                 \
    static __attribute__((noinline)) void end_##count(const struct mgx_tile_args *args,            \
                                                      const sums c[END_ROWS])                      \
    {                                                                                              \
        end_tile(count, args, c);                                                                  \
    }
END(1)
END(4)
END(7)
END(8)

static void end_pixels(int count, const struct mgx_tile_args *args, const sums c[END_ROWS])
{
    if (count == 8)
        end_8(args, c);
    else if (count == 7)
        end_7(args, c);
    else if (count == 4)
        end_4(args, c);
    else
        end_1(args, c);
}

// Points a tile `bytes` of results on, `residuals` of residuals.
SIMD void advance(struct mgx_tile_args *tile, int64_t bytes, int64_t residuals)
{
    tile->c[0] += bytes;
    tile->c[1] = tile->c[0] + END_HALF * tile->c_row;
    if (!tile->residual[0])
        return;
    tile->residual[0] += residuals;
    tile->residual[1] = tile->residual[0] + END_HALF * tile->residual_row;
}

static void row(const struct mgx_byte_dw_args *args);

static int place(int channel)
{
    return channel;
}

const struct mgx_byte_dw_kernel mgx_u8_dw__avx2 = {
    .base = {"u8_dw__avx2", .needs = MGX_ISA_AVX2},
    .channels = CHANNELS,
    .lines = 2,
    .place = place,
    .row = row,
};

// A step's pixels, all vectors of channels.
static void run_vectors(const struct mgx_byte_dw_args *args, const struct steps *steps, int64_t at,
                        int count)
{
    const int64_t bytes = mgx_byte_dw_vector(&mgx_u8_dw__avx2, args->height, args->kernel);
    const step_fn run = steps->run[count];
    const char *weights = args->weights;
    struct mgx_tile_args tile = args->tile;
    int64_t offset = at * args->stride * args->pixel;
    advance(&tile, at * tile.c_row, at * tile.residual_row);
    for (int64_t left = args->channels; left > 0; left -= CHANNELS, offset += CHANNELS) {
        sums c[END_ROWS];
        run(args, offset, weights, c);
        tile.cols = left < CHANNELS ? (int)left : CHANNELS;
        end_pixels(count, &tile, c);
        advance(&tile, CHANNELS * args->c_size, CHANNELS * args->residual_size);
        tile.scale += tile.scale ? CHANNELS : 0;
        tile.bias += tile.bias ? CHANNELS : 0;
        weights += bytes;
    }
}

// Eight pixels at a time where that goes round, seven where that does.
static void row(const struct mgx_byte_dw_args *args)
{
    const struct steps *steps = steps_of(args);
    const int64_t most = args->count % 8 && args->count % 7 == 0 ? 7 : 8;
    for (int64_t at = 0; at < args->count;) {
        const int64_t left = args->count - at;
        int count = (int)(left < most ? left : most);
        while (!steps->run[count])
            count--;
        run_vectors(args, steps, at, count);
        at += count;
    }
}
