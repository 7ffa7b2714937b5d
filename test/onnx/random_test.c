// SPDX-License-Identifier: MIT
// Random operators: what a seed stands for is ours to choose, so moments, frequencies and bounds
// are compared with those of the distributions, and seeds with each other. Bounds are six standard
// deviations of the statistic, so that no seed fails by chance.
#include "import.h"
#include "tiny.h"

enum { ROOM = 40000 };

static double first[ROOM], second[ROOM];

// Runs a one-node model without inputs, or with one input of `value` everywhere.
static int64_t draw(const char *line, const struct mgx_tensor *arg, double *out)
{
    struct pb m = tiny_model(line);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    if (!p)
        printf("%s: %s\n", line, diag.text);
    const int64_t count = p ? run_model(p, arg, arg ? 1 : 0, NULL, out, ROOM) : -1;
    mgx_program_destroy(p);
    return count;
}

static double mean_of(const double *v, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += v[i];
    return sum / (double)count;
}

static double variance_of(const double *v, int64_t count)
{
    const double mean = mean_of(v, count);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return sum / (double)count;
}

CASE(uniform)
{
    const int64_t n =
        draw("RandomUniform() shape=[100,200] low=-1.0 high=3.0 seed=7.0", NULL, first);
    CHECK_INT(n, 20000);
    for (int64_t i = 0; i < n; i++)
        CHECK(first[i] >= -1 && first[i] < 3);
    CHECK_NEAR(mean_of(first, n), 1, 6 * (4 / sqrt(12)) / sqrt((double)n));
    CHECK_NEAR(variance_of(first, n), 16.0 / 12, 0.05);
}

CASE(normal)
{
    const int64_t n =
        draw("RandomNormal() shape=[100,200] mean=2.0 scale=3.0 seed=7.0", NULL, first);
    CHECK_INT(n, 20000);
    CHECK_NEAR(mean_of(first, n), 2, 6 * 3 / sqrt((double)n));
    CHECK_NEAR(variance_of(first, n), 9, 6 * 9 * sqrt(2.0 / (double)n));
    int64_t within = 0;
    for (int64_t i = 0; i < n; i++)
        within += fabs(first[i] - 2) < 3;
    CHECK_NEAR((double)within / (double)n, 0.6827, 0.02);
}

CASE(seeds)
{
    static const char *const like[] = {"RandomUniform() shape=[50] seed=%s",
                                       "RandomNormal() shape=[50] seed=%s"};
    for (int i = 0; i < 2; i++) {
        char line[2][128];
        snprintf(line[0], sizeof line[0], like[i], "1.0");
        snprintf(line[1], sizeof line[1], like[i], "1.5");
        CHECK_INT(draw(line[0], NULL, first), 50);
        CHECK_INT(draw(line[0], NULL, second), 50);
        CHECK(memcmp(first, second, 50 * sizeof *first) == 0);
        CHECK_INT(draw(line[1], NULL, second), 50);
        CHECK(memcmp(first, second, 50 * sizeof *first) != 0);
    }
}

CASE(like_another)
{
    static float values[6000];
    const struct mgx_tensor x = floats(values, 2, (int64_t[]){60, 100});
    CHECK_INT(draw("RandomUniformLike(x:f[60,100]) seed=3.0", &x, first), 6000);
    CHECK_NEAR(mean_of(first, 6000), 0.5, 6 * 0.289 / sqrt(6000));
    CHECK_INT(draw("RandomNormalLike(x:f[60,100]) seed=3.0 dtype=11", &x, first), 6000);
    CHECK_NEAR(mean_of(first, 6000), 0, 6 / sqrt(6000));
}

CASE(bernoulli)
{
    static float p[10000];
    for (int i = 0; i < 10000; i++)
        p[i] = 0.3f;
    const struct mgx_tensor x = floats(p, 1, (int64_t[]){10000});
    CHECK_INT(draw("Bernoulli(x:f[10000]) seed=3.0", &x, first), 10000);
    for (int i = 0; i < 10000; i++)
        CHECK(first[i] == 0 || first[i] == 1);
    CHECK_NEAR(mean_of(first, 10000), 0.3, 6 * sqrt(0.21 / 10000));
}

// Weights 1, 2, 5 as logarithms.
CASE(multinomial)
{
    const float logits[] = {0, 0.6931472f, 1.6094379f};
    const struct mgx_tensor x = floats(logits, 2, (int64_t[]){1, 3});
    CHECK_INT(draw("Multinomial(x:f[1,3]) sample_size=16000 seed=3.0", &x, first), 16000);
    double seen[3] = {0};
    for (int i = 0; i < 16000; i++) {
        CHECK(first[i] == 0 || first[i] == 1 || first[i] == 2);
        seen[(int)first[i]] += 1.0 / 16000;
    }
    for (int k = 0; k < 3; k++) {
        const double p = (double[]){1, 2, 5}[k] / 8;
        CHECK_NEAR(seen[k], p, 6 * sqrt(p * (1 - p) / 16000));
    }
}

// What is kept grows by 1 / (1 - ratio).
CASE(dropout)
{
    static float values[10000];
    for (int i = 0; i < 10000; i++)
        values[i] = 2;
    const struct mgx_tensor x = floats(values, 1, (int64_t[]){10000});
    CHECK_INT(draw("Dropout(x:f[10000], r:f=0.75, t:b=1) seed=3", &x, first), 10000);
    for (int i = 0; i < 10000; i++)
        CHECK(first[i] == 0 || first[i] == 8);
    CHECK_NEAR(mean_of(first, 10000), 2, 6 * 8 * sqrt(0.1875 / 10000));
    CHECK_INT(draw("Dropout(x:f[10000], r:f=0.75, t:b=0) seed=3", &x, first), 10000);
    CHECK_NEAR(variance_of(first, 10000), 0, 0);
}

TEST_MAIN(ROW(uniform) ROW(normal) ROW(seeds) ROW(like_another) ROW(bernoulli) ROW(multinomial)
              ROW(dropout))
