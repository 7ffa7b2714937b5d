// SPDX-License-Identifier: MIT
// Programs built wrongly through the interface, handles used too late, objects ended in any order:
// every call answers with a status, none crashes.
#include <pthread.h>

#include "api/support.h"

static migraphx_instruction_t parameter(migraphx_module_t m, const char *name)
{
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(2, 3));
    migraphx_instruction_t x;
    must(migraphx_module_add_parameter(&x, m, name, shape));
    migraphx_shape_destroy(shape);
    return x;
}

static migraphx_program_t empty(migraphx_module_t *m)
{
    migraphx_program_t p;
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(m, p));
    return p;
}

static migraphx_status compile_status(migraphx_program_t p, const char *target_name)
{
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, target_name));
    must(migraphx_compile_options_create(&options));
    const migraphx_status status = migraphx_program_compile(p, target, options);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    return status;
}

// Everything that looks at a whole program, on one that is none: an answer is all that is asked.
static bool every_question_is_answered(migraphx_program_t p)
{
    static const char *const formats[] = {"text", "json", "py", "cpp", "graphviz"};
    char *text;
    bool equal;
    for (int i = 0; i < 5; i++)
        if (migraphx_program_format(&text, p, formats[i]) == migraphx_status_success)
            migraphx_string_destroy(text);
    migraphx_program_t copy;
    must(migraphx_program_create(&copy));
    (void)migraphx_program_equal(&equal, p, copy);
    if (migraphx_program_assign_to(copy, p) == migraphx_status_success) {
        (void)migraphx_program_sort(copy);
        (void)migraphx_program_optimize(copy);
        (void)migraphx_quantize_fp16(copy);
        (void)migraphx_program_replace_literals(copy);
        (void)migraphx_program_trim(copy, 1, 1);
    }
    migraphx_program_destroy(copy);
    return compile_status(p, "ref") != migraphx_status_success &&
           compile_status(p, "cpu") != migraphx_status_success;
}

CASE(an_instruction_that_a_pass_removed_is_no_argument)
{
    migraphx_module_t m;
    migraphx_program_t p = empty(&m);
    migraphx_instruction_t x = parameter(m, "x");
    migraphx_instruction_t dead = add(m, "relu", NULL, x, NULL);
    migraphx_instruction_t y = add(m, "neg", NULL, x, NULL);
    add_return(m, y);
    OK(migraphx_program_optimize(p)); // removes `dead`
    migraphx_operation_t op;
    migraphx_instructions_t args = NULL;
    migraphx_instruction_t late = NULL;
    OK(migraphx_operation_create(&op, "abs", NULL));
    if (migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&dead, 1) ==
            migraphx_status_success &&
        migraphx_module_add_instruction(&late, m, op, args) == migraphx_status_success) {
        add_return(m, late);
        CHECK(every_question_is_answered(p));
    }
    migraphx_instruction_destroy(late);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(dead);
    migraphx_instruction_destroy(y);
    migraphx_program_destroy(p);
}

// Four megabytes, so that memory given back is no longer there.
CASE(a_literal_that_a_pass_removed_can_be_read)
{
    enum { COUNT = 1 << 20 };
    migraphx_module_t m;
    migraphx_program_t p = empty(&m);
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(COUNT));
    float *values = calloc(COUNT, sizeof *values);
    values[COUNT - 1] = 7;
    migraphx_instruction_t a;
    migraphx_argument_t read;
    char *data;
    OK(migraphx_module_add_literal(&a, m, shape, (const char *)values));
    migraphx_instruction_t b = add(m, "neg", NULL, a, NULL);
    add_return(m, b);
    OK(migraphx_program_optimize(p)); // folds `b`: `a` goes
    OK(migraphx_instruction_literal(&read, a));
    OK(migraphx_argument_buffer(&data, read));
    CHECK(((const float *)(const void *)data)[COUNT - 1] == 7);
    migraphx_argument_destroy(read);
    migraphx_instruction_destroy(b);
    migraphx_instruction_destroy(a);
    migraphx_shape_destroy(shape);
    free(values);
    migraphx_program_destroy(p);
}

CASE(a_module_that_a_pass_removed_takes_nothing)
{
    migraphx_module_t m, unused;
    migraphx_program_t p = empty(&m);
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(1));
    migraphx_instruction_t x = parameter(m, "x"), y;
    OK(migraphx_program_create_module(&unused, p, "unused"));
    OK(migraphx_program_optimize(p));
    FAILS(migraphx_module_add_parameter(&y, unused, "y", shape), migraphx_status_unknown_error,
          "the module was removed from its program by a pass");
    migraphx_instruction_destroy(x);
    migraphx_shape_destroy(shape);
    migraphx_program_destroy(p);
}

