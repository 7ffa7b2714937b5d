// SPDX-License-Identifier: MIT
// Reading between elements; see sample.h.
#include "op/reference/sample.h"

#include <assert.h>
#include <math.h>

#include "base/size.h"

struct mgx_taps mgx_linear_taps(double x, int64_t length)
{
    struct mgx_taps t = {0};
    if (!(x > -1 && x < (double)length))
        return t;
    const int64_t low = (int64_t)floor(x);
    t.count = 2;
    t.at[0] = low; // -1 is outside already
    t.at[1] = low + 1 < length ? low + 1 : -1;
    t.weight[1] = x - (double)low;
    t.weight[0] = 1 - t.weight[1];
    return t;
}

double mgx_cubic_weight(double t, double a)
{
    t = fabs(t);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((t - 5) * t + 8) * t * a - 4 * a : 0;
}

double mgx_sample(const double *plane, int rank, const int64_t *lens, const struct mgx_taps *taps)
{
    assert(rank >= 1 && rank <= MGX_MAX_RANK);
    const int64_t inner = mgx_product(lens + 1, rank - 1);
    double sum = 0;
    for (int k = 0; k < taps->count; k++) {
        if (taps->at[k] < 0)
            continue;
        assert(taps->at[k] < lens[0]);
        const double *part = plane + taps->at[k] * inner;
        sum +=
            taps->weight[k] * (rank == 1 ? *part : mgx_sample(part, rank - 1, lens + 1, taps + 1));
    }
    return sum;
}
