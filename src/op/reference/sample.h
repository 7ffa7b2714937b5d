// SPDX-License-Identifier: MIT
// Reading a plane between its elements: per axis a few taps with weights, all combinations of which
// are summed.
#pragma once

#include "op/rule/rule.h"

enum { MGX_MAX_TAPS = 4 };

struct mgx_taps {
    int count;
    int64_t at[MGX_MAX_TAPS]; // -1: outside, reads 0
    double weight[MGX_MAX_TAPS];
};

// The two taps of linear interpolation at x; outside of 0 .. length - 1 reads 0. None for a NaN.
struct mgx_taps mgx_linear_taps(double x, int64_t length);
// Keys' cubic convolution kernel at distance t, with a = cubic_coeff_a.
double mgx_cubic_weight(double t, double a);
// Sum over all combinations of taps of a packed plane of `rank` axes.
double mgx_sample(const double *plane, int rank, const int64_t *lens, const struct mgx_taps *taps);