CASE(a_return_is_no_argument)
{
    migraphx_module_t m;
    migraphx_program_t p = empty(&m);
    migraphx_instruction_t x = parameter(m, "x"), end, again;
    migraphx_instructions_t args;
    OK(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&x, 1));
    OK(migraphx_module_add_return(&end, m, args));
    migraphx_instructions_destroy(args);
    OK(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&end, 1));
    FAILS(migraphx_module_add_return(&again, m, args), migraphx_status_unknown_error,
          "argument 0 is a @return, which has no value");
    migraphx_instructions_destroy(args);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(end);
    migraphx_program_destroy(p);
}

CASE(a_list_holds_instructions_of_one_program)
{
    migraphx_module_t m, n;
    migraphx_program_t p = empty(&m), q = empty(&n);
    const_migraphx_instruction_t both[] = {parameter(m, "x"), parameter(n, "x")};
    migraphx_instructions_t args = NULL;
    migraphx_operation_t op;
    migraphx_instruction_t sum;
    migraphx_status status = migraphx_instructions_create(&args, both, 2);
    compile_for(q, "ref"); // exchanges what the second stands for
    OK(migraphx_operation_create(&op, "add", NULL));
    if (status == migraphx_status_success)
        status = migraphx_module_add_instruction(&sum, m, op, args);
    CHECK(status != migraphx_status_success);
    migraphx_operation_destroy(op);
    migraphx_instructions_destroy(args);
    migraphx_instruction_destroy((migraphx_instruction_t)both[0]);
    migraphx_instruction_destroy((migraphx_instruction_t)both[1]);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
}

CASE(values_do_not_leave_their_body)
{
    migraphx_module_t m, body;
    migraphx_program_t p = empty(&m);
    OK(migraphx_program_create_module(&body, p, "body"));
    migraphx_instruction_t x = parameter(m, "x"), inside = add(body, "neg", NULL, x, NULL);
    migraphx_instruction_t y = add(m, "add", NULL, x, inside);
    add_return(m, y);
    CHECK(every_question_is_answered(p));
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(inside);
    migraphx_instruction_destroy(y);
    migraphx_program_destroy(p);
}

// if(condition) with both branches; NULL if it is refused.
static migraphx_instruction_t add_if(migraphx_module_t m, migraphx_instruction_t condition,
                                     migraphx_module_t a, migraphx_module_t b)
{
    migraphx_operation_t op;
    migraphx_instructions_t args;
    migraphx_modules_t bodies;
    migraphx_instruction_t ins = NULL;
    must(migraphx_operation_create(&op, "if", NULL));
    must(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&condition, 1));
    must(migraphx_modules_create(&bodies, (migraphx_module_t[]){a, b}, 2));
    if (migraphx_module_add_instruction_with_mod_args(&ins, m, op, args, bodies) !=
        migraphx_status_success)
        ins = NULL;
    migraphx_modules_destroy(bodies);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    return ins;
}

CASE(bodies_do_not_contain_each_other)
{
    migraphx_module_t m, a, b;
    migraphx_program_t p = empty(&m);
    migraphx_shape_t flag = make_shape(migraphx_shape_bool_type, 1, SIZES(1));
    migraphx_instruction_t condition, x = parameter(m, "x");
    OK(migraphx_module_add_parameter(&condition, m, "c", flag));
    OK(migraphx_program_create_module(&a, p, "a"));
    OK(migraphx_program_create_module(&b, p, "b"));
    migraphx_instruction_t first = add(a, "neg", NULL, x, NULL);
    migraphx_instruction_t second = add(b, "neg", NULL, x, NULL);
    migraphx_instruction_t in_a = add_if(a, condition, b, b), in_b = add_if(b, condition, a, a);
    add_return(a, first);
    add_return(b, second);
    migraphx_instruction_t outer = add_if(m, condition, a, b);
    CHECK(in_a && in_b && outer);
    CHECK(every_question_is_answered(p));
    migraphx_instruction_destroy(condition);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(first);
    migraphx_instruction_destroy(second);
    migraphx_instruction_destroy(in_a);
    migraphx_instruction_destroy(in_b);
    migraphx_instruction_destroy(outer);
    migraphx_shape_destroy(flag);
    migraphx_program_destroy(p);
}

