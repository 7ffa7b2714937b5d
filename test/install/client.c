// SPDX-License-Identifier: MIT
// What a C program needs of an installation: header, library, and a result. Prints relu(-1 2) =
// 0 2.
#include <migraphx/migraphx.h>
#include <stdio.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != migraphx_status_success) {                                                   \
            fprintf(stderr, "%s failed\n", #call);                                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int build(migraphx_program_t program, const_migraphx_shape_t shape)
{
    migraphx_module_t main_module;
    migraphx_instruction_t x, y;
    migraphx_instructions_t inputs;
    migraphx_operation_t relu;
    CHECK(migraphx_program_get_main_module(&main_module, program));
    CHECK(migraphx_module_add_parameter(&x, main_module, "x", shape));
    const_migraphx_instruction_t list[] = {x};
    CHECK(migraphx_instructions_create(&inputs, list, 1));
    CHECK(migraphx_operation_create(&relu, "relu", NULL));
    CHECK(migraphx_module_add_instruction(&y, main_module, relu, inputs));
    migraphx_operation_destroy(relu);
    migraphx_instructions_destroy(inputs);
    migraphx_instruction_destroy(y);
    migraphx_instruction_destroy(x);
    return 0;
}

static int run(migraphx_program_t program, const_migraphx_shape_t shape)
{
    float values[2] = {-1, 2};
    char *out;
    migraphx_target_t target;
    migraphx_compile_options_t options;
    migraphx_program_parameters_t params;
    migraphx_argument_t x;
    migraphx_arguments_t results;
    const_migraphx_argument_t y;
    CHECK(migraphx_target_create(&target, "cpu"));
    CHECK(migraphx_compile_options_create(&options));
    CHECK(migraphx_program_compile(program, target, options));
    CHECK(migraphx_argument_create(&x, shape, values));
    CHECK(migraphx_program_parameters_create(&params));
    CHECK(migraphx_program_parameters_add(params, "x", x));
    CHECK(migraphx_program_run(&results, program, params));
    CHECK(migraphx_arguments_get(&y, results, 0));
    CHECK(migraphx_argument_buffer(&out, y));
    printf("%g %g\n", (double)((float *)out)[0], (double)((float *)out)[1]);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_argument_destroy(x);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    return 0;
}

int main(void)
{
    size_t lengths[] = {2};
    migraphx_shape_t shape;
    migraphx_program_t program;
    CHECK(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 1));
    CHECK(migraphx_program_create(&program));
    const int failed = build(program, shape) || run(program, shape);
    migraphx_program_destroy(program);
    migraphx_shape_destroy(shape);
    return failed;
}
