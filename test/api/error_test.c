// SPDX-License-Identifier: MIT
// What goes wrong is said: status and text of every kind of misuse that users meet.
#include <errno.h>
#include <pthread.h>

#include "api/support.h"

static migraphx_program_t make_relu(migraphx_module_t *m)
{
    migraphx_program_t p;
    migraphx_instruction_t x, y;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(2, 3));
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(m, p));
    must(migraphx_module_add_parameter(&x, *m, "x", shape));
    y = add(*m, "relu", NULL, x, NULL);
    add_return(*m, y);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    migraphx_shape_destroy(shape);
    return p;
}

static migraphx_program_parameters_t integers(const char *name, size_t rank, const size_t *lens,
                                              int32_t *data)
{
    migraphx_program_parameters_t params;
    migraphx_shape_t shape = make_shape(migraphx_shape_int32_type, rank, lens);
    migraphx_argument_t argument;
    must(migraphx_argument_create(&argument, shape, data));
    must(migraphx_program_parameters_create(&params));
    must(migraphx_program_parameters_add(params, name, argument));
    migraphx_argument_destroy(argument);
    migraphx_shape_destroy(shape);
    return params;
}

CASE(unknown_names)
{
    migraphx_target_t target;
    migraphx_operation_t op;
    migraphx_file_options_t file;
    CHECK_INT(migraphx_target_create(&target, "tpu"), migraphx_status_unknown_target);
    CHECK(
        strstr(last_error(), "Requested target 'tpu' is not loaded or not supported; there are:"));
    FAILS(migraphx_operation_create(&op, "no_such", NULL), migraphx_status_unknown_error,
          "Operator not found: no_such");
    FAILS(migraphx_operation_create(&op, "@return", NULL), migraphx_status_unknown_error,
          "Operator not found: @return");
    CHECK_INT(migraphx_operation_create(&op, "concat", "{axes: %i}", 1),
              migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "No key 'axes' in concat"));
    OK(migraphx_file_options_create(&file));
    FAILS(migraphx_file_options_set_file_format(file, "xml"), migraphx_status_bad_param,
          "Unknown format: xml");
    migraphx_file_options_destroy(file);
}

CASE(runs_check_their_parameters)
{
    migraphx_module_t m;
    migraphx_program_t p = make_relu(&m);
    migraphx_arguments_t results;
    float data[6] = {0};
    migraphx_program_parameters_t good = one_parameter("x", 2, SIZES(2, 3), data);
    migraphx_program_parameters_t other = one_parameter("y", 2, SIZES(2, 3), data);
    migraphx_program_parameters_t wrong = one_parameter("x", 2, SIZES(3, 2), data);
    migraphx_program_parameters_t none;
    migraphx_program_parameters_t ints = integers("x", 2, SIZES(2, 3), (int32_t[6]){0});
    OK(migraphx_program_parameters_create(&none));
    compile_for(p, "ref");
    FAILS(migraphx_program_run(&results, p, other), migraphx_status_unknown_error,
          "Parameter not found: x; given: \"y\"");
    FAILS(migraphx_program_run(&results, p, none), migraphx_status_unknown_error,
          "Parameter not found: x; none was given");
    FAILS(migraphx_program_run(&results, p, ints), migraphx_status_unknown_error,
          "Incorrect shape {int32_type, {2, 3}, {3, 1}} for parameter: x should be: float_type, "
          "{2, 3}, {3, 1}; its values are of type int32_type and float_type is wanted: convert "
          "them before the run");
    FAILS(migraphx_program_run(&results, p, wrong), migraphx_status_unknown_error,
          "Incorrect shape {float_type, {3, 2}, {2, 1}} for parameter: x should be: float_type, "
          "{2, 3}, {3, 1}");
    OK(migraphx_program_run(&results, p, good));
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(ints);
    migraphx_program_parameters_destroy(none);
    migraphx_program_parameters_destroy(good);
    migraphx_program_parameters_destroy(other);
    migraphx_program_parameters_destroy(wrong);
    migraphx_program_destroy(p);
}

