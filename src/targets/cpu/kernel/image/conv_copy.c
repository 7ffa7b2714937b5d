// SPDX-License-Identifier: MIT
// Copying the input of a convolution into strips and unrolled blocks: padded, channels last, of the
// type that the micro-kernel reads, channels filled up to whole groups of 32 bits.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_tile.h"
#include "targets/cpu/kernel/move/bytes.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/move/transpose.h"

// What is the same for all pixels.
struct copy {
    const struct mgx_conv_plan *plan;
    mgx_convert_fn convert;
    mgx_transpose_fn gathers;                   // of floats as they are
    const struct mgx_bytes_kernel *interleaves; // of bytes that become unsigned ones
    bool moves; // values that follow each other, as they are, or bytes that only change their sign
    int64_t size;        // bytes of an input value
    int64_t used, whole; // bytes of a pixel: its values, and with the rest of the last group
    int64_t pixel;       // bytes from pixel to pixel
    int64_t width;       // pixels of an input line
};

// Whether the walk's dimensions are no longer the output's own.
static bool is_merged(const struct mgx_conv_plan *plan)
{
    const int64_t *size = plan->walk.size, *out = plan->d.out;
    return plan->method == MGX_CONV_STRIP && (size[0] != plan->d.batch || size[1] != out[0] ||
                                              size[2] != out[1] || size[3] != out[2]);
}

static struct copy copy_of(const struct mgx_conv_plan *plan, int64_t pixel)
{
    assert(pixel > 0);
    const struct mgx_conv_desc *d = &plan->d;
    return (struct copy){
        .plan = plan,
        .convert = mgx_convert(d->isa, d->x_type, plan->kernel->a_type),
        .gathers = mgx_kernel_is_plain(d->x_type) && mgx_kernel_is_plain(plan->kernel->a_type)
                       ? mgx_transpose_kernel(d->isa)->run
                       : NULL,
        .interleaves = mgx_kernel_is_byte(d->x_type) && mgx_gemm_takes_unsigned(plan->kernel)
                           ? mgx_bytes_kernel(d->isa)
                           : NULL,
        .moves = d->x_channel == 1 &&
                 (d->x_type == plan->kernel->a_type || mgx_kernel_shift(plan->kernel, d->x_type)),
        .size = mgx_kernel_size(d->x_type),
        .used = plan->group_in * mgx_kernel_size(plan->kernel->a_type),
        .whole = plan->channel_groups * 4,
        .pixel = pixel,
        .width = plan->walk.size[3] > d->out[2] && is_merged(plan)
                     ? plan->walk.size[3]
                     : d->in[2], // lines that touch are one
    };
}

// A pixel outside the image: zero, in the kernel's terms.
static void fill_pixel(const struct copy *copy, char *to)
{
    assert(to);
    const struct mgx_conv_plan *plan = copy->plan;
    const int zero = plan->d.x_zero + mgx_kernel_shift(plan->kernel, plan->d.x_type);
    if (mgx_kernel_size(plan->kernel->a_type) == 1)
        memset(to, zero, (size_t)copy->whole);
    else if (plan->kernel->integer)
        for (int64_t i = 0; i < copy->whole; i += 2)
            memcpy(to + i, &(int16_t){(int16_t)zero}, 2);
    else
        memset(to, 0, (size_t)copy->whole);
}

// Channels that are not contiguous, in pieces.
static void gather_pixel(const struct copy *copy, const char *from, char *to)
{
    enum { PIECE = 64 };
    const struct mgx_conv_plan *plan = copy->plan;
    const int64_t step = plan->d.x_channel * copy->size, channels = plan->group_in;
    const int64_t to_size = mgx_kernel_size(plan->kernel->a_type);
    char line[PIECE * 4];
    for (int64_t c = 0; c < channels; c += PIECE) {
        const int64_t count = mgx_min_i64(PIECE, channels - c);
        for (int64_t i = 0; i < count; i++, from += step)
            memcpy(line + i * copy->size, from, (size_t)copy->size);
        copy->convert(line, to + c * to_size, count);
    }
}

// The first layer of most networks: few channels, channels first.
static void gather_floats(const struct copy *copy, const char *from, char *to)
{
    const float *in = (const float *)(const void *)from;
    float *out = (float *)(void *)to;
    for (int64_t c = 0; c < copy->plan->group_in; c++)
        out[c] = in[c * copy->plan->d.x_channel];
}

