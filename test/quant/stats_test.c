// SPDX-License-Identifier: MIT
// What is seen of values, against sums over all of them; ranges, against searches without bins.
#include "quant/stats.h"

#include "base/size.h"
#include "check.h"

enum { COUNT = 20000 };

static uint64_t state = 88172645463325252u;

static double uniform(void) // [-1, 1)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(int64_t)state * 0x1p-63;
}

// Near to normal, with a tail.
static float draw(int i)
{
    double v = 0;
    for (int k = 0; k < 6; k++)
        v += uniform();
    return (float)(i % 997 == 0 ? 9 * v : v);
}

static float values[COUNT];

static void see(struct mgx_stats *s, struct mgx_arena *arena, int64_t channels, int parts)
{
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_stats_init(s, arena, channels, &diag), diag);
    for (int i = 0; i < parts; i++) {
        const int64_t lens[3] = {2, 10, COUNT / parts / 20};
        const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 3, lens);
        const struct mgx_tensor t = mgx_tensor_borrow(&shape, values + i * (COUNT / parts));
        CHECK_OK(mgx_stats_add(s, &t, 1, &diag), diag);
    }
}

CASE(sums_are_those_of_the_values)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    double low[10] = {0}, sum[10] = {0}, square[10] = {0};
    int64_t binned = 0;
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i % 5 ? draw(i) : 0;
        const int part = i % (COUNT / 4), c = part / (COUNT / 80) % 10;
        low[c] = fmin(low[c], (double)values[i]);
        sum[c] += (double)values[i];
        square[c] += (double)values[i] * (double)values[i];
    }
    see(&s, &arena, 10, 4);
    CHECK_INT(s.count, COUNT);
    CHECK_INT(s.zeros, COUNT / 5);
    CHECK_INT(s.per_channel, COUNT / 10);
    for (int c = 0; c < 10; c++) {
        CHECK_NEAR(s.lows[c], low[c], 0);
        CHECK_NEAR(s.sums[c], sum[c], 1e-9 * COUNT);
        CHECK_NEAR(s.squares[c], square[c], 1e-9 * COUNT);
    }
    for (int i = 0; i < MGX_STATS_BINS; i++)
        binned += s.bins[i];
    CHECK_INT(binned, COUNT - COUNT / 5);
    // Every bin, by its borders.
    for (int i = 0; i < MGX_STATS_BINS; i += 61) {
        const double width = 2 * s.reach / MGX_STATS_BINS, from = -s.reach + i * width;
        int64_t count = 0;
        for (int k = 0; k < COUNT; k++)
            count +=
                values[k] != 0 && (double)values[k] >= from && (double)values[k] < from + width;
        CHECK_INT(s.bins[i], count);
    }
    mgx_arena_fini(&arena);
}

CASE(the_largest_value_is_the_range)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    double low = 0, high = 0;
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++) {
        values[i] = draw(i) + 1;
        low = fmin(low, (double)values[i]);
        high = fmax(high, (double)values[i]);
    }
    see(&s, &arena, 0, 2);
    const struct mgx_recipe_input r = mgx_stats_range(&s, MGX_QUANT_MAX, 99.99, 127);
    CHECK(r.known);
    CHECK_NEAR(r.low, low, 0);
    CHECK_NEAR(r.high, high, 0);
    mgx_arena_fini(&arena);
}

CASE(a_percentile_keeps_that_many)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++)
        values[i] = draw(i);
    see(&s, &arena, 0, 1);
    static const double percents[] = {99.9, 99, 90, 50};
    for (int k = 0; k < 4; k++) {
        const double t = mgx_stats_range(&s, MGX_QUANT_PERCENTILE, percents[k], 127).high;
        int64_t beyond = 0, nearly = 0; // with the bin before the border
        for (int i = 0; i < COUNT; i++) {
            beyond += fabs((double)values[i]) > t;
            nearly += fabs((double)values[i]) >= t - 2.001 * s.reach / MGX_STATS_BINS;
        }
        CHECK((double)beyond <= COUNT * (1 - percents[k] / 100) + 1e-6);
        CHECK((double)nearly >= COUNT * (1 - percents[k] / 100));
    }
    mgx_arena_fini(&arena);
}

enum { STEPS = 15 }; // few, so that one large value costs the others much

