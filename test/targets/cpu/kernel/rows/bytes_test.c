// SPDX-License-Identifier: MIT
// Kernels of rows that no other test calls by themselves, against their definitions on random sizes
// with guards: bytes times a factor, sums of ranges found in the run, places of extremes, and blocks
// of values of any type.
#include "op/pointwise.h"
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/rows/arg.h"
#include "targets/cpu/kernel/rows/byte_range.h"
#include "targets/cpu/kernel/rows/byte_scale.h"
#include "targets/cpu/kernel/rows/typed.h"

static const int SIZES[] = {0, 1, 2, 7, 8, 9, 16, 17, 31, 32, 64, 100};

enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static struct buffer random_bytes(int64_t count, struct rng *r)
{
    const struct buffer b = buffer_new((count + 3) / 4);
    for (int64_t i = 0; i < b.count * 4; i++)
        ((uint8_t *)b.data)[i] = (uint8_t)rng_below(r, 256);
    return b;
}

// --- bytes times a factor ---

static int scaled(const struct mgx_byte_scale *s, uint8_t x, float shift, float factor)
{
    const int low = s->y_signed ? -128 : 0, whole = s->x_signed ? (int8_t)x : x;
    const float value = ((float)(whole - s->x_zero) * s->x_scale - shift) * factor;
    const double y = fmin(fmax(nearbyintf(value / s->y_scale), -1e6), 1e6) + s->y_zero;
    return (uint8_t)(int)fmin(fmax(y, low), low + 255);
}

static void check_scale(struct rng *r, mgx_isa isa)
{
    const struct mgx_byte_scale s = {.x_signed = rng_below(r, 2),
                                     .y_signed = rng_below(r, 2),
                                     .x_scale = 0.01f + fabsf(rng_float(r)),
                                     .y_scale = 0.01f + fabsf(rng_float(r)),
                                     .x_zero = rng_below(r, 100),
                                     .y_zero = rng_below(r, 100)};
    const int rows = rng_below(r, 5), cols = rng_size(r, SIZES, SIZE_COUNT);
    const bool one = rng_below(r, 2), shifts = rng_below(r, 2);
    struct buffer x = random_bytes((int64_t)rows * cols, r), y = buffer_new((rows * cols + 3) / 4),
                  factor = buffer_random((int64_t)rows * cols + 1, r),
                  shift = buffer_random((int64_t)rows * cols + 1, r);
    const struct mgx_byte_scale_args a = {.x = (const uint8_t *)x.data,
                                          .factor = factor.data,
                                          .shift = shifts ? shift.data : NULL,
                                          .y = (uint8_t *)y.data,
                                          .x_row = cols,
                                          .factor_row = cols,
                                          .shift_row = cols,
                                          .y_row = cols,
                                          .rows = rows,
                                          .cols = cols,
                                          .one_factor = one};
    mgx_byte_scale_kernel(isa)->run(&s, &a);
    for (int i = 0; i < rows * cols; i++) {
        const int at = one ? i / cols * cols : i;
        CHECK_INT(a.y[i], scaled(&s, a.x[i], shifts ? shift.data[at] : 0, factor.data[at]));
    }
    CHECK(buffer_intact(y));
    buffer_free(x);
    buffer_free(y);
    buffer_free(factor);
    buffer_free(shift);
}

CASE(bytes_are_scaled_as_the_operators_say)
{
    struct rng r = {21};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 300 && !check_failures; i++)
            check_scale(&r, isa);
    }
}

// --- ranges found in the run ---

CASE(sums_of_a_range_begin_and_end_by_column)
{
    struct rng r = {22};
    EACH_ISA(isa)
    {
        const struct mgx_byte_range_kernel *kernel = mgx_byte_range_kernel(isa);
        for (int i = 0; i < 100 && !check_failures; i++) {
            const int n = rng_size(&r, SIZES, SIZE_COUNT), zero = rng_below(&r, 256);
            struct buffer sums = random_bytes(4 * n, &r), starts = buffer_new(n),
                          scale = buffer_random(n, &r), factors = buffer_new(n),
                          same = buffer_new(n);
            const int32_t *sum = (const int32_t *)(const void *)sums.data;
            int32_t *start = (int32_t *)(void *)starts.data;
            kernel->start(sum, zero, n, start);
            kernel->factors(scale.data, 0.37f, n, factors.data);
            kernel->repeat(1.5f, n, same.data);
            for (int j = 0; j < n; j++) {
                CHECK((uint32_t)start[j] == (uint32_t)-zero * (uint32_t)sum[j]);
                CHECK(factors.data[j] == scale.data[j] * 0.37f && same.data[j] == 1.5f);
            }
            CHECK(buffer_intact(starts) && buffer_intact(factors) && buffer_intact(same));
            buffer_free(sums);
            buffer_free(starts);
            buffer_free(scale);
            buffer_free(factors);
            buffer_free(same);
        }
    }
}

