// SPDX-License-Identifier: MIT
// Generates text with a decoder that keeps a key/value cache, and says how many tokens per second
// that gives. From the root of the sources, after make:
//
//   python examples/generate/decoder.py decoder.onnx
//   build/bin/generate decoder.onnx [steps]
//
// The cache grows by one row in every step: a size that no run before had. What a run gives is
// handed to the next one as it is.
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include <migraphx/extensions.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 256 }; // inputs

// Every call returns a status; the text of the last failure says what, where and why.
static void check(migraphx_status status)
{
    const char *why = "";
    if (status == migraphx_status_success)
        return;
    migraphx_get_last_error(&why);
    fprintf(stderr, "error: %s\n", why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static migraphx_program_t read_model(const char *path)
{
    migraphx_onnx_options_t reading;
    migraphx_target_t cpu;
    migraphx_compile_options_t options;
    migraphx_program_t program;
    check(migraphx_onnx_options_create(&reading));
    check(migraphx_onnx_options_set_dynamic_dims(reading, true));
    check(migraphx_parse_onnx(&program, path, reading));
    check(migraphx_target_create(&cpu, "cpu"));
    check(migraphx_compile_options_create(&options));
    check(migraphx_program_compile(program, cpu, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(cpu);
    migraphx_onnx_options_destroy(reading);
    return program;
}

// A cache without tokens: the axis that is free has length 0.
static migraphx_argument_t empty(const_migraphx_shape_t of)
{
    migraphx_dynamic_dimensions_t dims;
    size_t rank, lens[16];
    migraphx_shape_t shape;
    migraphx_argument_t argument;
    check(migraphx_shape_dyn_dims(&dims, of));
    check(migraphx_dynamic_dimensions_size(&rank, dims));
    for (size_t i = 0; i < rank && i < 16; i++) {
        const_migraphx_dynamic_dimension_t dim;
        size_t least, most;
        check(migraphx_dynamic_dimensions_get(&dim, dims, i));
        check(migraphx_dynamic_dimension_range(&least, &most, dim));
        lens[i] = least == most ? most : 0;
    }
    check(migraphx_shape_create(&shape, migraphx_shape_float_type, lens, rank));
    check(migraphx_argument_create_empty(&argument, shape));
    migraphx_shape_destroy(shape);
    migraphx_dynamic_dimensions_destroy(dims);
    return argument;
}

// The caches before the first token: past[i] goes with result i, which is called so without "past_".
static size_t begin(migraphx_program_t program, char names[MOST][64], migraphx_argument_t *past)
{
    migraphx_program_parameter_shapes_t shapes;
    size_t count;
    check(migraphx_program_get_parameter_shapes(&shapes, program));
    check(migraphx_program_output_names_size(&count, program));
    for (size_t i = 1; i < count && i < MOST; i++) { // result 0 is the logits
        const char *name;
        const_migraphx_shape_t shape;
        check(migraphx_program_output_name(&name, program, i));
        snprintf(names[i], sizeof names[i], "past_%s", name);
        check(migraphx_program_parameter_shapes_get(&shape, shapes, names[i]));
        past[i] = empty(shape);
    }
    migraphx_program_parameter_shapes_destroy(shapes);
    return count < MOST ? count : MOST;
}

static migraphx_arguments_t step(migraphx_program_t program, int64_t token, size_t count,
                                 char names[MOST][64], migraphx_argument_t *past)
{
    size_t lens[] = {1, 1};
    migraphx_shape_t shape;
    migraphx_argument_t id;
    migraphx_program_parameters_t parameters;
    migraphx_arguments_t results;
    check(migraphx_shape_create(&shape, migraphx_shape_int64_type, lens, 2));
    check(migraphx_argument_create(&id, shape, &token));
    check(migraphx_program_parameters_create(&parameters));
    check(migraphx_program_parameters_add(parameters, "id", id));
    for (size_t i = 1; i < count; i++) {
        check(migraphx_program_parameters_add(parameters, names[i], past[i]));
        migraphx_argument_destroy(past[i]); // the parameters hold it now, and nobody else
    }
    check(migraphx_program_run(&results, program, parameters));
    migraphx_program_parameters_destroy(parameters);
    migraphx_argument_destroy(id);
    migraphx_shape_destroy(shape);
    for (size_t i = 1; i < count; i++)
        check(migraphx_arguments_take(&past[i], results, i));
    return results;
}

// The token with the highest score.
static int64_t choose(migraphx_arguments_t results)
{
    const_migraphx_argument_t logits;
    const_migraphx_shape_t shape;
    size_t words;
    char *data;
    check(migraphx_arguments_get(&logits, results, 0));
    check(migraphx_argument_shape(&shape, logits));
    check(migraphx_shape_elements(&words, shape));
    check(migraphx_argument_buffer(&data, logits));
    const float *scores = (const float *)(void *)data;
    size_t best = 0;
    for (size_t i = 1; i < words; i++)
        best = scores[i] > scores[best] ? i : best;
    return (int64_t)best;
}

int main(int argc, char **argv)
{
    static char names[MOST][64];
    static migraphx_argument_t past[MOST];
    const int steps = argc > 2 ? atoi(argv[2]) : 200;
    const migraphx_program_t program = read_model(argc > 1 ? argv[1] : "decoder.onnx");
    const size_t count = begin(program, names, past);
    int64_t token = 1;
    const double start = now();
    for (int i = 0; i < steps; i++) {
        migraphx_arguments_t results = step(program, token, count, names, past);
        token = choose(results);
        migraphx_arguments_destroy(results);
        printf(i ? " %lld" : "%lld", (long long)token);
    }
    printf("\n");
    fprintf(stderr, "%.1f tokens per second\n", steps / (now() - start));
    for (size_t i = 1; i < count; i++)
        migraphx_argument_destroy(past[i]);
    migraphx_program_destroy(program);
    return 0;
}
