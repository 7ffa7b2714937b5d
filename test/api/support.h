// SPDX-License-Identifier: MIT
// What the tests of the C interface share: checks on statuses and a few makers.
#pragma once

#include <migraphx/extensions.h>

#include "check.h"

static inline const char *last_error(void)
{
    const char *text = "";
    migraphx_get_last_error(&text);
    return text;
}

// The call succeeds.
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != migraphx_status_success)                                                     \
            CHECK_FAIL("%s: %s", #call, last_error());                                             \
    } while (0)

// The call fails with this status and this text.
#define FAILS(call, status, text)                                                                  \
    do {                                                                                           \
        CHECK_INT(call, status);                                                                   \
        CHECK_TEXT(last_error(), text);                                                            \
    } while (0)

#define SIZES(...) ((size_t[]){__VA_ARGS__})

// Makers end the program when they fail: what they make is not what the test is about.
static inline void must(migraphx_status status)
{
    if (status != migraphx_status_success) {
        printf("support: %s\n", last_error());
        exit(2);
    }
}

static inline migraphx_shape_t make_shape(migraphx_shape_datatype_t type, size_t rank,
                                          const size_t *lens)
{
    migraphx_shape_t shape;
    must(migraphx_shape_create(&shape, type, (size_t *)lens, rank));
    return shape;
}

static inline migraphx_instruction_t add(migraphx_module_t m, const char *name, const char *attrs,
                                         migraphx_instruction_t a, migraphx_instruction_t b)
{
    migraphx_operation_t op;
    migraphx_instructions_t args;
    migraphx_instruction_t ins;
    const_migraphx_instruction_t list[] = {a, b};
    must(migraphx_operation_create_json(&op, name, attrs));
    must(migraphx_instructions_create(&args, list, b ? 2 : a ? 1 : 0));
    must(migraphx_module_add_instruction(&ins, m, op, args));
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    return ins;
}

static inline void add_return(migraphx_module_t m, migraphx_instruction_t a)
{
    migraphx_instructions_t args;
    migraphx_instruction_t ins;
    must(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&a, 1));
    must(migraphx_module_add_return(&ins, m, args));
    migraphx_instructions_destroy(args);
    migraphx_instruction_destroy(ins);
}

static inline void compile_for(migraphx_program_t p, const char *target_name)
{
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, target_name));
    must(migraphx_compile_options_create(&options));
    must(migraphx_program_compile(p, target, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
}

// Parameters with one argument over a buffer of floats.
static inline migraphx_program_parameters_t one_parameter(const char *name, size_t rank,
                                                          const size_t *lens, float *data)
{
    migraphx_program_parameters_t params;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, rank, lens);
    migraphx_argument_t argument;
    must(migraphx_argument_create(&argument, shape, data));
    must(migraphx_program_parameters_create(&params));
    must(migraphx_program_parameters_add(params, name, argument));
    migraphx_argument_destroy(argument);
    migraphx_shape_destroy(shape);
    return params;
}
