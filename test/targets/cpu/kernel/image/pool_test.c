// SPDX-License-Identifier: MIT
// Pooling and blending of one pixel against sums and maxima in double: channels around the vectors,
// windows at strides, nothing written behind. --bench prints GB/s of what is read.
#include "targets/cpu/kernel/image/pool.h"

#include "targets/cpu/kernel/harness.h"

static const int widths[] = {1, 4, 8, 16, 32, 33, 64, 128, 160};

static double expected_of(const struct mgx_pool_args *a, int64_t channel)
{
    double y = a->max ? -INFINITY : 0;
    for (int64_t z = 0; z < a->planes; z++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->cols; j++) {
                const double v =
                    a->x[z * a->plane_stride + i * a->row_stride + j * a->col_stride + channel];
                y = a->max ? fmax(y, v) : y + v;
            }
    return a->max ? y : y * (double)a->scale;
}

CASE(windows)
{
    struct rng r = {51};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 500; i++) {
            struct mgx_pool_args a = {.planes = 1 + rng_below(&r, 3),
                                      .rows = 1 + rng_below(&r, 4),
                                      .cols = 1 + rng_below(&r, 4),
                                      .scale = 0.25f,
                                      .max = rng_below(&r, 2),
                                      .channels = rng_size(&r, widths, 9)};
            a.col_stride = a.channels + rng_below(&r, 3) * 3;
            a.row_stride = a.col_stride * (a.cols + rng_below(&r, 3));
            a.plane_stride = a.row_stride * (a.rows + rng_below(&r, 3));
            struct buffer x = buffer_random((a.planes - 1) * a.plane_stride +
                                                (a.rows - 1) * a.row_stride +
                                                (a.cols - 1) * a.col_stride + a.channels,
                                            &r),
                          y = buffer_new(a.channels);
            a.x = x.data;
            a.y = y.data;
            mgx_pool_kernel(isa)->pixel(&a);
            bool good = buffer_intact(y);
            for (int64_t c = 0; c < a.channels; c++)
                good &= fabs(y.data[c] - expected_of(&a, c)) < 2e-6;
            buffer_free(x);
            buffer_free(y);
            if (!good)
                CHECK_FAIL("%s of %d x %d x %d, %d channels on %s", a.max ? "maximum" : "average",
                           (int)a.planes, (int)a.rows, (int)a.cols, (int)a.channels,
                           mgx_isa_name(isa));
        }
    }
}

CASE(blends)
{
    struct rng r = {52};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 300; i++) {
            const int n = rng_size(&r, widths, 9);
            struct buffer p[4], y = buffer_new(n);
            const float w[4] = {rng_float(&r), rng_float(&r), rng_float(&r), rng_float(&r)};
            for (int k = 0; k < 4; k++)
                p[k] = buffer_random(n, &r);
            mgx_pool_kernel(isa)->blend(
                (const float *[]){p[0].data, p[1].data, p[2].data, p[3].data}, w, y.data, n);
            bool good = buffer_intact(y);
            for (int c = 0; c < n; c++) {
                double sum = 0;
                for (int k = 0; k < 4; k++)
                    sum += (double)w[k] * p[k].data[c];
                good &= fabs(y.data[c] - sum) < 1e-6;
            }
            for (int k = 0; k < 4; k++)
                buffer_free(p[k]);
            buffer_free(y);
            if (!good)
                CHECK_FAIL("blend of %d channels on %s", n, mgx_isa_name(isa));
        }
    }
}

// A NaN anywhere in the window is the maximum; a value after it used to win.
CASE(nan_wins_a_maximum)
{
    struct rng r = {53};
    EACH_ISA(isa)
    {
        for (int at = 0; at < 9; at++)
            for (int channels = 1; channels <= 145; channels += 48) {
                struct buffer x = buffer_random(9 * channels, &r), y = buffer_new(channels);
                x.data[at * channels + channels - 1] = NAN;
                const struct mgx_pool_args a = {.x = x.data,
                                                .planes = 1,
                                                .rows = 3,
                                                .cols = 3,
                                                .row_stride = 3 * channels,
                                                .col_stride = channels,
                                                .max = true,
                                                .y = y.data,
                                                .channels = channels};
                mgx_pool_kernel(isa)->pixel(&a);
                for (int c = 0; c < channels; c++)
                    if (!isnan(y.data[c]) != (c + 1 < channels))
                        CHECK_FAIL("NaN at %d, channel %d of %d on %s", at, c, channels,
                                   mgx_isa_name(isa));
                buffer_free(x);
                buffer_free(y);
            }
    }
}

struct timed {
    struct mgx_pool_args a;
    mgx_pool_pixel fn;
};

static void run_timed(void *user)
{
    const struct timed *t = user;
    t->fn(&t->a);
}

static int bench(void)
{
    struct rng r = {1};
    struct buffer x = buffer_random(1 << 17, &r), y = buffer_new(2048);
    for (int channels = 64; channels <= 1280; channels *= channels == 64 ? 4 : 5)
        for (int max = 0; max < 2; max++) {
            printf("%-8s 3 x 3 x %-5d", max ? "maximum" : "average", channels);
            EACH_ISA(isa)
            {
                struct timed t = {{.x = x.data,
                                   .planes = 1,
                                   .rows = 3,
                                   .cols = 3,
                                   .row_stride = 3 * channels,
                                   .col_stride = channels,
                                   .scale = 0.1f,
                                   .max = max,
                                   .y = y.data,
                                   .channels = channels},
                                  mgx_pool_kernel(isa)->pixel};
                printf("  %s %6.1f GB/s", mgx_isa_name(isa),
                       36e-9 * channels / bench_time(run_timed, &t, 7));
            }
            printf("\n");
        }
    buffer_free(x);
    buffer_free(y);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(windows) ROW(nan_wins_a_maximum)
                                                  ROW(blends){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : check_run(cases, argc, argv);
}
