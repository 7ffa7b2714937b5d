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

// CPU time of the calling thread: for one thread on a busy machine.
static inline double bench_cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// What a call by so many threads is timed with.
typedef double (*bench_clock)(void);

static inline bench_clock bench_clock_of(int threads)
{
    return threads > 1 ? bench_now : bench_cpu_now;
}

// A call that is timed in rounds of some 2 ms.
struct bench {
    void (*call)(void *user);
    void *user;
    bench_clock now;
    int calls; // of a round
};

static inline struct bench bench_of(void (*call)(void *user), void *user, bench_clock now)
{
    const double start = now();
    call(user);
    const double once = now() - start;
    const int calls = once > 2e-3 ? 1 : (int)(2e-3 / (once + 1e-8)) + 1;
    return (struct bench){call, user, now, calls};
}

// Seconds of one call, in one round.
static inline double bench_round(const struct bench *b)
{
    const double begin = b->now();
    for (int i = 0; i < b->calls; i++)
        b->call(b->user);
    return (b->now() - begin) / b->calls;
}

static inline double bench_least(const struct bench *b, int rounds)
{
    double least = 1e30;
    for (int r = 0; r < rounds; r++) {
        const double time = bench_round(b);
        least = time < least ? time : least;
    }
    return least;
}

// Seconds of one call: the least of `rounds` rounds.
static inline double bench_time(void (*call)(void *user), void *user, int rounds)
{
    const struct bench b = bench_of(call, user, bench_now);
    return bench_least(&b, rounds);
}

static inline double bench_time_of(int threads, void (*call)(void *user), void *user, int rounds)
{
    const struct bench b = bench_of(call, user, bench_clock_of(threads));
    return bench_least(&b, rounds);
}

static inline int bench_asked(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--bench") == 0;
}
