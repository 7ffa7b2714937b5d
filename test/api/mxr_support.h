// SPDX-License-Identifier: MIT
// A small program with weights that are packed, and its answer by the definition: what the tests of
// saved programs share.
#pragma once

#include <unistd.h>

#include "api/support.h"

// y = relu(conv(x, w)) flattened, times v.
enum { IN = 2, OUT = 4, SIZE = 5, WIDTH = 3, FLAT = OUT * WIDTH * WIDTH, RESULTS = 8 };

static double w_at(int i)
{
    return (i * 7 % 13 - 6) / 8.0;
}

static double v_at(int i)
{
    return (i * 5 % 17 - 8) / 16.0;
}

static void put_literal(char *out, int count, double (*at)(int))
{
    for (int i = 0; i < count; i++)
        out += sprintf(out, "%s%.9g", i ? ", " : "", at(i));
}

static migraphx_program_t make_program(void)
{
    static char text[16384], w[4096], v[8192];
    migraphx_program_t p;
    put_literal(w, OUT * IN * 9, w_at);
    put_literal(v, FLAT * RESULTS, v_at);
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "main:@0 = @literal{%s} -> float_type, {36, 8}, {8, 1}\n"
             "main:@1 = @literal{%s} -> float_type, {4, 2, 3, 3}, {18, 9, 3, 1}\n"
             "x = @param:x -> float_type, {1, 2, 5, 5}, {50, 25, 5, 1}\n"
             "main:@3 = convolution[padding={0, 0, 0, 0},stride={1, 1},dilation={1, 1},group=1,"
             "padding_mode=0](x,main:@1) -> float_type, {1, 4, 3, 3}, {36, 9, 3, 1}\n"
             "main:@4 = relu(main:@3) -> float_type, {1, 4, 3, 3}, {36, 9, 3, 1}\n"
             "main:@5 = reshape[dims={1, 36}](main:@4) -> float_type, {1, 36}, {36, 1}\n"
             "main:@6 = dot(main:@5,main:@0) -> float_type, {1, 8}, {8, 1}\n"
             "main:@7 = @return(main:@6)\n",
             v, w);
    must(migraphx_program_parse(&p, text, strlen(text)));
    return p;
}

static float x_at(int i)
{
    return (float)((i * 11 % 23) - 11) / 8;
}

// The definition, in double.
static void expect(double *y)
{
    for (int k = 0; k < RESULTS; k++)
        y[k] = 0;
    for (int at = 0; at < FLAT; at++) {
        const int o = at / (WIDTH * WIDTH), r = at / WIDTH % WIDTH, c = at % WIDTH;
        double sum = 0;
        for (int i = 0; i < IN * 9; i++)
            sum += w_at(o * IN * 9 + i) *
                   x_at(i / 9 * SIZE * SIZE + (r + i / 3 % 3) * SIZE + c + i % 3);
        for (int k = 0; k < RESULTS; k++)
            y[k] += (sum > 0 ? sum : 0) * v_at(at * RESULTS + k);
    }
}

static bool gives_the_answer(migraphx_program_t p)
{
    double y[RESULTS], want[RESULTS];
    float x[IN * SIZE * SIZE];
    migraphx_arguments_t results = NULL;
    const_migraphx_argument_t result;
    for (int i = 0; i < IN * SIZE * SIZE; i++)
        x[i] = x_at(i);
    migraphx_program_parameters_t params = one_parameter("x", 4, SIZES(1, 2, 5, 5), x);
    bool good = migraphx_program_run(&results, p, params) == migraphx_status_success;
    expect(want);
    if (good) {
        must(migraphx_arguments_get(&result, results, 0));
        must(migraphx_argument_values(y, RESULTS, result));
    }
    for (int i = 0; good && i < RESULTS; i++) // values of some 1/1024, sums of 36 of them: exact
        good = fabs(y[i] - want[i]) <= 1e-4;
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    return good;
}

static migraphx_file_options_t msgpack(void)
{
    migraphx_file_options_t options;
    must(migraphx_file_options_create(&options));
    return options;
}

static void compile_threads(migraphx_program_t p, const char *isa, int threads)
{
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, "cpu"));
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_threads(options, threads));
    must(migraphx_compile_options_set_isa(options, isa));
    must(migraphx_program_compile(p, target, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
}

static void compile_one_thread(migraphx_program_t p, const char *isa)
{
    compile_threads(p, isa, 1);
}

// What explain says after these words: a number; -1 when it does not say them.
static long explained(migraphx_program_t p, const char *words)
{
    char *text;
    must(migraphx_program_explain(&text, p));
    const char *at = strstr(text, words);
    const long number = at ? strtol(at + strlen(words), NULL, 10) : -1;
    migraphx_string_destroy(text);
    return number;
}
