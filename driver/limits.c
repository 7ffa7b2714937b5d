// SPDX-License-Identifier: MIT
// What the machine can do at most, measured by the engine itself: a large product for arithmetic,
// sums over a large tensor for memory. An instruction that comes near one of the two can hardly
// become faster, short of doing less.
//
// Cost: some tenths of a second.
#include <math.h>

#include "driver.h"

enum { SIDE = 1024, ROWS = 256, LENGTH = 65536, ROUNDS = 8 };

static double least_ms(migraphx_program_t program, migraphx_program_parameters_t params)
{
    double least = INFINITY;
    for (int i = 0; i <= ROUNDS; i++) {
        migraphx_arguments_t results = NULL;
        const double start = now_ms();
        if (!OK(migraphx_program_run(&results, program, params)))
            return INFINITY;
        if (i) // the first one touches its memory
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

bool measure_limits(const struct options *o, struct limits *out)
{
    char product[512], sum[512];
    static const char *inputs[] = {"x", "y"};
    double ms;
    snprintf(product, sizeof product,
             "module: \"main\"\n"
             "y = @param:y -> float_type, {%d, %d}, {%d, 1}\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@2 = dot(x,y) -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@3 = @return(main:@2)\n",
             SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE);
    snprintf(sum, sizeof sum,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {%d, %d}, {%d, 1}\n"
             "main:@1 = reduce_sum[axes={1}](x) -> float_type, {%d, 1}, {1, 1}\n"
             "main:@2 = @return(main:@1)\n",
             ROWS, LENGTH, LENGTH, ROWS);
    *out = (struct limits){0};
    if (!time_program(o, product, inputs, 2, &ms))
        return false;
    out->gflops = 2.0 * SIDE * SIDE * SIDE / ms * 1e-6;
    if (!time_program(o, sum, inputs, 1, &ms))
        return false;
    out->gbytes = (double)sizeof(float) * ROWS * LENGTH / ms * 1e-6;
    return true;
}

double share_of_limit(const struct limits *limits, double flops, double bytes, double ms)
{
    if (!(limits->gflops > 0) || !(limits->gbytes > 0) || !(ms > 0))
        return 0;
    return 100 * fmax(flops * 1e-6 / limits->gflops, bytes * 1e-6 / limits->gbytes) / ms;
}