CASE(main_is_nobodys_body)
{
    migraphx_module_t m, a;
    migraphx_program_t p = empty(&m);
    migraphx_shape_t flag = make_shape(migraphx_shape_bool_type, 1, SIZES(1));
    migraphx_instruction_t condition, x = parameter(m, "x");
    OK(migraphx_module_add_parameter(&condition, m, "c", flag));
    OK(migraphx_program_create_module(&a, p, "a"));
    migraphx_instruction_t y = add(m, "neg", NULL, x, NULL);
    migraphx_instruction_t in_a = add_if(a, condition, m, m);
    if (in_a) {
        migraphx_instruction_t outer = add_if(m, condition, a, a);
        CHECK(!outer || every_question_is_answered(p));
        migraphx_instruction_destroy(outer);
    }
    migraphx_instruction_destroy(in_a);
    migraphx_instruction_destroy(condition);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    migraphx_shape_destroy(flag);
    migraphx_program_destroy(p);
}

CASE(an_empty_program_runs_or_says_why_not)
{
    static const char *const targets[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        migraphx_module_t m;
        migraphx_program_t p = empty(&m);
        migraphx_program_parameters_t none;
        migraphx_shapes_t shapes;
        migraphx_arguments_t results;
        OK(migraphx_program_parameters_create(&none));
        OK(migraphx_program_get_output_shapes(&shapes, p));
        if (compile_status(p, targets[i]) == migraphx_status_success &&
            migraphx_program_run(&results, p, none) == migraphx_status_success)
            migraphx_arguments_destroy(results);
        migraphx_shapes_destroy(shapes);
        migraphx_program_parameters_destroy(none);
        migraphx_program_destroy(p);
    }
}

static migraphx_program_t neg_program(const char *target)
{
    migraphx_module_t m;
    migraphx_program_t p = empty(&m);
    migraphx_instruction_t x = parameter(m, "x"), y = add(m, "neg", NULL, x, NULL);
    add_return(m, y);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    compile_for(p, target);
    return p;
}

static bool is_negated(migraphx_arguments_t results, const float *data)
{
    const_migraphx_argument_t result;
    double got[6];
    must(migraphx_arguments_get(&result, results, 0));
    must(migraphx_argument_values(got, 6, result));
    for (int i = 0; i < 6; i++)
        if (got[i] != -(double)data[i])
            return false;
    return true;
}

CASE(buffers_may_lie_anywhere)
{
    static const char *const targets[] = {"ref", "cpu"};
    const float data[6] = {1, -2, 3, 4, 5, -6};
    for (int i = 0; i < 2; i++) {
        migraphx_program_t p = neg_program(targets[i]);
        for (size_t offset = 0; offset < 5; offset++) {
            char *bytes = malloc(sizeof data + offset);
            memcpy(bytes + offset, data, sizeof data);
            migraphx_program_parameters_t params =
                one_parameter("x", 2, SIZES(2, 3), (float *)(void *)(bytes + offset));
            migraphx_arguments_t results;
            OK(migraphx_program_run(&results, p, params));
            CHECK(is_negated(results, data));
            migraphx_arguments_destroy(results);
            migraphx_program_parameters_destroy(params);
            free(bytes);
        }
        migraphx_program_destroy(p);
    }
}

CASE(strides_of_an_argument_are_honoured)
{
    static const char *const targets[] = {"ref", "cpu"};
    float column_major[6] = {1, 4, -2, 5, 3, -6}, expected[6] = {1, -2, 3, 4, 5, -6};
    for (int i = 0; i < 2; i++) {
        migraphx_program_t p = neg_program(targets[i]);
        migraphx_shape_t shape;
        migraphx_argument_t argument;
        migraphx_program_parameters_t params;
        migraphx_arguments_t results;
        OK(migraphx_shape_create_with_strides(&shape, migraphx_shape_float_type, SIZES(2, 3), 2,
                                              SIZES(1, 2), 2));
        OK(migraphx_argument_create(&argument, shape, column_major));
        OK(migraphx_program_parameters_create(&params));
        OK(migraphx_program_parameters_add(params, "x", argument));
        migraphx_argument_destroy(argument); // the list keeps its share
        migraphx_shape_destroy(shape);
        OK(migraphx_program_run(&results, p, params));
        migraphx_program_parameters_destroy(params);
        migraphx_program_destroy(p);
        CHECK(is_negated(results, expected));
        migraphx_arguments_destroy(results);
    }
}

