// SPDX-License-Identifier: MIT
// The distance of results: equal infinities and values that are no numbers in both count for
// nothing, in one alone they set results apart.
#include "quant/apply.h"

#include <math.h>

#include "check.h"

static double distance(double *a, double *b, int64_t count)
{
    const struct mgx_shape shape = mgx_shape_make(MGX_DOUBLE, 1, (const int64_t[]){count});
    struct mgx_tensor x = mgx_tensor_borrow(&shape, a), y = mgx_tensor_borrow(&shape, b);
    const struct mgx_quant_results one = {.v = &x, .samples = 1, .per_sample = 1},
                                   other = {.v = &y, .samples = 1, .per_sample = 1};
    struct mgx_quant_distance d;
    struct mgx_diag diag = {0};
    return mgx_quant_results_compare(&one, &other, &d, &diag) == MGX_OK ? d.relative : -1;
}

CASE(what_is_no_number_counts_for_nothing)
{
    double a[] = {INFINITY, 3, 4, NAN}, b[] = {INFINITY, 3, 5, NAN};
    CHECK_NEAR(distance(a, b, 4), 1 / sqrt(3 * 3 + 4 * 4), 1e-12);
    b[3] = 1;
    CHECK(isinf(distance(a, b, 4)));
}

CASE(the_same_is_at_no_distance)
{
    double a[] = {0, -2, 1e30}, b[] = {0, -2, 1e30};
    CHECK_NEAR(distance(a, b, 3), 0, 0);
    b[1] = -1;
    CHECK_NEAR(distance(a, b, 2), 0.5, 1e-12);
}

TEST_MAIN(ROW(what_is_no_number_counts_for_nothing) ROW(the_same_is_at_no_distance))
