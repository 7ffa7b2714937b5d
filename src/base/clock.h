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

// The same to some milliseconds, where that is cheaper: a few nanoseconds, not twenty to fifty.
static inline double mgx_clock_coarse(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return mgx_clock_seconds();
#endif
}
