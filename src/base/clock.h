// SPDX-License-Identifier: MIT
// The one clock: seconds since some moment, never backwards, for measuring and for time limits.
#pragma once

#include <time.h>

static inline double mgx_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