static void copy_pixel(const struct copy *copy, const char *from, char *to)
{
    const struct mgx_conv_plan *plan = copy->plan;
    if (plan->d.x_channel == 1)
        copy->convert(from, to, plan->group_in);
    else if (copy->gathers)
        gather_floats(copy, from, to);
    else
        gather_pixel(copy, from, to);
    if (copy->whole > copy->used)
        memset(to + copy->used, 0, (size_t)(copy->whole - copy->used));
}

// Pixels of two groups from channels of 16 bits in planes.
static void gather_quads(const uint16_t *restrict a, const uint16_t *restrict b,
                         const uint16_t *restrict c, const uint16_t *restrict d, int64_t pixels,
                         uint64_t *restrict to)
{
    for (int64_t i = 0; i < pixels; i++)
        to[i] = a[i] | (uint64_t)b[i] << 16 | (uint64_t)c[i] << 32 | (uint64_t)d[i] << 48;
}

static void gather_triples(const uint16_t *restrict a, const uint16_t *restrict b,
                           const uint16_t *restrict c, int64_t pixels, uint64_t *restrict to)
{
    for (int64_t i = 0; i < pixels; i++)
        to[i] = a[i] | (uint64_t)b[i] << 16 | (uint64_t)c[i] << 32;
}

// The same of any number of channels, `pixel` bytes from one to the next.
static void gather_words(const struct copy *copy, const uint16_t *from, int64_t pixels, char *to)
{
    const int64_t plane = copy->plan->d.x_channel, channels = copy->plan->group_in;
    if (copy->pixel == 8 && channels == 3) {
        gather_triples(from, from + plane, from + 2 * plane, pixels, (uint64_t *)(void *)to);
        return;
    }
    if (copy->pixel == 8 && channels == 4) {
        gather_quads(from, from + plane, from + 2 * plane, from + 3 * plane, pixels,
                     (uint64_t *)(void *)to);
        return;
    }
    for (int64_t c = 0; c < channels; c += 2, from += 2 * plane, to += 4)
        for (int64_t i = 0; i < pixels; i++) {
            const uint32_t next = c + 1 < channels ? from[plane + i] : 0;
            *(uint32_t *)(void *)(to + i * copy->pixel) = from[i] | next << 16;
        }
}

// `count` pixels of `size` bytes; a pixel of a few channels, as groups have them, is one register.
static void move_pixels(int64_t count, int64_t size, const char *restrict from, int64_t from_step,
                        char *restrict to, int64_t to_step)
{
#define MOVE(bytes)                                                                                \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(to + i * to_step, from + i * from_step, bytes);                                 \
        break;
    switch (size) {
        MOVE(4)
        MOVE(8)
        MOVE(16)
        MOVE(32)
        MOVE(64)
#undef MOVE
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, (size_t)size);
    }
}

// Copies pixels begin, begin + step, ... < end of an input row; a row outside the image is NULL.
static void copy_pixels(const struct copy *copy, const char *line, int64_t begin, int64_t end,
                        int64_t step, char *to)
{
    assert(begin <= end);
    const struct mgx_conv_desc *d = &copy->plan->d;
    const int64_t channels = copy->plan->group_in, inside = mgx_min_i64(end, copy->width);
    const int64_t from_pixel = d->x_space[2] * copy->size;
    for (; begin < end && (begin < 0 || !line); begin += step, to += copy->pixel)
        fill_pixel(copy, to);
    if (inside > begin && step == 1 && d->x_channel == 1 && d->x_space[2] == channels &&
        copy->pixel == copy->used) {
        copy->convert(line + begin * from_pixel, to, (inside - begin) * channels);
        to += (inside - begin) * copy->pixel;
        begin = inside;
    }
    if (inside > begin && step == 1 && d->x_channel != 1 && d->x_space[2] == 1 && copy->gathers &&
        copy->whole == copy->used) {
        copy->gathers((const float *)(const void *)(line + begin * from_pixel), d->x_channel,
                      (float *)(void *)to, copy->pixel / 4, inside - begin, channels);
        to += (inside - begin) * copy->pixel;
        begin = inside;
    }
    if (inside > begin && step == 1 && d->x_channel != 1 && d->x_space[2] == 1 &&
        copy->interleaves) {
        copy->interleaves->interleave((const uint8_t *)line + begin, d->x_channel, (uint8_t *)to,
                                      copy->pixel, inside - begin, channels,
                                      mgx_kernel_raise(d->x_type));
        to += (inside - begin) * copy->pixel;
        begin = inside;
    }
    if (inside > begin && step == 1 && d->x_channel != 1 && d->x_space[2] == 1 &&
        d->x_type == copy->plan->kernel->a_type && mgx_kernel_size(d->x_type) == 2) {
        gather_words(copy, (const uint16_t *)(const void *)line + begin, inside - begin, to);
        to += (inside - begin) * copy->pixel;
        begin = inside;
    }
    if (inside > begin && copy->moves && copy->pixel == copy->used) {
        const int64_t count = mgx_ceil_div(inside - begin, step);
        move_pixels(count, copy->used, line + begin * from_pixel, step * from_pixel, to,
                    copy->pixel);
        if (d->x_type != copy->plan->kernel->a_type)
            copy->convert(to, to, count * copy->pixel);
        to += count * copy->pixel;
        begin += count * step;
    }
    for (; begin < inside; begin += step, to += copy->pixel)
        copy_pixel(copy, line + begin * from_pixel, to);
    for (; begin < end; begin += step, to += copy->pixel)
        fill_pixel(copy, to);
}

