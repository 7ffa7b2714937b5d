// SPDX-License-Identifier: MIT
// Row kernels against their formulas in double: every length around the vectors, rows longer than a
// piece, in place, columns at a stride. --bench prints GB/s, counting every row read and written
// once.
#include "targets/cpu/kernel/harness.h"
#include "targets/cpu/kernel/rows/rows.h"

static const int lengths[] = {1, 4, 8, 16, 32, 33, 64, 100, 4096, 4128, 9000};

static int random_length(struct rng *r)
{
    const int n = rng_size(r, lengths, rng_below(r, 8) ? 8 : 11);
    return n < 1 ? 1 : n;
}

static double mean_of(const float *x, int n, double minus, int power)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += power == 2 ? (x[i] - minus) * (x[i] - minus) : x[i] - minus;
    return sum / n;
}

static void expect_softmax(const float *x, int n, bool logarithm, double *y)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - most);
    for (int i = 0; i < n; i++)
        y[i] = logarithm ? x[i] - most - log(sum) : exp(x[i] - most) / sum;
}

static void expect_norm(const float *x, const float *scale, const float *shift, bool rms, int n,
                        double *y)
{
    const double mean = rms ? 0 : mean_of(x, n, 0, 1);
    const double by = 1 / sqrt(mean_of(x, n, mean, 2) + 1e-5);
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) * by * (scale ? scale[i] : 1) + (shift ? shift[i] : 0);
}

// Largest distance relative to 1 or to the value.
static double worst(const float *actual, const double *expected, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs(actual[i] - expected[i]) / fmax(1, fabs(expected[i]));
        most = off > most || isnan(off) ? off : most;
    }
    return most;
}

static double try_map(const struct mgx_rows_kernel *k, struct rng *r, int kind, int n,
                      bool in_place)
{
    struct buffer x = buffer_random(n, r), scale = buffer_random(n, r), shift = buffer_random(n, r),
                  y = buffer_new(n);
    const float *a = rng_below(r, 2) ? scale.data : NULL, *b = rng_below(r, 2) ? shift.data : NULL;
    double *expected = calloc((size_t)n, sizeof *expected);
    for (int i = 0; i < n; i++)
        x.data[i] = x.data[i] * 5 + 1;
    if (kind < 2)
        expect_softmax(x.data, n, kind == 1, expected);
    else
        expect_norm(x.data, a, b, kind == 3, n, expected);
    float *to = in_place ? x.data : y.data;
    if (kind < 2)
        (kind ? k->logsoftmax : k->softmax)(x.data, to, n);
    else
        (kind == 3 ? k->rms : k->norm)(x.data, a, b, 1e-5f, to, n);
    const double off = buffer_intact(x) && buffer_intact(y) ? worst(to, expected, n) : INFINITY;
    free(expected);
    buffer_free(x);
    buffer_free(y);
    buffer_free(scale);
    buffer_free(shift);
    return off;
}

CASE(rows_by_their_formulas)
{
    static const char *const names[] = {"softmax", "logsoftmax", "norm", "rms"};
    struct rng r = {41};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 400; i++) {
            const int kind = i % 4, n = random_length(&r);
            const bool in_place = kind != 1 && rng_below(&r, 3) == 0; // logsoftmax may not be
            const double off = try_map(mgx_rows_kernel(isa), &r, kind, n, in_place);
            if (!(off < 4e-6))
                CHECK_FAIL("%s of %d on %s is off by %g", names[kind], n, mgx_isa_name(isa), off);
        }
    }
}

static double fold(enum mgx_fold kind, const float *x, int64_t stride, int64_t n)
{
    double y = kind == MGX_FOLD_PROD  ? 1
               : kind == MGX_FOLD_MAX ? -INFINITY
               : kind == MGX_FOLD_MIN ? INFINITY
                                      : 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = x[i * stride];
        y = kind == MGX_FOLD_MAX    ? fmax(y, v)
            : kind == MGX_FOLD_MIN  ? fmin(y, v)
            : kind == MGX_FOLD_PROD ? y * v
                                    : y + v;
    }
    return kind == MGX_FOLD_MEAN ? y / (double)n : y;
}

CASE(folds_along_rows)
{
    struct rng r = {42};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 400; i++) {
            const enum mgx_fold kind = (enum mgx_fold)(i % 5);
            const int n = random_length(&r);
            struct buffer x = buffer_random(n, &r);
            const double expected = fold(kind, x.data, 1, n);
            const double off = fabs(mgx_rows_kernel(isa)->fold(kind, x.data, n) - expected);
            buffer_free(x);
            if (!(off <= 1e-6 * (1 + fabs(expected)) * (kind < 1 ? sqrt(n) : 1)))
                CHECK_FAIL("fold %d of %d on %s is off by %g", kind, n, mgx_isa_name(isa), off);
        }
    }
}

// Few columns without gaps go through whole vectors, in place too.
CASE(softmax_of_few_columns)
{
    struct rng r = {44};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 200; i++) {
            const int n = 1 << rng_below(&r, 5), count = 1 + rng_below(&r, 90);
            struct buffer x = buffer_random((int64_t)count * n, &r),
                          y = buffer_new((int64_t)count * n);
            memcpy(y.data, x.data, (size_t)x.count * sizeof(float));
            mgx_rows_kernel(isa)->softmax_across(y.data, n, y.data, n, count, n);
            double off = buffer_intact(y) ? 0 : INFINITY;
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int c = 0; c < count; c++)
                    sum += exp(x.data[c * n + j]);
                for (int c = 0; c < count; c++)
                    off = fmax(off, fabs(y.data[c * n + j] - exp(x.data[c * n + j]) / sum));
            }
            buffer_free(x);
            buffer_free(y);
            if (!(off < 2e-6))
                CHECK_FAIL("%d rows of %d on %s are off by %g", count, n, mgx_isa_name(isa), off);
        }
    }
}

