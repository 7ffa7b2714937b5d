// SPDX-License-Identifier: MIT
// A clock for tests that does not depend on how busy the machine is: include this in one file of a
// test program, and in the engine's own clocks (base/clock.h) time goes by in steps, one for each
// look at them. Until it is set, and for every other clock, time is the system's. The program's own
// function wins over the library's.
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t test_clock_looks, test_clock_step; // nanoseconds; 0: the system's time

static inline void test_clock_go_by(int64_t nanoseconds)
{
    atomic_store(&test_clock_step, nanoseconds);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const int64_t step = atomic_load(&test_clock_step);
    if (!step || (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
        return (int)syscall(SYS_clock_gettime, clock, t);
    // Beyond what the system's clock says after any time that a machine runs.
    const int64_t now = (INT64_C(1) << 60) + step * (1 + atomic_fetch_add(&test_clock_looks, 1));
    *t = (struct timespec){.tv_sec = now / 1000000000, .tv_nsec = now % 1000000000};
    return 0;
}