// The input row (z, y) of an image, a group's channels; NULL outside.
static const char *input_line(const struct copy *copy, const char *x, int64_t group, int64_t n,
                              int64_t z, int64_t y)
{
    const struct mgx_conv_desc *d = &copy->plan->d;
    if (z < 0 || z >= d->in[0] || y < 0 || y >= d->in[1])
        return NULL;
    return x + (n * d->x_batch + z * d->x_space[0] + y * d->x_space[1] +
                group * copy->plan->group_in * d->x_channel) *
                   copy->size;
}

// Line i of a strip whose lines are several of the input's: what the walk's dimensions are, its
// steps say.
static const char *merged_line(const struct copy *copy, const char *x, int64_t group,
                               const struct mgx_conv_place *at, int64_t i)
{
    const struct mgx_conv_plan *plan = copy->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t *step = plan->walk.x;
    return x +
           (at->n * step[0] + at->z * step[1] + (at->y + i) * step[2] - d->pad[0] * d->x_space[0] -
            d->pad[1] * d->x_space[1] + group * plan->group_in * d->x_channel) *
               copy->size;
}

void mgx_conv_copy_strip(const struct mgx_conv_plan *plan, const char *x, int64_t group,
                         const struct mgx_conv_place *at, int64_t rows, char *strip)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct copy copy = copy_of(plan, plan->pixel / mgx_strip_stride(d, 2));
    const int64_t lines = mgx_strip_length(d, 1, rows), step = mgx_strip_step(d, 2);
    const int64_t left = at->begin * d->stride[2] - d->pad[2];
    const int64_t right = left + mgx_strip_length(d, 2, at->end - at->begin) * step;
    for (int64_t k = 0; k < d->kernel[0]; k++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t z = at->z * d->stride[0] - d->pad[0] + k * d->dilation[0];
            const int64_t y = at->y * d->stride[1] - d->pad[1] + i * mgx_strip_step(d, 1);
            const char *line = is_merged(plan) ? merged_line(&copy, x, group, at, i)
                                               : input_line(&copy, x, group, at->n, z, y);
            copy_pixels(&copy, line, left, right, step,
                        strip + (k * plan->plane + i * plan->pitch) * 4);
        }
}

// The walk may have merged dimensions; the description's own are found again from the running
// number of the pixel.
void mgx_conv_unroll_row(const struct mgx_conv_plan *plan, const char *x, int64_t group,
                         const struct mgx_conv_place *at, int64_t begin, int64_t end, char *to)
{
    const struct mgx_conv_desc *d = &plan->d;
    const struct copy copy = copy_of(plan, plan->channel_groups * 4);
    const int64_t *size = plan->walk.size;
    const int64_t first = ((at->n * size[1] + at->z) * size[2] + at->y) * size[3];
    for (int64_t i = first + at->begin; i < first + at->end; i++, to += plan->pixel) {
        const int64_t column = i % d->out[2] * d->stride[2] - d->pad[2], row = i / d->out[2];
        const int64_t y = row % d->out[1] * d->stride[1] - d->pad[1], slice = row / d->out[1];
        const int64_t z = slice % d->out[0] * d->stride[0] - d->pad[0], n = slice / d->out[0];
        char *tap = to;
        for (int64_t kz = 0; kz < d->kernel[0]; kz++)
            for (int64_t ky = 0; ky < d->kernel[1]; ky++) {
                if (ky < begin || ky >= end) {
                    tap += d->kernel[2] * copy.pixel;
                    continue;
                }
                const char *line = input_line(&copy, x, group, n, z + kz * d->dilation[0],
                                              y + ky * d->dilation[1]);
                for (int64_t kx = 0; kx < d->kernel[2]; kx++, tap += copy.pixel) {
                    const int64_t at_x = column + kx * d->dilation[2];
                    copy_pixels(&copy, line, at_x, at_x + 1, 1, tap);
                }
            }
    }
}