CASE(a_range_holds_zero_and_all_values)
{
    EACH_ISA(isa)
    {
        const float x[] = {0.5f, 2, 1.25f, 3}, y[] = {-1, 4};
        struct mgx_byte_range range = {0, 0};
        mgx_byte_range_widen(isa, x, 4, &range);
        CHECK(range.low == 0 && range.high == 3);
        mgx_byte_range_widen(isa, y, 2, &range);
        CHECK(range.low == -1 && range.high == 4);
        const float scale = mgx_byte_range_scale(&range);
        CHECK(scale == 5.0f / 255);
        CHECK_INT(mgx_byte_range_zero(&range, scale), 51);
    }
}

// --- places of extremes ---

static int64_t place_of(const struct mgx_arg *how, const float *x, int64_t n, int64_t step)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        const float a = x[i * step], b = x[best * step];
        if (how->largest ? a > b : a < b)
            best = i;
        else if (how->last && a == b)
            best = i;
    }
    return best;
}

CASE(extremes_are_where_they_are)
{
    enum { LANES = 40 };
    struct rng r = {23};
    EACH_ISA(isa)
    {
        const struct mgx_arg_kernel *kernel = mgx_arg_kernel(isa);
        for (int i = 0; i < 200 && !check_failures; i++) {
            const struct mgx_arg how = {rng_below(&r, 2), rng_below(&r, 2)};
            const int n = 1 + rng_size(&r, SIZES, SIZE_COUNT), lanes = 1 + rng_below(&r, LANES);
            struct buffer x = buffer_new((int64_t)n * lanes);
            int32_t places[LANES];
            for (int64_t k = 0; k < x.count; k++)
                x.data[k] = (float)rng_below(&r, 9); // values that come again
            kernel->lanes(&how, x.data, n, lanes, lanes, 1, places);
            for (int l = 0; l < lanes; l++) {
                const int64_t want = place_of(&how, x.data + l, n, lanes);
                CHECK_INT(places[l], want);
                CHECK_INT(kernel->line(&how, x.data + l, n, lanes), want);
            }
            buffer_free(x);
        }
    }
}

// --- values of any type ---

CASE(blocks_of_bytes_wrap_as_their_type_does)
{
    struct rng r = {24};
    EACH_ISA(isa)
    {
        const struct mgx_typed_kernel *kernel = mgx_typed_kernel(isa);
        for (int i = 0; i < 60 && !check_failures; i++) {
            const int n = rng_size(&r, SIZES, SIZE_COUNT);
            struct buffer a = random_bytes(n, &r), b = random_bytes(n, &r),
                          to = buffer_new((n + 3) / 4);
            int64_t x[128], y[128], out[128];
            kernel->load[MGX_INT8](a.data, x, n);
            kernel->load[MGX_UINT8](b.data, y, n);
            for (int k = 0; k < n; k++) {
                CHECK_INT(x[k], ((int8_t *)a.data)[k]);
                CHECK_INT(y[k], ((uint8_t *)b.data)[k]);
            }
            kernel->ints[MGX_PW_add](out, x, y, y, NULL, n);
            kernel->store[MGX_INT8](out, to.data, n);
            for (int k = 0; k < n; k++)
                CHECK_INT(((int8_t *)to.data)[k],
                          (int8_t)(((int8_t *)a.data)[k] + ((uint8_t *)b.data)[k]));
            CHECK(buffer_intact(to));
            buffer_free(a);
            buffer_free(b);
            buffer_free(to);
        }
    }
}

CASE(where_takes_one_or_the_other)
{
    EACH_ISA(isa)
    {
        const int64_t which[] = {1, 0, -5, 0}, x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8};
        int64_t out[4];
        float narrow[4];
        mgx_typed_kernel(isa)->where8(out, which, x, y, 4);
        mgx_typed_kernel(isa)->where4(narrow, which, (const float[]){1, 2, 3, 4},
                                      (const float[]){5, 6, 7, 8}, 4);
        for (int i = 0; i < 4; i++)
            CHECK(out[i] == (which[i] ? x[i] : y[i]) && narrow[i] == (float)out[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(bytes_are_scaled_as_the_operators_say) ROW(sums_of_a_range_begin_and_end_by_column)
            ROW(a_range_holds_zero_and_all_values) ROW(extremes_are_where_they_are)
                ROW(blocks_of_bytes_wrap_as_their_type_does)
                    ROW(where_takes_one_or_the_other){NULL, NULL}};
    return check_run(cases, argc, argv);
}
