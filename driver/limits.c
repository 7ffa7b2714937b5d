// SPDX-License-Identifier: MIT
// What the machine can do at most, measured by the engine itself: a large product for arithmetic,
// sums over a large tensor for memory, and over one that stays in the threads' own caches for what
// lies there. An instruction that comes near one of them can hardly become faster, short of doing
// less.
//
// The least of many short runs counts: other work on the machine leaves some of them alone, where it
// would meet every long one. Cost: some tenths of a second.
#include <math.h>
#include <unistd.h>

#include "driver.h"

enum { LEAST_ROUNDS = 8, MOST_ROUNDS = 200, LONG_MS = 150, TOO_LONG_MS = 1000 };

// The first one touches its memory and does not count.
static bool is_worth_a_round(int done, double ms)
{
    return done < 2 || (done <= LEAST_ROUNDS && ms < TOO_LONG_MS) ||
           (done <= MOST_ROUNDS && ms < LONG_MS);
}

static double least_ms(migraphx_program_t program, migraphx_program_parameters_t params)
{
    const double begin = now_ms();
    double least = INFINITY;
    for (int i = 0; is_worth_a_round(i, now_ms() - begin); i++) {
        migraphx_arguments_t results = NULL;
        const double start = now_ms();
        if (!OK(migraphx_program_run(&results, program, params)))
            return INFINITY;
        if (i)
            least = fmin(least, now_ms() - start);
        migraphx_arguments_destroy(results);
    }
    return least;
}

static bool time_program(const struct options *o, const char *text, const char **inputs, int count,
                         double *ms)
{
    migraphx_program_t program = NULL;
    migraphx_program_parameters_t params = NULL;
    struct options plain = {
        .target = o->target, .threads = o->threads, .isa = o->isa, .offload_copy = o->offload_copy};
    plain.fill1 = (struct words){inputs, count};
    const bool good = OK(migraphx_program_parse(&program, text, strlen(text))) &&
                      compile_quietly(&plain, program, target_name(o)) &&
                      make_inputs(&plain, program, &params);
    *ms = good ? least_ms(program, params) : INFINITY;
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(program);
    return good;
}

static bool time_product(const struct options *o, int side, double *gflops)
{
    static const char *inputs[] = {"x", "y"};
    char text[512];
    double ms;
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "y = @param:y -> float_type, {%d, %d}, {%d, 1}\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@2 = dot(x,y) -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@3 = @return(main:@2)\n",
             side, side, side, side, side, side, side, side, side);
    if (!time_program(o, text, inputs, 2, &ms))
        return false;
    *gflops = 2.0 * side * side * side / ms * 1e-6;
    return true;
}

static bool time_sum(const struct options *o, int rows, int length, double *gbytes)
{
    static const char *inputs[] = {"x"};
    char text[512];
    double ms;
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@1 = reduce_sum[axes={1}](x) -> float_type, {%d, 1}, {1, 1}\n"
             "main:@2 = @return(main:@1)\n",
             rows, length, length, rows);
    if (!time_program(o, text, inputs, 1, &ms))
        return false;
    *gbytes = (double)sizeof(float) * rows * length / ms * 1e-6;
    return true;
}

static int thread_count(const struct options *o)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return o->threads ? o->threads : online > 0 && online < 4096 ? (int)online : 1;
}

// A millisecond of work for every thread, in whole tiles.
static int product_side(int threads)
{
    return ((int)cbrt(5e7 * threads) + 63) / 64 * 64;
}

bool measure_limits(const struct options *o, struct limits *out)
{
    enum { SIDE = 1024, ROWS = 256, LENGTH = 65536, NEAR_ROWS = 32, NEAR_LENGTH = 1024 };
    const bool card = strcmp(target_name(o), "gpu") == 0;
    const int threads = thread_count(o);
    *out = (struct limits){0};
    if (!time_product(o, card ? SIDE : product_side(threads), &out->gflops) ||
        !time_sum(o, ROWS, LENGTH, &out->gbytes))
        return false;
    if (card)
        return true;
    out->cache_bytes = 2.0 * sizeof(float) * NEAR_ROWS * NEAR_LENGTH * threads;
    if (!time_sum(o, NEAR_ROWS * threads, NEAR_LENGTH, &out->cache_gbytes))
        return false;
    out->cache_gbytes = fmax(out->cache_gbytes, out->gbytes);
    return true;
}

double share_of_limit(const struct limits *limits, double flops, double bytes, double ms)
{
    if (!(limits->gflops > 0) || !(limits->gbytes > 0) || !(ms > 0))
        return 0;
    const double gbytes = bytes <= limits->cache_bytes ? limits->cache_gbytes : limits->gbytes;
    return 100 * fmax(flops * 1e-6 / limits->gflops, bytes * 1e-6 / gbytes) / ms;
}
