// SPDX-License-Identifier: MIT
// Transposition and scaling of rows, bytes through tables and from planes to pixels, against their
// definitions, on random sizes and strides, with guards around what is written.
#include "targets/cpu/kernel/end/scale.h"
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/move/bytes.h"
#include "targets/cpu/kernel/move/transpose.h"

static const int SIZES[] = {0, 1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 58, 64, 150};

enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static void check_transpose(struct rng *r, mgx_isa isa)
{
    const int rows = rng_size(r, SIZES, SIZE_COUNT), cols = rng_size(r, SIZES, SIZE_COUNT);
    const int to_row = cols + (rng_below(r, 2) ? 0 : rng_below(r, 4)),
              from_col = rows + (rng_below(r, 2) ? 0 : rng_below(r, 4));
    struct buffer from = buffer_random((int64_t)from_col * cols, r),
                  to = buffer_new((int64_t)to_row * rows);
    mgx_transpose_kernel(isa)->run(from.data, from_col, to.data, to_row, rows, cols);
    int wrong = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < to_row; j++) {
            const float *value = &to.data[i * to_row + j];
            wrong += j < cols ? *value != from.data[j * from_col + i] : !is_guard(value);
        }
    if (wrong || !buffer_intact(to))
        CHECK_FAIL("%d x %d, rows of %d from columns of %d on %s: %d wrong", rows, cols, to_row,
                   from_col, mgx_isa_name(isa), wrong);
    buffer_free(from);
    buffer_free(to);
}

CASE(transposes_any_size)
{
    struct rng r = {11};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 400 && !check_failures; i++)
            check_transpose(&r, isa);
    }
}

CASE(scales_rows)
{
    struct rng r = {12};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 100 && !check_failures; i++) {
            const int rows = rng_below(&r, 9), width = 4 * rng_below(&r, 12);
            struct buffer from = buffer_random((int64_t)rows * width, &r),
                          factor = buffer_random(rows, &r), to = buffer_new((int64_t)rows * width);
            mgx_scale_kernel(isa)->run(from.data, factor.data, to.data, rows, width);
            for (int64_t k = 0; k < to.count; k++)
                CHECK(to.data[k] == from.data[k] * factor.data[k / width]);
            CHECK(buffer_intact(to));
            buffer_free(from);
            buffer_free(factor);
            buffer_free(to);
        }
    }
}

static struct buffer random_bytes(int64_t count, struct rng *r)
{
    const struct buffer b = buffer_new((count + 3) / 4);
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)b.data)[i] = (uint8_t)rng_below(r, 256);
    return b;
}

static void check_look_up(struct rng *r, mgx_isa isa)
{
    const int rows = rng_size(r, SIZES, SIZE_COUNT), cols = rng_size(r, SIZES, SIZE_COUNT);
    const int from_row = cols + (rng_below(r, 2) ? 0 : rng_below(r, 4)),
              to_row = cols + (rng_below(r, 2) ? 0 : rng_below(r, 4));
    struct buffer from = random_bytes(from_row * rows, r), to = random_bytes(to_row * rows, r),
                  before = buffer_new(to.count);
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)rng_below(r, 256);
    memcpy(before.data, to.data, (size_t)to.count * sizeof(float));
    const uint8_t *x = (const uint8_t *)from.data, *y = (const uint8_t *)to.data;
    mgx_bytes_kernel(isa)->look_up(table, x, from_row, (uint8_t *)to.data, to_row, rows, cols);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < to_row; j++)
            CHECK_INT(y[i * to_row + j], j < cols ? table[x[i * from_row + j]]
                                                  : ((uint8_t *)before.data)[i * to_row + j]);
    CHECK(buffer_intact(to));
    buffer_free(from);
    buffer_free(to);
    buffer_free(before);
}

static void check_interleave(struct rng *r, mgx_isa isa)
{
    const int pixels = rng_size(r, SIZES, SIZE_COUNT), channels = 1 + rng_below(r, 17);
    const int whole = (channels + 3) / 4 * 4, pixel = whole + 4 * rng_below(r, 2);
    const int plane = pixels + rng_below(r, 4), flip = rng_below(r, 2) * 0x80;
    struct buffer from = random_bytes(plane * channels, r), to = random_bytes(pixel * pixels, r),
                  before = buffer_new(to.count);
    memcpy(before.data, to.data, (size_t)to.count * sizeof(float));
    const uint8_t *x = (const uint8_t *)from.data, *y = (const uint8_t *)to.data;
    mgx_bytes_kernel(isa)->interleave(x, plane, (uint8_t *)to.data, pixel, pixels, channels,
                                      (uint8_t)flip);
    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < pixel; c++)
            CHECK_INT(y[i * pixel + c], c < channels ? x[c * plane + i] ^ flip
                                        : c < whole  ? flip
                                                     : ((uint8_t *)before.data)[i * pixel + c]);
    CHECK(buffer_intact(to));
    buffer_free(from);
    buffer_free(to);
    buffer_free(before);
}

CASE(bytes_are_where_they_belong)
{
    struct rng r = {13};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 300 && !check_failures; i++) {
            check_look_up(&r, isa);
            check_interleave(&r, isa);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(transposes_any_size) ROW(scales_rows)
                                                  ROW(bytes_are_where_they_belong){NULL, NULL}};
    return check_run(cases, argc, argv);
}