static void count_release(void *owner)
{
    ++*(int *)owner;
}

// A result that is a parameter or a literal stays as long as somebody has it.
CASE(results_outlive_program_and_parameters)
{
    static const char *const targets[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        migraphx_module_t m;
        migraphx_program_t p = empty(&m);
        migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(2, 3));
        const float literal[6] = {7, 8, 9, 10, 11, 12};
        float data[6] = {1, 2, 3, 4, 5, 6};
        int released = 0;
        migraphx_instruction_t x = parameter(m, "x"), c, end;
        OK(migraphx_module_add_literal(&c, m, shape, (const char *)literal));
        migraphx_instructions_t args;
        OK(migraphx_instructions_create(&args, (const const_migraphx_instruction_t[]){x, c, x}, 3));
        OK(migraphx_module_add_return(&end, m, args));
        migraphx_instructions_destroy(args);
        migraphx_instruction_destroy(x);
        migraphx_instruction_destroy(c);
        migraphx_instruction_destroy(end);
        compile_for(p, targets[i]);
        migraphx_argument_t argument;
        migraphx_program_parameters_t params;
        migraphx_arguments_t results;
        OK(migraphx_argument_create_owned(&argument, shape, data, count_release, &released));
        OK(migraphx_program_parameters_create(&params));
        OK(migraphx_program_parameters_add(params, "x", argument));
        OK(migraphx_program_run(&results, p, params));
        migraphx_argument_destroy(argument);
        migraphx_program_destroy(p);
        migraphx_program_parameters_destroy(params);
        const_migraphx_argument_t result;
        double got[6];
        OK(migraphx_arguments_get(&result, results, 1));
        OK(migraphx_argument_values(got, 6, result));
        CHECK_NEAR(got[5], 12, 0);
        OK(migraphx_arguments_get(&result, results, 2));
        OK(migraphx_argument_values(got, 6, result));
        CHECK_NEAR(got[5], 6, 0);
        migraphx_arguments_destroy(results);
        CHECK_INT(released, 1);
        migraphx_shape_destroy(shape);
    }
}

// --- threads ---

static void *compile_and_run(void *user)
{
    const float data[6] = {1, -2, 3, 4, 5, -6};
    int *wrong = user;
    for (int i = 0; i < 20; i++) {
        migraphx_program_t p = neg_program(i & 1 ? "cpu" : "ref");
        migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(2, 3), (float *)data);
        migraphx_arguments_t results;
        migraphx_operation_t op;
        *wrong += migraphx_operation_create(&op, "no_such", NULL) == migraphx_status_success;
        *wrong += strcmp(last_error(), "Operator not found: no_such") != 0;
        if (migraphx_program_run(&results, p, params) != migraphx_status_success)
            ++*wrong;
        else {
            *wrong += !is_negated(results, data);
            migraphx_arguments_destroy(results);
        }
        migraphx_program_parameters_destroy(params);
        migraphx_program_destroy(p);
    }
    return NULL;
}

CASE(threads_compile_side_by_side)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, compile_and_run, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(wrong[i], 0);
}

CASE(options_beyond_the_machine)
{
    migraphx_module_t m;
    migraphx_target_t target;
    OK(migraphx_target_create(&target, "cpu"));
    for (int i = 0; i < 3; i++) {
        migraphx_program_t p = empty(&m);
        migraphx_instruction_t x = parameter(m, "x"), y = add(m, "neg", NULL, x, NULL);
        migraphx_compile_options_t options;
        float data[6] = {1, -2, 3, 4, 5, -6};
        OK(migraphx_compile_options_create(&options));
        if (i == 0)
            OK(migraphx_compile_options_set_threads(options, 4096));
        if (i == 1)
            OK(migraphx_compile_options_set_isa(options, "no such"));
        if (i == 2)
            OK(migraphx_compile_options_set_tuning_cache(options, "/no/such/folder/cache"));
        if (migraphx_program_compile(p, target, options) == migraphx_status_success) {
            CHECK(i != 1);
            migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(2, 3), data);
            migraphx_arguments_t results;
            OK(migraphx_program_run(&results, p, params));
            CHECK(is_negated(results, data));
            migraphx_arguments_destroy(results);
            migraphx_program_parameters_destroy(params);
        } else
            CHECK(last_error()[0]);
        migraphx_compile_options_destroy(options);
        migraphx_instruction_destroy(x);
        migraphx_instruction_destroy(y);
        migraphx_program_destroy(p);
    }
    migraphx_target_destroy(target);
}

