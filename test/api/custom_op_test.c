// SPDX-License-Identifier: MIT
// Custom operators: a sigmoid with an allocation as its last input, and callbacks that fail.
#include "api/support.h"

struct sigmoid {
    int *alive; // counts copies
    double scale;
};

static migraphx_status copy_sigmoid(void **out, void *input)
{
    struct sigmoid *copy = malloc(sizeof *copy);
    if (!copy)
        return migraphx_status_unknown_error;
    *copy = *(struct sigmoid *)input;
    ++*copy->alive;
    *out = copy;
    return migraphx_status_success;
}

static migraphx_status delete_sigmoid(void *input)
{
    --*((struct sigmoid *)input)->alive;
    free(input);
    return migraphx_status_success;
}

static migraphx_status shape_of(migraphx_shape_t out, void *obj, char *message, size_t size,
                                migraphx_shapes_t inputs)
{
    size_t count;
    const_migraphx_shape_t last;
    (void)obj;
    must(migraphx_shapes_size(&count, inputs));
    if (count != 2) {
        snprintf(message, size, "op must have two inputs");
        return migraphx_status_bad_param;
    }
    must(migraphx_shapes_get(&last, inputs, 1));
    return migraphx_shape_assign_to(out, last);
}

static migraphx_status compute(migraphx_argument_t out, void *obj, char *message, size_t size,
                               migraphx_context_t context, migraphx_shape_t output,
                               migraphx_arguments_t inputs)
{
    const_migraphx_argument_t x, y;
    size_t count;
    char *from, *to;
    must(migraphx_context_finish(context));
    must(migraphx_shape_elements(&count, output));
    must(migraphx_arguments_get(&x, inputs, 0));
    must(migraphx_arguments_get(&y, inputs, 1));
    must(migraphx_argument_buffer(&from, x));
    must(migraphx_argument_buffer(&to, y));
    for (size_t i = 0; i < count; i++) {
        const float v = ((const float *)(const void *)from)[i];
        if (v < 0) {
            snprintf(message, size, "element %zu is negative", i);
            return migraphx_status_unknown_error;
        }
        ((float *)(void *)to)[i] = (float)(((struct sigmoid *)obj)->scale / (1 + exp(-(double)v)));
    }
    return migraphx_argument_assign_to(out, y);
}

static int alive;

static void register_sigmoid(void)
{
    struct sigmoid object = {&alive, 2};
    migraphx_experimental_custom_op_t op;
    must(migraphx_experimental_custom_op_create(&op, &object, copy_sigmoid, delete_sigmoid,
                                                "sigmoid_custom_op", "sigmoid_custom_op"));
    must(migraphx_experimental_custom_op_set_compute(op, compute));
    must(migraphx_experimental_custom_op_set_compute_shape(op, shape_of));
    must(migraphx_experimental_custom_op_register(op));
    migraphx_experimental_custom_op_destroy(op);
}

static migraphx_program_t make_net(void)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_instruction_t x, room, y, z;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(3));
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    must(migraphx_module_add_parameter(&x, m, "x", shape));
    must(migraphx_module_add_allocation(&room, m, shape));
    y = add(m, "sigmoid_custom_op", NULL, x, room);
    z = add(m, "neg", NULL, y, NULL);
    add_return(m, z);
    migraphx_instruction_t all[] = {x, room, y, z};
    for (int i = 0; i < 4; i++)
        migraphx_instruction_destroy(all[i]);
    migraphx_shape_destroy(shape);
    return p;
}

CASE(computes_in_the_middle_of_a_program)
{
    register_sigmoid();
    migraphx_program_t p = make_net();
    compile_for(p, "ref");
    float data[3] = {0, 1, 2};
    migraphx_program_parameters_t params = one_parameter("x", 1, SIZES(3), data);
    for (int round = 0; round < 2; round++) { // a run leaves nothing behind
        migraphx_arguments_t results;
        const_migraphx_argument_t result;
        double values[3];
        OK(migraphx_program_run(&results, p, params));
        OK(migraphx_arguments_get(&result, results, 0));
        OK(migraphx_argument_values(values, 3, result));
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(values[i], -2 / (1 + exp(-data[i])), 1e-6);
        migraphx_arguments_destroy(results);
    }
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
}

