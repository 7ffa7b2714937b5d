// SPDX-License-Identifier: MIT
// An operator of one's own: `wrap_angle` brings angles into [-pi, pi). It is registered once, is
// then an operator like all others, and is computed by the function below wherever a program has
// it. From the root of the sources, after make:
//
//   cc examples/custom_op.c -Iinclude -Lbuild/lib -Wl,-rpath,$PWD/build/lib -lmigraphx_c -lm -o custom_op
//   ./custom_op 0.5 3.5 -7
//
// prints `wrapped twice: 1 -5.566 -1.434`: the program is wrap_angle(x) + wrap_angle(x).
#include "example.h"
#include <math.h>

// The shape of the result from the shapes of the inputs. The last input is room for the result.
static migraphx_status shape_of(migraphx_shape_t out, void *obj, char *why, size_t size,
                                migraphx_shapes_t inputs)
{
    size_t count;
    const_migraphx_shape_t room;
    (void)obj;
    DO(migraphx_shapes_size(&count, inputs));
    if (count != 2) {
        snprintf(why, size, "wrap_angle takes angles and room for the result, not %zu inputs",
                 count);
        return migraphx_status_bad_param;
    }
    DO(migraphx_shapes_get(&room, inputs, 1));
    return migraphx_shape_assign_to(out, room);
}

// Called in every run, maybe by several threads at once. A failure writes its reason into `why`.
static migraphx_status compute(migraphx_argument_t out, void *obj, char *why, size_t size,
                               migraphx_context_t context, migraphx_shape_t output,
                               migraphx_arguments_t inputs)
{
    const double turn = 2 * acos(-1.0);
    const_migraphx_argument_t angles, room;
    size_t count;
    char *from, *to;
    (void)obj;
    (void)context;
    DO(migraphx_shape_elements(&count, output));
    DO(migraphx_arguments_get(&angles, inputs, 0));
    DO(migraphx_arguments_get(&room, inputs, 1));
    DO(migraphx_argument_buffer(&from, angles));
    DO(migraphx_argument_buffer(&to, room));
    for (size_t i = 0; i < count; i++) {
        const float angle = ((const float *)(const void *)from)[i];
        if (!isfinite(angle)) {
            snprintf(why, size, "angle %zu is %g", i, (double)angle);
            return migraphx_status_unknown_error;
        }
        ((float *)(void *)to)[i] = (float)(angle - turn * floor(angle / turn + 0.5));
    }
    return migraphx_argument_assign_to(out, room);
}

static void register_wrap_angle(void)
{
    migraphx_experimental_custom_op_t op;
    DO(migraphx_experimental_custom_op_create(&op, NULL, NULL, NULL, "wrap_angle", "wrap_angle"));
    DO(migraphx_experimental_custom_op_set_compute(op, compute));
    DO(migraphx_experimental_custom_op_set_compute_shape(op, shape_of));
    DO(migraphx_experimental_custom_op_register(op));
    migraphx_experimental_custom_op_destroy(op);
}

// Adds `name` of two operands, which stay the caller's.
static migraphx_instruction_t add(migraphx_module_t module, const char *name,
                                  migraphx_instruction_t a, migraphx_instruction_t b)
{
    const_migraphx_instruction_t operands[] = {a, b};
    migraphx_operation_t operation;
    migraphx_instructions_t list;
    migraphx_instruction_t result;
    DO(migraphx_operation_create(&operation, name, NULL));
    DO(migraphx_instructions_create(&list, operands, 2));
    DO(migraphx_module_add_instruction(&result, module, operation, list));
    migraphx_instructions_destroy(list);
    migraphx_operation_destroy(operation);
    return result;
}

// The program wrap_angle(x) + wrap_angle(x) of `count` angles, compiled for the CPU.
static migraphx_program_t make_program(const_migraphx_shape_t shape)
{
    migraphx_program_t program;
    migraphx_module_t module; // belongs to the program
    migraphx_instruction_t x, room, wrapped, sum, end;
    migraphx_instructions_t results;
    migraphx_target_t cpu;
    migraphx_compile_options_t options;
    DO(migraphx_program_create(&program));
    DO(migraphx_program_get_main_module(&module, program));
    DO(migraphx_module_add_parameter(&x, module, "x", shape));
    DO(migraphx_module_add_allocation(&room, module, shape));
    wrapped = add(module, "wrap_angle", x, room);
    sum = add(module, "add", wrapped, wrapped);
    DO(migraphx_instructions_create(&results, (const_migraphx_instruction_t[]){sum}, 1));
    DO(migraphx_module_add_return(&end, module, results));
    DO(migraphx_target_create(&cpu, "cpu"));
    DO(migraphx_compile_options_create(&options));
    DO(migraphx_program_compile(program, cpu, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(cpu);
    migraphx_instructions_destroy(results);
    migraphx_instruction_t all[] = {x, room, wrapped, sum, end};
    for (int i = 0; i < 5; i++)
        migraphx_instruction_destroy(all[i]);
    return program;
}

static void run(migraphx_program_t program, const_migraphx_shape_t shape, float *angles)
{
    migraphx_argument_t x; // borrows the angles
    migraphx_program_parameters_t parameters;
    migraphx_arguments_t results;
    const_migraphx_argument_t result; // belongs to the results
    size_t count;
    char *data;
    DO(migraphx_argument_create(&x, shape, angles));
    DO(migraphx_program_parameters_create(&parameters));
    DO(migraphx_program_parameters_add(parameters, "x", x));
    DO(migraphx_program_run(&results, program, parameters));
    DO(migraphx_arguments_get(&result, results, 0));
    DO(migraphx_argument_buffer(&data, result));
    DO(migraphx_shape_elements(&count, shape));
    printf("wrapped twice:");
    for (size_t i = 0; i < count; i++)
        printf(" %.4g", (double)((float *)(void *)data)[i]);
    puts("");
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(parameters);
    migraphx_argument_destroy(x);
}

int main(int argc, char **argv)
{
    float angles[64] = {0};
    size_t count = 0;
    for (int i = 1; i < argc && count < 64; i++)
        angles[count++] = strtof(argv[i], NULL);
    if (count == 0) {
        fprintf(stderr, "usage: custom_op ANGLE ...\n");
        return 2;
    }
    migraphx_shape_t shape;
    register_wrap_angle();
    DO(migraphx_shape_create(&shape, migraphx_shape_float_type, &count, 1));
    migraphx_program_t program = make_program(shape);
    run(program, shape, angles);
    migraphx_program_destroy(program);
    migraphx_shape_destroy(shape);
    return 0;
}
