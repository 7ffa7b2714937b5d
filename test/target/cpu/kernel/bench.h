// SPDX-License-Identifier: MIT
// Timing for the kernel tests' --bench mode: short repeats, the minimum counts. On a machine shared
// with others the minimum is the only number that repeats.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Seconds of one call: the least of `rounds` rounds of enough calls to fill about 2 ms.
static inline double bench_time(void (*call)(void *user), void *user, int rounds)
{
    const double start = bench_now();
    call(user);
    const double once = bench_now() - start;
    const int calls = once > 2e-3 ? 1 : (int)(2e-3 / (once + 1e-8)) + 1;
    double least = 1e30;
    for (int r = 0; r < rounds; r++) {
        const double begin = bench_now();
        for (int i = 0; i < calls; i++)
            call(user);
        const double time = (bench_now() - begin) / calls;
        least = time < least ? time : least;
    }
    return least;
}

// The same in CPU time of the calling thread: for one thread on a busy machine.
static inline double bench_cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double bench_cpu_time(void (*call)(void *user), void *user, int rounds)
{
    const double start = bench_cpu_now();
    call(user);
    const double once = bench_cpu_now() - start;
    const int calls = once > 2e-3 ? 1 : (int)(2e-3 / (once + 1e-8)) + 1;
    double least = 1e30;
    for (int r = 0; r < rounds; r++) {
        const double begin = bench_cpu_now();
        for (int i = 0; i < calls; i++)
            call(user);
        const double time = (bench_cpu_now() - begin) / calls;
        least = time < least ? time : least;
    }
    return least;
}

static inline int bench_asked(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--bench") == 0;
}