CASE(failing_callbacks_give_their_text)
{
    register_sigmoid();
    migraphx_program_t p = make_net();
    migraphx_module_t m;
    migraphx_instruction_t ins;
    migraphx_operation_t op;
    migraphx_instructions_t none;
    OK(migraphx_program_get_main_module(&m, p));
    OK(migraphx_operation_create(&op, "sigmoid_custom_op", NULL));
    OK(migraphx_instructions_create(&none, NULL, 0));
    FAILS(migraphx_module_add_instruction(&ins, m, op, none), migraphx_status_unknown_error,
          "Error in compute_shape of: sigmoid_custom_op: op must have two inputs");
    compile_for(p, "ref");
    float data[3] = {0, 1, -2};
    migraphx_program_parameters_t params = one_parameter("x", 1, SIZES(3), data);
    migraphx_arguments_t results;
    CHECK_INT(migraphx_program_run(&results, p, params), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "Error in compute of: sigmoid_custom_op: element 2 is negative"));
    migraphx_program_parameters_destroy(params);
    migraphx_instructions_destroy(none);
    migraphx_operation_destroy(op);
    migraphx_program_destroy(p);
}

CASE(objects_are_copied_and_deleted)
{
    struct sigmoid object = {&alive, 1};
    migraphx_experimental_custom_op_t op, other;
    const int before = alive;
    OK(migraphx_experimental_custom_op_create(&op, &object, copy_sigmoid, delete_sigmoid, "type",
                                              "unregistered"));
    CHECK_INT(alive, before + 1);
    OK(migraphx_experimental_custom_op_create(&other, NULL, NULL, NULL, "type", "empty"));
    OK(migraphx_experimental_custom_op_assign_to(other, op));
    CHECK_INT(alive, before + 2);
    migraphx_experimental_custom_op_destroy(op);
    migraphx_experimental_custom_op_destroy(other);
    CHECK_INT(alive, before);
    migraphx_operation_t none;
    CHECK_INT(migraphx_operation_create(&none, "unregistered", NULL),
              migraphx_status_unknown_error);
}

static migraphx_status bad_alias(size_t *out, size_t *out_size, void *obj, char *message,
                                 size_t size, migraphx_shapes_t inputs)
{
    (void)obj;
    (void)message;
    (void)size;
    (void)inputs;
    out[0] = 5;
    *out_size = 1;
    return migraphx_status_success;
}

static migraphx_status no_answer(bool *out, void *obj, char *message, size_t size)
{
    (void)out;
    (void)obj;
    snprintf(message, size, "ask later");
    return migraphx_status_unknown_error;
}

CASE(answers_are_checked)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_experimental_custom_op_t custom;
    migraphx_operation_t op;
    migraphx_instructions_t none;
    migraphx_instruction_t ins;
    OK(migraphx_program_create(&p));
    OK(migraphx_program_get_main_module(&m, p));
    OK(migraphx_instructions_create(&none, NULL, 0));
    OK(migraphx_experimental_custom_op_create(&custom, NULL, NULL, NULL, "odd_type", "odd"));
    OK(migraphx_experimental_custom_op_register(custom));
    OK(migraphx_operation_create(&op, "odd", NULL));
    FAILS(migraphx_module_add_instruction(&ins, m, op, none), migraphx_status_unknown_error,
          "compute_shape function is missing.");
    migraphx_operation_destroy(op);
    OK(migraphx_experimental_custom_op_set_compute_shape(custom, shape_of));
    OK(migraphx_experimental_custom_op_set_output_alias(custom, bad_alias));
    OK(migraphx_experimental_custom_op_register(custom)); // the later one wins
    OK(migraphx_operation_create(&op, "odd", NULL));
    FAILS(migraphx_module_add_instruction(&ins, m, op, none), migraphx_status_unknown_error,
          "odd: output alias 5, but there are 0 inputs");
    migraphx_operation_destroy(op);
    OK(migraphx_experimental_custom_op_set_output_alias(custom, NULL));
    OK(migraphx_experimental_custom_op_set_runs_on_offload_target(custom, no_answer));
    OK(migraphx_experimental_custom_op_register(custom));
    OK(migraphx_operation_create(&op, "odd", NULL));
    FAILS(migraphx_module_add_instruction(&ins, m, op, none), migraphx_status_unknown_error,
          "Error in runs_on_offload_target of: odd_type: ask later");
    migraphx_operation_destroy(op);
    migraphx_experimental_custom_op_destroy(custom);
    migraphx_instructions_destroy(none);
    migraphx_program_destroy(p);
}

TEST_MAIN(ROW(computes_in_the_middle_of_a_program) ROW(failing_callbacks_give_their_text)
              ROW(objects_are_copied_and_deleted) ROW(answers_are_checked))