CASE(a_program_is_compiled_once_and_then_fixed)
{
    migraphx_module_t m;
    migraphx_program_t p = make_relu(&m);
    migraphx_target_t target;
    migraphx_compile_options_t options;
    migraphx_instruction_t ins;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(1));
    compile_for(p, "ref");
    OK(migraphx_target_create(&target, "ref"));
    OK(migraphx_compile_options_create(&options));
    FAILS(migraphx_program_compile(p, target, options), migraphx_status_unknown_error,
          "the program is compiled already, for target \"ref\"");
    FAILS(migraphx_quantize_fp16(p), migraphx_status_bad_param,
          "the program is compiled already: quantize it first, then compile it");
    OK(migraphx_program_get_main_module(&m, p));
    FAILS(migraphx_module_add_parameter(&ins, m, "z", shape), migraphx_status_unknown_error,
          "module \"main\" cannot change: its program is compiled");
    migraphx_shape_destroy(shape);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_program_destroy(p);
}

CASE(a_failed_instruction_leaves_the_module_usable)
{
    migraphx_module_t m;
    migraphx_program_t p = make_relu(&m);
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(5));
    migraphx_instruction_t a, b, ins;
    migraphx_operation_t op;
    migraphx_instructions_t args;
    OK(migraphx_module_add_parameter(&a, m, "a", shape));
    FAILS(migraphx_module_add_parameter(&ins, m, "a", shape), migraphx_status_unknown_error,
          "module \"main\" has a parameter a already");
    b = add(m, "multibroadcast", "{out_lens: [2, 5]}", a, NULL);
    OK(migraphx_operation_create(&op, "add", NULL));
    OK(migraphx_instructions_create(&args, (const const_migraphx_instruction_t[]){a, b}, 2));
    CHECK_INT(migraphx_module_add_instruction(&ins, m, op, args), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "add: Dimensions do not match"));
    migraphx_instruction_t good = add(m, "neg", NULL, b, NULL);
    OK(migraphx_program_verify(p));
    migraphx_instruction_destroy(good);
    migraphx_instruction_destroy(a);
    migraphx_instruction_destroy(b);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    migraphx_shape_destroy(shape);
    migraphx_program_destroy(p);
}

CASE(instructions_stay_in_their_program)
{
    migraphx_module_t m, n;
    migraphx_program_t p = make_relu(&m), q = make_relu(&n);
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(5));
    migraphx_instruction_t a, ins;
    migraphx_operation_t op;
    migraphx_instructions_t args;
    OK(migraphx_module_add_parameter(&a, m, "a", shape));
    OK(migraphx_operation_create(&op, "neg", NULL));
    OK(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)&a, 1));
    FAILS(migraphx_module_add_instruction(&ins, n, op, args), migraphx_status_unknown_error,
          "argument 0 is an instruction of another program");
    migraphx_instruction_destroy(a);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    migraphx_shape_destroy(shape);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
}

CASE(nonsense_sizes)
{
    migraphx_shape_t shape;
    migraphx_dynamic_dimension_t dim;
    size_t huge[] = {SIZE_MAX / 2, 4}, many[20] = {1}, index;
    CHECK_INT(migraphx_shape_create(&shape, migraphx_shape_float_type, huge, 2),
              migraphx_status_unknown_error);
    CHECK_INT(migraphx_shape_create(&shape, migraphx_shape_float_type, many, 20),
              migraphx_status_bad_param);
    CHECK_INT(migraphx_shape_create(&shape, (migraphx_shape_datatype_t)77, many, 1),
              migraphx_status_bad_param);
    CHECK_INT(
        migraphx_shape_create_with_strides(&shape, migraphx_shape_float_type, many, 2, many, 1),
        migraphx_status_bad_param);
    FAILS(migraphx_dynamic_dimension_create_min_max(&dim, 5, 4), migraphx_status_bad_param,
          "dynamic dimension: min 5 is above max 4");
    shape = make_shape(migraphx_shape_float_type, 1, SIZES(3));
    CHECK_INT(migraphx_shape_index(&index, shape, 3), migraphx_status_bad_param);
    migraphx_shape_destroy(shape);
}

static int last_errno(void)
{
    int number = -1;
    must(migraphx_get_last_errno(&number));
    return number;
}

