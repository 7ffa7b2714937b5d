// SPDX-License-Identifier: MIT
// A clock, and what many measurements come to.
#include <math.h>
#include <time.h>

#include "profile.h"

double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

double middle_mean(const double *values, int count)
{
    const int drop = count / 4;
    double sum = 0;
    for (int i = drop; i < count - drop; i++)
        sum += values[i];
    return count ? sum / (count - 2 * drop) : 0;
}

double mean(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / count : 0;
}

double busy_share(const struct measurement *m)
{
    const double passed = m->timed * mean(m->total, m->timed);
    return passed > 0 ? fmin(m->processor / passed, 1) : 1;
}

double percentile(const double *values, int count, double p)
{
    return count ? values[(int)(p * (count - 1))] : 0;
}
