// SPDX-License-Identifier: MIT
// A library to preload: a stopwatch around every run that a program asks the engine for, by another
// clock than the engine's and the driver's own. When the process ends it writes a line for each to
// the file named by MGX_STOPWATCH: "run" or "profile", and nanoseconds. bench/stopwatch.py reads it.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 1 << 20 };

typedef int run_fn(void *out, void *program, void *params);
typedef int profile_fn(void *out, void *program, void *params, double *microseconds, size_t count);

int migraphx_program_run(void *out, void *program, void *params);
int migraphx_program_run_profile(void *out, void *program, void *params, double *microseconds,
                                 size_t count);

static struct {
    const char *kind;
    int64_t nanoseconds;
} watched[MOST];
static int count;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static void note(const char *kind, int64_t start)
{
    const int64_t end = now();
    if (count < MOST) {
        watched[count].kind = kind;
        watched[count++].nanoseconds = end - start;
    }
}

int migraphx_program_run(void *out, void *program, void *params)
{
    static run_fn *real;
    if (!real)
        *(void **)&real = next("migraphx_program_run");
    const int64_t start = now();
    const int status = real(out, program, params);
    note("run", start);
    return status;
}

int migraphx_program_run_profile(void *out, void *program, void *params, double *microseconds,
                                 size_t size)
{
    static profile_fn *real;
    if (!real)
        *(void **)&real = next("migraphx_program_run_profile");
    const int64_t start = now();
    const int status = real(out, program, params, microseconds, size);
    note("profile", start);
    return status;
}

__attribute__((destructor)) static void write_all(void)
{
    const char *path = getenv("MGX_STOPWATCH");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < count; i++)
        fprintf(file, "%s %lld\n", watched[i].kind, (long long)watched[i].nanoseconds);
    if (file)
        fclose(file);
}
