// SPDX-License-Identifier: MIT
// The activations against libm, over the whole range of floats that matters; thresholds and special
// values by themselves. --bench prints the time per value.
#include "targets/cpu/kernel/ends.h"

enum { VALUES = 4096 };

static void apply(const struct mgx_end_kernel *kernel, const struct mgx_end_step *e, float *x)
{
    const struct mgx_end_rows rows = {.from = x, .rows = 1, .cols = VALUES, .to = (char *)x};
    kernel->run(e, 1, &rows);
}

// Distance in units of the last place of a float of the expected size, or of `floor`.
static double ulps(double actual, double expected, double floor)
{
    const double size = fmax(fabs(expected), floor);
    return fabs(actual - expected) / ldexp(1, ilogb(size) - 23);
}

// Largest error over values of all magnitudes from 2^-24 to `most`; relative to at least `floor`.
static double worst(const struct mgx_end_kernel *kernel, const struct mgx_end_step *e, float most,
                    double floor)
{
    static float x[VALUES], y[VALUES];
    struct rng r = {17};
    double error = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < VALUES; i++)
            y[i] = x[i] = rng_below(&r, 2) ? most * rng_float(&r)
                                           : ldexpf(rng_float(&r), rng_below(&r, 28) - 24);
        apply(kernel, e, y);
        for (int i = 0; i < VALUES; i++)
            error =
                fmax(error, ulps(y[i], act_meaning(e->act.act, x[i], e->act.a, e->act.b), floor));
    }
    return error;
}

// Bounds: what was seen, and half as much again. Those relative to 1 lose digits near their zeros.
static const struct {
    enum mgx_act act;
    float a, b, most;
    double floor, ulps;
} cases_[] = {
    {MGX_ACT_RELU, 0, 0, 100, 1e-30, 0},
    {MGX_ACT_CLIP, -0.5f, 3, 100, 1e-30, 0},
    {MGX_ACT_LEAKY_RELU, 0.01f, 0, 100, 1e-30, 1},
    {MGX_ACT_SIGMOID, 0, 0, 80, 1e-30, 4},
    {MGX_ACT_TANH, 0, 0, 20, 1e-30, 5},
    {MGX_ACT_SILU, 0, 0, 80, 1e-3, 12},
    {MGX_ACT_GELU, 0, 0, 20, 1, 8},
    {MGX_ACT_GELU_TANH, 0, 0, 20, 1, 6},
    {MGX_ACT_HARD_SIGMOID, 0.2f, 0.5f, 10, 1, 1},
    {MGX_ACT_HARD_SWISH, 1 / 6.0f, 0.5f, 10, 1, 2},
    {MGX_ACT_ELU, 0.7f, 0, 80, 1e-30, 5},
    {MGX_ACT_SOFTPLUS, 0, 0, 80, 1e-30, 5},
    {MGX_ACT_SOFTSIGN, 0, 0, 80, 1e-30, 2},
    {MGX_ACT_MISH, 0, 0, 80, 1e-30, 6},
    {MGX_ACT_AFFINE, 0.3f, 0.1f, 80, 0.1, 2},
    {MGX_ACT_SCALED_TANH, 1.7f, 0.6f, 30, 1e-30, 6},
    {MGX_ACT_THRESHOLDED_RELU, 0.4f, 0, 10, 1e-30, 0},
};

CASE(agree_with_libm)
{
    EACH_ISA(isa)
    {
        for (size_t i = 0; i < sizeof cases_ / sizeof *cases_; i++) {
            const struct mgx_end_step e = {.kind = MGX_END_ACT,
                                           .act = {cases_[i].act, cases_[i].a, cases_[i].b, NULL}};
            const double error = worst(mgx_end_kernel(isa), &e, cases_[i].most, cases_[i].floor);
            if (!(error <= cases_[i].ulps))
                CHECK_FAIL("%s on %s is off by %.2f ulp", mgx_act_name(e.act.act),
                           mgx_isa_name(isa), error);
        }
    }
}

CASE(limits_and_nan)
{
    static float x[VALUES];
    EACH_ISA(isa)
    {
        for (int act = 0; act < MGX_ACT_COUNT; act++) {
            const struct mgx_end_step e = {.kind = MGX_END_ACT,
                                           .act = {(enum mgx_act)act, 0.5f, 0.75f, NULL}};
            x[0] = NAN;
            x[1] = 200;
            x[2] = -200;
            x[3] = 0;
            apply(mgx_end_kernel(isa), &e, x);
            if (act != MGX_ACT_THRESHOLDED_RELU)
                CHECK(isnan(x[0]));
            CHECK_NEAR(x[1], act_meaning(e.act.act, 200, e.act.a, e.act.b), 1e-4);
            CHECK_NEAR(x[2], act_meaning(e.act.act, -200, e.act.a, e.act.b), 1e-4);
            CHECK_NEAR(x[3], act_meaning(e.act.act, 0, e.act.a, e.act.b), 1e-7);
        }
    }
}

CASE(slopes_per_column)
{
    enum { ROWS = 3, COLS = 41, STRIDE = 44 };
    struct rng r = {23};
    EACH_ISA(isa)
    {
        struct buffer slopes = buffer_random(COLS, &r), c = buffer_random(ROWS * STRIDE, &r);
        float expected[ROWS * STRIDE];
        for (int i = 0; i < ROWS * STRIDE; i++)
            expected[i] = i % STRIDE < COLS && c.data[i] < 0 ? c.data[i] * slopes.data[i % STRIDE]
                                                             : c.data[i];
        const struct mgx_end_step e = {.kind = MGX_END_ACT,
                                       .act = {MGX_ACT_LEAKY_RELU, 0, 0, slopes.data}};
        const struct mgx_end_rows rows = {.from = c.data,
                                          .from_row = STRIDE,
                                          .rows = ROWS,
                                          .cols = COLS,
                                          .to = (char *)c.data,
                                          .to_row = STRIDE * (int64_t)sizeof(float)};
        mgx_end_kernel(isa)->run(&e, 1, &rows);
        CHECK(memcmp(expected, c.data, sizeof expected) == 0);
        CHECK(buffer_intact(c));
        buffer_free(slopes);
        buffer_free(c);
    }
}

struct timed {
    const struct mgx_end_kernel *kernel;
    struct mgx_end_step e;
    float x[VALUES];
};

static void run_timed(void *user)
{
    struct timed *t = user;
    apply(t->kernel, &t->e, t->x);
}

static int bench(void)
{
    static struct timed t;
    EACH_ISA(isa)
    {
        t.kernel = mgx_end_kernel(isa);
        for (int act = 0; act < MGX_ACT_COUNT; act++) {
            t.e = (struct mgx_end_step){.kind = MGX_END_ACT,
                                        .act = {(enum mgx_act)act, 0.5f, 0.75f, NULL}};
            memset(t.x, 0, sizeof t.x);
            printf("%-8s %-16s %.3f ns a value\n", mgx_isa_name(isa), mgx_act_name(t.e.act.act),
                   1e9 * bench_time(run_timed, &t, 10) / VALUES);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(agree_with_libm) ROW(limits_and_nan)
                                                  ROW(slopes_per_column){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : check_run(cases, argc, argv);
}