CASE(folds_and_softmax_across_rows)
{
    struct rng r = {43};
    EACH_ISA(isa)
    {
        for (int i = 0; i < 300; i++) {
            const int kind = i % 6, n = rng_size(&r, lengths, 8) + 1, count = 1 + rng_below(&r, 60);
            const int64_t stride = n + rng_below(&r, 3) * 5;
            struct buffer x = buffer_random(count * stride, &r), y = buffer_new(count * stride);
            if (kind < 5)
                mgx_rows_kernel(isa)->fold_across((enum mgx_fold)kind, x.data, stride, count,
                                                  y.data, n);
            else
                mgx_rows_kernel(isa)->softmax_across(x.data, stride, y.data, stride, count, n);
            double off = buffer_intact(y) && (kind == 5 || is_guard(y.data + n)) ? 0 : INFINITY;
            for (int j = 0; j < n && kind < 5; j++)
                off = fmax(off,
                           fabs(y.data[j] - fold((enum mgx_fold)kind, x.data + j, stride, count)));
            for (int j = 0; j < n && kind == 5; j++) {
                double sum = 0;
                for (int c = 0; c < count; c++)
                    sum += exp(x.data[c * stride + j]);
                for (int c = 0; c < count; c++)
                    off =
                        fmax(off, fabs(y.data[c * stride + j] - exp(x.data[c * stride + j]) / sum));
            }
            buffer_free(x);
            buffer_free(y);
            if (!(off < 2e-5))
                CHECK_FAIL("kind %d, %d rows of %d on %s is off by %g", kind, count, n,
                           mgx_isa_name(isa), off);
        }
    }
}

CASE(nan_and_infinity_come_through)
{
    EACH_ISA(isa)
    {
        const struct mgx_rows_kernel *k = mgx_rows_kernel(isa);
        for (int at = 0; at < 40; at++) {
            float x[40], y[40];
            for (int i = 0; i < 40; i++)
                x[i] = (float)i;
            x[at] = NAN;
            CHECK(isnan(k->fold(MGX_FOLD_MAX, x, 40)) && isnan(k->fold(MGX_FOLD_SUM, x, 40)));
            k->softmax(x, y, 40);
            CHECK(isnan(y[0]) && isnan(y[39]));
            x[at] = -INFINITY;
            k->softmax(x, y, 40);
            CHECK(y[at] == 0 && isfinite(y[(at + 1) % 40]));
        }
    }
}

// --- --bench ---

struct timed {
    const struct mgx_rows_kernel *k;
    int kind;
    int64_t rows, n;
    float *x, *y, *scale;
};

static const char *const bench_names[] = {"softmax", "logsoftmax", "norm",      "rms",
                                          "sum",     "max",        "sum across"};

static void run_timed(void *user)
{
    const struct timed *t = user;
    if (t->kind == 6)
        t->k->fold_across(MGX_FOLD_SUM, t->x, t->n, t->rows, t->y, t->n);
    for (int64_t i = 0; i < t->rows && t->kind < 6; i++) {
        const float *x = t->x + i * t->n;
        float *y = t->y + i * t->n;
        switch (t->kind) {
        case 0:
            t->k->softmax(x, y, t->n);
            break;
        case 1:
            t->k->logsoftmax(x, y, t->n);
            break;
        case 2:
            t->k->norm(x, t->scale, t->scale, 1e-5f, y, t->n);
            break;
        case 3:
            t->k->rms(x, t->scale, NULL, 1e-5f, y, t->n);
            break;
        default:
            y[0] = t->k->fold(t->kind == 4 ? MGX_FOLD_SUM : MGX_FOLD_MAX, x, t->n);
        }
    }
}

static int bench(void)
{
    static const int64_t sizes[][2] = {{128, 128}, {128, 768}, {49, 1280}, {4, 65536}};
    struct rng r = {1};
    struct buffer x = buffer_random(1 << 19, &r), y = buffer_random(1 << 19, &r),
                  scale = buffer_random(1 << 17, &r);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 7; kind++) {
            printf("%-10s %5d x %-6d", bench_names[kind], (int)sizes[s][0], (int)sizes[s][1]);
            EACH_ISA(isa)
            {
                struct timed t = {mgx_rows_kernel(isa),
                                  kind,
                                  sizes[s][0],
                                  sizes[s][1],
                                  x.data,
                                  y.data,
                                  scale.data};
                const double bytes = 4.0 * (double)(t.rows * t.n) * (kind < 4 ? 2 : 1);
                printf("  %s %6.1f GB/s", mgx_isa_name(isa),
                       bytes * 1e-9 / bench_time(run_timed, &t, 7));
            }
            printf("\n");
        }
    buffer_free(x);
    buffer_free(y);
    buffer_free(scale);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(rows_by_their_formulas) ROW(folds_along_rows) ROW(folds_and_softmax_across_rows)
            ROW(softmax_of_few_columns) ROW(nan_and_infinity_come_through){NULL, NULL}};
    return bench_asked(argc, argv) ? bench() : check_run(cases, argc, argv);
}
