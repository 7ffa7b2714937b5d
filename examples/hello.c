// SPDX-License-Identifier: MIT
// Reads one handwritten digit: load a model, compile it, run it, print the answer. From the root of
// the sources, after make:
//
//   cc examples/hello.c -Iinclude -Lbuild/lib -Wl,-rpath,$PWD/build/lib -lmigraphx_c -o hello
//   ./hello examples/digits/digits.onnx
#include <migraphx/extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// A four; draw another one. The darker a character, the nearer its pixel is to 1.
static const char picture[] = "   .#   "
                              "   =+   "
                              "   %-:. "
                              "  =% ++ "
                              " -@* @- "
                              " :%@#@. "
                              "   :%*  "
                              "   .@:  ";
static const char ink[] = " .:-=+*#%@";

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "examples/digits/digits.onnx";
    migraphx_onnx_options_t reading;
    migraphx_program_t program;
    check(migraphx_onnx_options_create(&reading));
    check(migraphx_parse_onnx(&program, path, reading));

    migraphx_target_t cpu;
    migraphx_compile_options_t options;
    check(migraphx_target_create(&cpu, "cpu"));
    check(migraphx_compile_options_create(&options));
    check(migraphx_program_compile(program, cpu, options));

    float pixels[64];
    size_t lengths[] = {1, 1, 8, 8};
    for (int i = 0; i < 64; i++)
        pixels[i] = (float)(strchr(ink, picture[i]) - ink) / 9;
    migraphx_shape_t shape;
    migraphx_argument_t image; // borrows the pixels
    migraphx_program_parameters_t parameters;
    check(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 4));
    check(migraphx_argument_create(&image, shape, pixels));
    check(migraphx_program_parameters_create(&parameters));
    check(migraphx_program_parameters_add(parameters, "image", image));

    migraphx_arguments_t results;
    const_migraphx_argument_t logits; // belongs to the results
    char *data;
    check(migraphx_program_run(&results, program, parameters));
    check(migraphx_arguments_get(&logits, results, 0));
    check(migraphx_argument_buffer(&data, logits));
    const float *scores = (const float *)(void *)data;
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = scores[i] > scores[best] ? i : best;
    printf("this is a %d\n", best);

    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(parameters);
    migraphx_argument_destroy(image);
    migraphx_shape_destroy(shape);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(cpu);
    migraphx_program_destroy(program);
    migraphx_onnx_options_destroy(reading);
    return 0;
}
