// SPDX-License-Identifier: MIT
// random_normal: the moments and tails of a large sample, and dependence on the seed alone.
#include <math.h>

#include "check.h"
#include "op/eval/eval.h"
#include "op/op.h"

enum { COUNT = 200000 };

static bool draw(int64_t seed, float *out)
{
    const struct mgx_shape one = mgx_shape_vector(MGX_INT64, 1);
    const struct mgx_shape many = mgx_shape_vector(MGX_FLOAT, COUNT);
    const struct mgx_tensor from = mgx_tensor_borrow(&one, &seed);
    const struct mgx_tensor like = mgx_tensor_borrow(&many, out);
    const struct mgx_tensor *in[] = {&from, &like};
    struct mgx_eval e = {0};
    struct mgx_tensor y;
    struct mgx_diag diag = {0};
    if (mgx_eval_op(&e, &mgx_op_random_normal, NULL, in, 2, NULL, 0, &many, &y, &diag) != MGX_OK)
        return false;
    memcpy(out, y.data, sizeof(float) * COUNT);
    mgx_tensor_release(&y);
    return true;
}

CASE(normal_has_the_moments_of_the_normal_distribution)
{
    static float v[COUNT];
    double sum[5] = {0};
    int beyond_two = 0;
    CHECK(draw(42, v));
    for (int i = 0; i < COUNT; i++) {
        double power = 1;
        for (int k = 1; k < 5; k++)
            sum[k] += power *= v[i];
        beyond_two += fabs((double)v[i]) > 2;
    }
    // Five standard errors of each mean: sqrt(variance of v^k / COUNT), variances 1, 2, 15, 96.
    CHECK_NEAR(sum[1] / COUNT, 0, 5 * sqrt(1.0 / COUNT));
    CHECK_NEAR(sum[2] / COUNT, 1, 5 * sqrt(2.0 / COUNT));
    CHECK_NEAR(sum[3] / COUNT, 0, 5 * sqrt(15.0 / COUNT));
    CHECK_NEAR(sum[4] / COUNT, 3, 5 * sqrt(96.0 / COUNT));
    const double p = erfc(sqrt(2.0)); // of |v| > 2
    CHECK_NEAR((double)beyond_two / COUNT, p, 5 * sqrt(p * (1 - p) / COUNT));
}

CASE(normal_depends_on_the_seed_alone)
{
    static float a[COUNT], b[COUNT];
    CHECK(draw(7, a) && draw(7, b));
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK(draw(8, b));
    int equal = 0;
    for (int i = 0; i < COUNT; i++)
        equal += a[i] == b[i];
    CHECK(equal < 10);
}

TEST_MAIN(ROW(normal_has_the_moments_of_the_normal_distribution)
              ROW(normal_depends_on_the_seed_alone))
