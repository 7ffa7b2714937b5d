// SPDX-License-Identifier: MIT
// The largest byte of a window, channel by channel, against its definition.
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/image/byte_pool.h"

static void check_pixel(struct rng *r, mgx_isa isa)
{
    enum { PLANES = 2, ROWS = 4, COLS = 4 };
    const int64_t channels = 1 + rng_below(r, 200), pixel = channels + rng_below(r, 5);
    const bool is_signed = rng_below(r, 2);
    const int64_t bytes = PLANES * ROWS * COLS * pixel;
    struct buffer x = buffer_new((bytes + 3) / 4), y = buffer_new((channels + 3) / 4);
    for (int64_t i = 0; i < bytes; i++)
        ((uint8_t *)x.data)[i] = (uint8_t)rng_below(r, 256);
    const struct mgx_byte_pool_args a = {.x = (const uint8_t *)x.data,
                                         .planes = 1 + rng_below(r, PLANES),
                                         .rows = 1 + rng_below(r, ROWS),
                                         .cols = 1 + rng_below(r, COLS),
                                         .plane_stride = ROWS * COLS * pixel,
                                         .row_stride = COLS * pixel,
                                         .col_stride = pixel,
                                         .is_signed = is_signed,
                                         .y = (uint8_t *)y.data,
                                         .channels = channels};
    mgx_byte_pool_kernel(isa)->run(&a);
    for (int64_t c = 0; c < channels; c++) {
        int most = -1000;
        for (int64_t i = 0; i < a.planes * a.rows * a.cols; i++) {
            const uint8_t *at = a.x + i / (a.rows * a.cols) * a.plane_stride +
                                i / a.cols % a.rows * a.row_stride + i % a.cols * pixel + c;
            const int value = is_signed ? (int8_t)*at : *at;
            most = value > most ? value : most;
        }
        CHECK_INT(a.y[c], (uint8_t)most);
    }
    CHECK(buffer_intact(y));
    buffer_free(x);
    buffer_free(y);
}

CASE(the_largest_byte_of_a_window)
{
    struct rng r = {31};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 300 && !check_failures; i++)
            check_pixel(&r, isa);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(the_largest_byte_of_a_window){NULL, NULL}};
    return check_run(cases, argc, argv);
}