// Files of another kind than the call's are told apart by their first bytes.
CASE(files_for_another_call)
{
    static const char onnx[] = "\x08\x08\x12\x03pyt\x3a\x40";
    static const char saved[] = "\x84\xa7version\x05\xa4more";
    static const struct {
        const char *bytes, *parse, *load;
        size_t size;
    } rows[] = {
        {onnx, "the file ends early: at byte 9 of 9", "but an ONNX model (parse_onnx reads those",
         9},
        {saved, "but a saved program (load reads those)", "the file ends within", 14},
        {"{\"version\":5}", "but a saved program in JSON", "but a saved program in JSON", 13},
        {"", "it is empty", "but an empty file", 0},
        {"\x93NUMPY\x01", "but a NumPy array", "but a NumPy array", 7},
        {"GGUF\x03", "but weights in GGUF", "but weights in GGUF", 5},
        {"version https://git-lfs.github.com", "git lfs pull", "git lfs pull", 34},
    };
    migraphx_onnx_options_t options;
    migraphx_file_options_t file;
    migraphx_program_t p;
    OK(migraphx_onnx_options_create(&options));
    OK(migraphx_file_options_create(&file));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(migraphx_parse_onnx_buffer(&p, rows[i].bytes, rows[i].size, options),
                  migraphx_status_unknown_error);
        if (!strstr(last_error(), rows[i].parse))
            CHECK_FAIL("%s", last_error());
        CHECK_INT(migraphx_load_buffer(&p, rows[i].bytes, rows[i].size, file),
                  migraphx_status_unknown_error);
        if (!strstr(last_error(), rows[i].load))
            CHECK_FAIL("%s", last_error());
    }
    migraphx_onnx_options_destroy(options);
    migraphx_file_options_destroy(file);
}

CASE(models_that_cannot_be_read)
{
    migraphx_onnx_options_t options;
    migraphx_program_t p;
    migraphx_dynamic_dimension_t range;
    OK(migraphx_onnx_options_create(&options));
    CHECK_INT(migraphx_parse_onnx(&p, "/no/such/file.onnx", options),
              migraphx_status_unknown_error);
    CHECK_TEXT(last_error(), "/no/such/file.onnx: No such file or directory");
    CHECK_INT(last_errno(), ENOENT);
    CHECK_INT(migraphx_parse_onnx(&p, "/tmp", options), migraphx_status_unknown_error);
    CHECK_TEXT(last_error(), "/tmp: is a directory, not a regular file");
    CHECK_INT(last_errno(), 0);
    CHECK_INT(migraphx_parse_onnx_buffer(&p, "\xff\xff\xff\xff", 4, options),
              migraphx_status_unknown_error);
    CHECK(last_error()[0]);
    OK(migraphx_dynamic_dimension_create_min_max(&range, 1, 4));
    OK(migraphx_onnx_options_set_default_dyn_dim_value(options, range));
    OK(migraphx_onnx_options_set_default_dim_value(options, 2));
    FAILS(migraphx_parse_onnx(&p, "/no/such/file.onnx", options), migraphx_status_unknown_error,
          "both a default dimension value and a default dynamic dimension are set");
    migraphx_dynamic_dimension_destroy(range);
    migraphx_onnx_options_destroy(options);
}

static void *other_thread(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)(last_error()[0] == '\0');
}

CASE(texts_belong_to_their_thread)
{
    pthread_t thread;
    void *empty = NULL;
    CHECK_INT(migraphx_shape_create(NULL, migraphx_shape_float_type, NULL, 0), 1);
    CHECK_INT(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &empty);
    CHECK(empty != NULL);
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(3));
    migraphx_shape_destroy(shape); // successes do not touch the text
    CHECK_TEXT(last_error(), "migraphx_shape_create: out is NULL");
}

TEST_MAIN(ROW(unknown_names) ROW(runs_check_their_parameters)
              ROW(a_program_is_compiled_once_and_then_fixed)
                  ROW(a_failed_instruction_leaves_the_module_usable)
                      ROW(instructions_stay_in_their_program) ROW(nonsense_sizes)
                          ROW(models_that_cannot_be_read) ROW(files_for_another_call)
                              ROW(texts_belong_to_their_thread))