// The squares of what so many steps up to t lose, of the values themselves.
static double loss(double t)
{
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        const double q =
            fmin(fmax(nearbyint((double)values[i] / t * STEPS), -STEPS), STEPS) * t / STEPS;
        sum += (q - (double)values[i]) * (q - (double)values[i]);
    }
    return sum;
}

CASE(the_least_error_is_found)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    double least = INFINITY;
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++)
        values[i] = draw(1);
    values[77] = 12; // one value, larger than the rest
    see(&s, &arena, 0, 1);
    for (int i = 1; i <= 300; i++)
        least = fmin(least, loss(12.0 * i / 300));
    const struct mgx_recipe_input r = mgx_stats_range(&s, MGX_QUANT_ERROR, 99.99, STEPS);
    const double t = fmax(-r.low, r.high);
    CHECK(loss(t) <= 1.05 * least);
    CHECK(loss(12) > 1.2 * least); // there was something to find
    mgx_arena_fini(&arena);
}

CASE(entropy_cuts_tails_and_keeps_plateaus)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++)
        values[i] = draw(i);
    values[77] = 60;
    see(&s, &arena, 0, 1);
    const double t = mgx_stats_range(&s, MGX_QUANT_ENTROPY, 99.99, 127).high;
    CHECK(t > 2 && t < 30);
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)uniform();
    see(&s, &arena, 0, 1);
    CHECK_NEAR(mgx_stats_range(&s, MGX_QUANT_ENTROPY, 99.99, 127).high, 1, 0.02);
    mgx_arena_fini(&arena);
}

CASE(strange_values_are_left_out)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    mgx_arena_init(&arena);
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 3 ? draw(i) : i % 2 ? NAN : i % 4 ? INFINITY : -INFINITY;
    see(&s, &arena, 10, 1);
    CHECK_INT(s.count + s.strange, COUNT);
    for (int m = 0; m < MGX_QUANT_METHODS; m++) {
        const struct mgx_recipe_input r = mgx_stats_range(&s, (enum mgx_quant_method)m, 99, 255);
        CHECK(r.known && isfinite(r.low) && isfinite(r.high) && r.low <= 0 && r.high >= 0);
    }
    for (int i = 0; i < COUNT; i++)
        values[i] = NAN;
    see(&s, &arena, 0, 1);
    CHECK(!mgx_stats_range(&s, MGX_QUANT_MAX, 99, 127).known);
    mgx_arena_fini(&arena);
}

CASE(extremes_zeros_and_nothing)
{
    struct mgx_arena arena;
    struct mgx_stats s = {0};
    mgx_arena_init(&arena);
    for (int m = 0; m < MGX_QUANT_METHODS; m++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = i % 2 ? 3e38f : -1e-38f;
        see(&s, &arena, 0, 1);
        struct mgx_recipe_input r = mgx_stats_range(&s, (enum mgx_quant_method)m, 99.99, 127);
        CHECK(r.known && r.high > 1e38 && r.high <= 3.1e38);
        memset(values, 0, sizeof values);
        see(&s, &arena, 0, 1);
        r = mgx_stats_range(&s, (enum mgx_quant_method)m, 99.99, 127);
        CHECK(r.known && r.low == 0 && r.high == 0);
        for (int i = 0; i < COUNT; i++)
            values[i] = 0.75f;
        see(&s, &arena, 0, 1);
        r = mgx_stats_range(&s, (enum mgx_quant_method)m, 99.99, 127);
        CHECK_NEAR(r.high, 0.75, 0.01);
        const struct mgx_shape empty = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){0, 4});
        const struct mgx_tensor t = mgx_tensor_borrow(&empty, values);
        struct mgx_diag diag = {0};
        CHECK_OK(mgx_stats_init(&s, &arena, 4, &diag), diag);
        CHECK_OK(mgx_stats_add(&s, &t, 1, &diag), diag);
        CHECK(!mgx_stats_range(&s, (enum mgx_quant_method)m, 99.99, 127).known);
    }
    mgx_arena_fini(&arena);
}

TEST_MAIN(ROW(sums_are_those_of_the_values) ROW(the_largest_value_is_the_range)
              ROW(a_percentile_keeps_that_many) ROW(the_least_error_is_found)
                  ROW(entropy_cuts_tails_and_keeps_plateaus) ROW(strange_values_are_left_out)
                      ROW(extremes_zeros_and_nothing))