// What the header says of them: no options are the defaults.
CASE(options_may_be_left_out)
{
    migraphx_module_t m;
    migraphx_target_t target;
    migraphx_program_t p = empty(&m), q = NULL;
    migraphx_instruction_t x = parameter(m, "x"), y = add(m, "neg", NULL, x, NULL);
    OK(migraphx_target_create(&target, "ref"));
    OK(migraphx_program_compile(p, target, NULL));
    CHECK(migraphx_parse_onnx(&q, "/no/such/model.onnx", NULL) != migraphx_status_success);
    CHECK(strstr(last_error(), "/no/such/model.onnx"));
    CHECK(migraphx_parse_onnx_buffer(&q, "no model", 8, NULL) != migraphx_status_success);
    CHECK(!strstr(last_error(), "NULL"));
    OK(migraphx_parse_onnx(&q, "examples/digits/digits.onnx", NULL));
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_target_destroy(target);
}

// Their bytes are the engine's own pairs of pointer and size: a caller's are read as none.
CASE(bytes_are_no_texts)
{
    migraphx_module_t m;
    migraphx_shape_datatype_t type;
    migraphx_program_t p = empty(&m);
    migraphx_instruction_t ins;
    migraphx_argument_t a;
    char bytes[32];
    memset(bytes, 'A', sizeof bytes);
    OK(migraphx_type_find(&type, "string_type"));
    migraphx_shape_t shape = make_shape(type, 1, SIZES(2)), none = make_shape(type, 1, SIZES(0));
    CHECK_INT(migraphx_argument_create(&a, shape, bytes), migraphx_status_bad_param);
    CHECK(strstr(last_error(), "migraphx_argument_create_strings"));
    CHECK_INT(migraphx_module_add_literal(&ins, m, shape, bytes), migraphx_status_bad_param);
    CHECK(strstr(last_error(), "migraphx_module_add_literal_argument"));
    OK(migraphx_module_add_literal(&ins, m, none, bytes));
    migraphx_instruction_destroy(ins);
    OK(migraphx_argument_create_strings(&a, shape, (const char *const[]){"one", "three"},
                                        SIZES(3, 5), 2));
    OK(migraphx_module_add_literal_argument(&ins, m, a));
    migraphx_argument_destroy(a);
    char *text;
    OK(migraphx_instruction_literal(&a, ins));
    OK(migraphx_argument_to_string(&text, a));
    CHECK(strstr(text, "three"));
    migraphx_string_destroy(text);
    migraphx_argument_destroy(a);
    migraphx_instruction_destroy(ins);
    migraphx_shape_destroy(shape);
    migraphx_shape_destroy(none);
    migraphx_program_destroy(p);
}

CASE(a_trace_of_nothing_has_no_result)
{
    migraphx_trace_info_t info, copy;
    const_migraphx_argument_t result = NULL;
    const char *name;
    OK(migraphx_trace_info_create(&info));
    OK(migraphx_trace_info_create(&copy));
    OK(migraphx_trace_info_assign_to(copy, info));
    CHECK_INT(migraphx_trace_info_get_result(&result, copy), migraphx_status_bad_param);
    CHECK(!result && strstr(last_error(), "of no instruction"));
    OK(migraphx_trace_info_get_name(&name, info));
    CHECK_TEXT(name, "");
    migraphx_trace_info_destroy(info);
    migraphx_trace_info_destroy(copy);
}

TEST_MAIN(ROW(an_instruction_that_a_pass_removed_is_no_argument)
              ROW(a_literal_that_a_pass_removed_can_be_read) ROW(a_return_is_no_argument)
                  ROW(a_module_that_a_pass_removed_takes_nothing)
                      ROW(a_list_holds_instructions_of_one_program)
                          ROW(values_do_not_leave_their_body) ROW(bodies_do_not_contain_each_other)
                              ROW(main_is_nobodys_body) ROW(an_empty_program_runs_or_says_why_not)
                                  ROW(buffers_may_lie_anywhere)
                                      ROW(strides_of_an_argument_are_honoured)
                                          ROW(results_outlive_program_and_parameters)
                                              ROW(threads_compile_side_by_side)
                                                  ROW(options_beyond_the_machine)
                                                      ROW(options_may_be_left_out)
                                                          ROW(bytes_are_no_texts)
                                                              ROW(a_trace_of_nothing_has_no_result))
