// SPDX-License-Identifier: MIT
// assign_to of every handle: the copy has what the original had when that is gone, onto itself it
// changes nothing, and what the copy had before is released (the leak checkers see that).
#include "api/support.h"

static const char model[] = "examples/digits/digits.onnx"; // image: {N, 1, 8, 8} to {N, 10}

static bool has(char *text, const char *part)
{
    const bool found = strstr(text, part) != NULL;
    migraphx_string_destroy(text);
    return found;
}

static migraphx_dynamic_dimension_t range(size_t min, size_t max, const char *name)
{
    migraphx_dynamic_dimension_t d;
    migraphx_optimals_t optimals, copy;
    must(migraphx_optimals_create(&optimals, SIZES(3, 2, 3), 3));
    must(migraphx_optimals_create(&copy, NULL, 0));
    must(migraphx_optimals_assign_to(copy, optimals));
    must(migraphx_optimals_destroy(optimals));
    must(migraphx_optimals_assign_to(copy, copy));
    must(migraphx_dynamic_dimension_create_min_max_optimals(&d, min, max, copy));
    must(migraphx_optimals_destroy(copy));
    must(migraphx_dynamic_dimension_set_name(d, "to be replaced"));
    must(migraphx_dynamic_dimension_set_name(d, name));
    return d;
}

CASE(dimensions)
{
    migraphx_dynamic_dimension_t d = range(1, 4, "batch"), one, other = range(7, 9, "");
    migraphx_dynamic_dimensions_t list, copy;
    const_migraphx_dynamic_dimension_t got;
    const size_t *optimals;
    const char *name;
    size_t count, min, max;
    OK(migraphx_dynamic_dimension_create_min_max(&one, 5, 5));
    OK(migraphx_dynamic_dimensions_create(&list,
                                          (const const_migraphx_dynamic_dimension_t[]){d, one}, 2));
    OK(migraphx_dynamic_dimensions_create(&copy, (const const_migraphx_dynamic_dimension_t *)&other,
                                          1));
    OK(migraphx_dynamic_dimensions_assign_to(copy, list));
    OK(migraphx_dynamic_dimensions_assign_to(copy, copy));
    migraphx_dynamic_dimensions_destroy(list);
    migraphx_dynamic_dimension_destroy(d);
    migraphx_dynamic_dimension_destroy(one);
    OK(migraphx_dynamic_dimension_name(&name, other));
    CHECK_TEXT(name, "");
    migraphx_dynamic_dimension_destroy(other);
    OK(migraphx_dynamic_dimensions_size(&count, copy));
    CHECK_INT(count, 2);
    OK(migraphx_dynamic_dimensions_get(&got, copy, 0));
    OK(migraphx_dynamic_dimension_range(&min, &max, got));
    CHECK(min == 1 && max == 4);
    OK(migraphx_dynamic_dimension_optimals(&optimals, &count, got));
    CHECK(count == 2 && optimals[0] == 2 && optimals[1] == 3); // a set
    OK(migraphx_dynamic_dimension_name(&name, got));
    CHECK_TEXT(name, "batch");
    CHECK_INT(migraphx_dynamic_dimensions_get(&got, copy, 2), migraphx_status_bad_param);
    migraphx_dynamic_dimensions_destroy(copy);
}

CASE(shapes_and_their_lists)
{
    migraphx_program_t p;
    migraphx_shape_t a = make_shape(migraphx_shape_float_type, 2, SIZES(2, 3)), tuple, back;
    migraphx_shape_t b = make_shape(migraphx_shape_int8_type, 1, SIZES(7));
    migraphx_shapes_t members, copy, outputs;
    const_migraphx_shape_t got;
    size_t count;
    char *text;
    OK(migraphx_shape_create_tuple(&tuple, (const const_migraphx_shape_t[]){a, b}, 2));
    OK(migraphx_shape_create_scalar(&back, migraphx_shape_half_type));
    OK(migraphx_shape_assign_to(back, tuple));
    migraphx_shape_destroy(a);
    migraphx_shape_destroy(b);
    migraphx_shape_destroy(tuple);
    OK(migraphx_shape_to_string(&text, back));
    CHECK(has(text, "[float_type, {2, 3}, {3, 1}, int8_type, {7}, {1}]"));
    OK(migraphx_shape_elements(&count, back));
    CHECK_INT(count, 1);
    OK(migraphx_shape_sub_shapes(&members, back));
    migraphx_shape_destroy(back);
    OK(migraphx_program_create(&p));
    OK(migraphx_program_get_output_shapes(&outputs, p));
    OK(migraphx_shapes_assign_to(outputs, members));
    OK(migraphx_shapes_assign_to(outputs, outputs));
    copy = outputs;
    migraphx_shapes_destroy(members);
    migraphx_program_destroy(p);
    OK(migraphx_shapes_size(&count, copy));
    CHECK_INT(count, 2);
    OK(migraphx_shapes_get(&got, copy, 1));
    OK(migraphx_shape_to_string(&text, got));
    CHECK(has(text, "int8_type, {7}, {1}"));
    CHECK_INT(migraphx_shapes_get(&got, copy, 2), migraphx_status_bad_param);
    migraphx_shapes_destroy(copy);
}

// --- programs and what they take and give ---

static migraphx_program_t negation(void)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                               "main:@1 = neg(x) -> float_type, {2, 3}, {3, 1}\n"
                               "main:@2 = @return(main:@1)\n";
    migraphx_program_t p;
    must(migraphx_program_parse(&p, text, strlen(text)));
    return p;
}

CASE(parameters_and_results)
{
    float data[6] = {1, 2, 3, 4, 5, 6}, other[6] = {0};
    migraphx_program_t p = negation();
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(2, 3), data);
    migraphx_program_parameters_t copy = one_parameter("y", 2, SIZES(2, 3), other);
    migraphx_program_parameter_shapes_t shapes, more;
    migraphx_arguments_t results, kept;
    const_migraphx_shape_t shape;
    const_migraphx_argument_t result;
    const char *name;
    size_t count;
    double got[6];
    compile_for(p, "ref");
    OK(migraphx_program_get_parameter_shapes(&shapes, p));
    OK(migraphx_program_get_parameter_shapes(&more, p));
    OK(migraphx_program_parameter_shapes_assign_to(more, shapes));
    migraphx_program_parameter_shapes_destroy(shapes);
    OK(migraphx_program_parameter_shapes_size(&count, more));
    CHECK_INT(count, 1);
    OK(migraphx_program_parameter_shapes_names(&name, more));
    CHECK_TEXT(name, "x");
    OK(migraphx_program_parameter_shapes_get(&shape, more, "x"));
    FAILS(migraphx_program_parameter_shapes_get(&shape, more, "z"), migraphx_status_bad_param,
          "migraphx_program_parameter_shapes_get: there is no parameter \"z\"");
    migraphx_program_parameter_shapes_destroy(more);
    OK(migraphx_program_parameters_assign_to(copy, params));
    OK(migraphx_program_parameters_assign_to(copy, copy));
    migraphx_program_parameters_destroy(params);
    OK(migraphx_program_run(&results, p, copy));
    OK(migraphx_program_run(&kept, p, copy));
    OK(migraphx_arguments_assign_to(kept, results));
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(copy);
    migraphx_program_destroy(p);
    OK(migraphx_arguments_get(&result, kept, 0));
    OK(migraphx_argument_values(got, 6, result));
    CHECK_NEAR(got[5], -6, 0);
    CHECK_INT(migraphx_arguments_get(&result, kept, 1), migraphx_status_bad_param);
    migraphx_arguments_destroy(kept);
}

CASE(instructions_and_modules)
{
    static const char text[] =
        "module: \"main\"\n"
        "c = @param:c -> bool_type, {1}, {1}\n"
        "x = @param:x -> float_type, {2}, {1}\n"
        "main:@2 = if(c), [yes, no] -> [float_type, {2}, {1}]\n"
        "main:@3 = get_tuple_elem[index=0](main:@2) -> float_type, {2}, {1}\n"
        "main:@4 = @return(main:@3)\n\n"
        "module: \"yes\"\nyes:@0 = neg(x) -> float_type, {2}, {1}\nyes:@1 = @return(yes:@0)\n\n"
        "module: \"no\"\nno:@0 = abs(x) -> float_type, {2}, {1}\nno:@1 = @return(no:@0)\n\n";
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_modules_t all, bodies;
    migraphx_instructions_t list, copy;
    migraphx_instruction_t branch, ins;
    const char *name;
    size_t count;
    bool equal;
    OK(migraphx_program_parse(&p, text, strlen(text)));
    OK(migraphx_program_get_main_module(&m, p));
    OK(migraphx_module_instructions(&list, m));
    OK(migraphx_instructions_create(&copy, NULL, 0));
    OK(migraphx_instructions_assign_to(copy, list));
    migraphx_instructions_destroy(list);
    OK(migraphx_instructions_get(&branch, copy, 2));
    OK(migraphx_instructions_get(&ins, copy, 0));
    OK(migraphx_instruction_assign_to(ins, branch));
    OK(migraphx_instruction_equal(&equal, ins, branch));
    CHECK(equal);
    OK(migraphx_program_modules(&all, p));
    OK(migraphx_modules_size(&count, all));
    CHECK_INT(count, 3);
    OK(migraphx_instruction_modules(&bodies, ins));
    OK(migraphx_modules_assign_to(all, bodies));
    migraphx_modules_destroy(bodies);
    OK(migraphx_modules_size(&count, all));
    CHECK_INT(count, 2);
    OK(migraphx_modules_get(&m, all, 1));
    OK(migraphx_module_name(&name, m));
    CHECK_TEXT(name, "no");
    CHECK_INT(migraphx_modules_get(&m, all, 2), migraphx_status_bad_param);
    FAILS(migraphx_module_destroy(m), migraphx_status_bad_param,
          "migraphx_module_destroy: module \"no\" belongs to a program");
    migraphx_modules_destroy(all);
    migraphx_instruction_destroy(ins);
    migraphx_instruction_destroy(branch);
    migraphx_instructions_destroy(copy);
    migraphx_program_destroy(p);
}

CASE(modules_of_their_own)
{
    migraphx_module_t m;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(2));
    migraphx_instruction_t x, y;
    char name[] = "mine", *text;
    OK(migraphx_module_create(&m, name));
    name[0] = '?'; // the module has a copy
    OK(migraphx_module_add_parameter(&x, m, "x", shape));
    y = add(m, "neg", NULL, x, NULL);
    OK(migraphx_module_to_string(&text, m));
    CHECK(has(text, "mine:@1 = neg(x) -> float_type, {2}, {1}"));
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(y);
    OK(migraphx_module_destroy(m));
    migraphx_shape_destroy(shape);
}

static migraphx_status keep_info(migraphx_trace_info_t info, void *data)
{
    return migraphx_trace_info_assign_to(data, info);
}

CASE(trace_information_can_be_kept)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    migraphx_program_t p = negation();
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(2, 3), data);
    migraphx_trace_info_t kept, copy;
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    const char *name;
    double got[6];
    OK(migraphx_trace_info_create(&kept));
    OK(migraphx_trace_info_create(&copy));
    OK(migraphx_trace_info_get_name(&name, kept));
    CHECK_TEXT(name, "");
    compile_for(p, "ref");
    OK(migraphx_program_run_trace(&results, p, params, keep_info, kept));
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
    OK(migraphx_trace_info_assign_to(copy, kept));
    migraphx_trace_info_destroy(kept);
    OK(migraphx_trace_info_get_name(&name, copy));
    CHECK_TEXT(name, "neg");
    OK(migraphx_trace_info_get_result(&result, copy));
    OK(migraphx_argument_values(got, 6, result));
    CHECK_NEAR(got[0], -1, 0);
    migraphx_trace_info_destroy(copy);
}

// --- options ---

static void count_pass(void *data, const char *pass, const_migraphx_program_t program, bool changed,
                       double microseconds)
{
    char *text;
    (void)changed;
    must(migraphx_program_to_string(&text, program));
    *(int *)data += pass[0] && strstr(text, "@param:x") && microseconds >= 0;
    *(int *)data += strcmp(pass, "simplify_algebra") == 0 ? 1000 : 0;
    migraphx_string_destroy(text);
}

CASE(options_of_compiling)
{
    migraphx_target_t target, other;
    migraphx_compile_options_t options, copy;
    const char *name;
    OK(migraphx_target_create(&other, "cpu"));
    OK(migraphx_target_create(&target, "ref"));
    OK(migraphx_target_assign_to(target, other));
    migraphx_target_destroy(other);
    OK(migraphx_target_name(&name, target));
    CHECK_TEXT(name, "cpu");
    for (int disabled = 0; disabled < 2; disabled++) {
        migraphx_program_t p = negation();
        int count = 0;
        OK(migraphx_compile_options_create(&options));
        OK(migraphx_compile_options_create(&copy));
        OK(migraphx_compile_options_set_isa(options, "generic"));
        OK(migraphx_compile_options_set_threads(options, 1));
        OK(migraphx_compile_options_set_trace(options, count_pass, &count));
        if (disabled) {
            OK(migraphx_compile_options_disable_pass(options, "simplify_reshapes"));
            OK(migraphx_compile_options_disable_pass(options, "simplify_algebra"));
        }
        OK(migraphx_compile_options_assign_to(copy, options));
        migraphx_compile_options_destroy(options);
        OK(migraphx_program_compile(p, target, copy));
        migraphx_compile_options_destroy(copy);
        CHECK(count % 1000 > 0);
        CHECK_INT(count >= 1000, !disabled);
        migraphx_program_destroy(p);
    }
    OK(migraphx_compile_options_create(&options));
    CHECK_INT(migraphx_compile_options_set_threads(options, 4097), migraphx_status_bad_param);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
}

// The first result's shape of the model imported with the options.
static bool imports_as(migraphx_onnx_options_t options, const char *expected)
{
    migraphx_program_t p;
    migraphx_shapes_t shapes;
    const_migraphx_shape_t shape;
    char *text;
    if (migraphx_parse_onnx(&p, model, options) != migraphx_status_success) {
        printf("%s\n", last_error());
        return false;
    }
    must(migraphx_program_get_output_shapes(&shapes, p));
    must(migraphx_shapes_get(&shape, shapes, 0));
    must(migraphx_shape_to_string(&text, shape));
    const bool same = strcmp(text, expected) == 0;
    if (!same)
        printf("%s\n", text);
    migraphx_string_destroy(text);
    migraphx_shapes_destroy(shapes);
    migraphx_program_destroy(p);
    return same;
}

static migraphx_onnx_options_t moved(migraphx_onnx_options_t options)
{
    migraphx_onnx_options_t copy;
    must(migraphx_onnx_options_create(&copy));
    must(migraphx_onnx_options_set_default_dim_value(copy, 7)); // to be overwritten
    must(migraphx_onnx_options_assign_to(copy, options));
    must(migraphx_onnx_options_destroy(options));
    must(migraphx_onnx_options_assign_to(copy, copy));
    return copy;
}

CASE(options_of_import)
{
    migraphx_onnx_options_t o;
    migraphx_dynamic_dimension_t batch = range(1, 4, ""), five;
    OK(migraphx_onnx_options_create(&o));
    OK(migraphx_onnx_options_set_default_dim_value(o, 3));
    o = moved(o);
    CHECK(imports_as(o, "float_type, {3, 10}, {10, 1}"));
    OK(migraphx_dynamic_dimension_create_min_max(&five, 5, 5));
    OK(migraphx_onnx_options_set_dim_param(o, "N", batch));
    OK(migraphx_onnx_options_set_dim_param(o, "N", five)); // the later one holds
    OK(migraphx_onnx_options_set_external_data_path(o, "/tmp"));
    o = moved(o);
    CHECK(imports_as(o, "float_type, {5, 10}, {10, 1}"));
    OK(migraphx_onnx_options_set_input_parameter_shape(o, "image", SIZES(2, 1, 8, 8), 4));
    OK(migraphx_onnx_options_set_input_parameter_shape(o, "else", SIZES(1), 1));
    OK(migraphx_onnx_options_set_input_parameter_shape(o, "image", SIZES(6, 1, 8, 8), 4));
    o = moved(o);
    CHECK(imports_as(o, "float_type, {6, 10}, {10, 1}"));
    migraphx_onnx_options_destroy(o);
    OK(migraphx_onnx_options_create(&o));
    OK(migraphx_onnx_options_set_default_dyn_dim_value(o, batch));
    o = moved(o);
    CHECK(imports_as(o, "dynamic, float_type, {[1..4], 10}"));
    migraphx_onnx_options_destroy(o);
    migraphx_dynamic_dimension_destroy(batch);
    migraphx_dynamic_dimension_destroy(five);
}

CASE(limits_of_import)
{
    migraphx_onnx_options_t o;
    migraphx_program_t p;
    OK(migraphx_onnx_options_create(&o));
    OK(migraphx_onnx_options_set_limit_bytes(o, 1000)); // the weights alone are more
    OK(migraphx_onnx_options_set_limit_seconds(o, 1000));
    CHECK_INT(migraphx_onnx_options_set_limit_seconds(o, -1), migraphx_status_bad_param);
    CHECK_INT(migraphx_onnx_options_set_limit_seconds(o, NAN), migraphx_status_bad_param);
    CHECK_INT(migraphx_onnx_options_set_default_loop_iterations(o, -1), migraphx_status_bad_param);
    CHECK_INT(migraphx_onnx_options_set_default_dim_value(o, SIZE_MAX), migraphx_status_bad_param);
    CHECK_INT(migraphx_parse_onnx(&p, model, o), migraphx_status_unknown_error);
    migraphx_onnx_options_destroy(o);
}

CASE(options_that_nothing_reads_yet)
{
    float data[6] = {0};
    migraphx_program_parameters_t sample = one_parameter("x", 2, SIZES(2, 3), data);
    migraphx_quantize_int8_options_t int8, int8_copy;
    migraphx_quantize_fp8_options_t fp8, fp8_copy;
    migraphx_tf_options_t tf, tf_copy;
    migraphx_file_options_t file, file_copy;
    migraphx_program_t p = negation();
    migraphx_target_t target;
    char *bytes;
    size_t size;
    OK(migraphx_target_create(&target, "ref"));
    OK(migraphx_quantize_int8_options_create(&int8));
    OK(migraphx_quantize_int8_options_create(&int8_copy));
    OK(migraphx_quantize_int8_options_add_op_name(int8, "dot"));
    OK(migraphx_quantize_int8_options_add_op_name(int8, "dot"));
    OK(migraphx_quantize_int8_options_add_op_name(int8, "neg"));
    OK(migraphx_quantize_int8_options_add_calibration_data(int8, sample));
    OK(migraphx_quantize_int8_options_assign_to(int8_copy, int8));
    migraphx_quantize_int8_options_destroy(int8);
    FAILS(migraphx_quantize_int8(p, target, int8_copy), migraphx_status_bad_param,
          "QUANTIZE_INT8: only support DOT and CONVOLUTION operation");
    migraphx_quantize_int8_options_destroy(int8_copy);
    OK(migraphx_quantize_fp8_options_create(&fp8));
    OK(migraphx_quantize_fp8_options_create(&fp8_copy));
    OK(migraphx_quantize_fp8_options_add_calibration_data(fp8, sample));
    OK(migraphx_quantize_fp8_options_assign_to(fp8_copy, fp8));
    migraphx_quantize_fp8_options_destroy(fp8);
    OK(migraphx_quantize_fp8(p, target, fp8_copy)); // which has nothing to quantize
    migraphx_quantize_fp8_options_destroy(fp8_copy);
    OK(migraphx_tf_options_create(&tf));
    OK(migraphx_tf_options_create(&tf_copy));
    OK(migraphx_tf_options_set_input_parameter_shape(tf, "x", SIZES(1, 2), 2));
    OK(migraphx_tf_options_set_input_parameter_shape(tf, "x", SIZES(1, 3), 2));
    OK(migraphx_tf_options_set_output_names(tf, (const char *[]){"y", "z"}, 2));
    OK(migraphx_tf_options_assign_to(tf_copy, tf));
    migraphx_tf_options_destroy(tf);
    migraphx_program_t none;
    FAILS(migraphx_parse_tf(&none, "x.pb", tf_copy), migraphx_status_unknown_error,
          "x.pb: No such file or directory");
    migraphx_tf_options_destroy(tf_copy);
    OK(migraphx_file_options_create(&file));
    OK(migraphx_file_options_create(&file_copy));
    OK(migraphx_file_options_set_file_format(file, "json"));
    OK(migraphx_file_options_assign_to(file_copy, file));
    migraphx_file_options_destroy(file);
    OK(migraphx_save_buffer(&bytes, &size, p, file_copy));
    CHECK(size && bytes[0] == '{');
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(file_copy);
    migraphx_program_parameters_destroy(sample);
    migraphx_target_destroy(target);
    migraphx_program_destroy(p);
}

CASE(names_of_what_to_quantize)
{
    static const char text[] = "module: \"main\"\n"
                               "y = @param:y -> float_type, {3, 3}, {3, 1}\n"
                               "x = @param:x -> float_type, {3, 3}, {3, 1}\n"
                               "main:@2 = dot(x,y) -> float_type, {3, 3}, {3, 1}\n"
                               "main:@3 = tanh(main:@2) -> float_type, {3, 3}, {3, 1}\n"
                               "main:@4 = @return(main:@3)\n";
    migraphx_program_t p;
    migraphx_quantize_op_names_t names, copy;
    char *printed;
    OK(migraphx_program_parse(&p, text, strlen(text)));
    OK(migraphx_quantize_op_names_create(&names));
    OK(migraphx_quantize_op_names_create(&copy));
    OK(migraphx_quantize_op_names_add(copy, "tanh"));
    OK(migraphx_quantize_op_names_add(names, "dot"));
    OK(migraphx_quantize_op_names_assign_to(copy, names));
    migraphx_quantize_op_names_destroy(names);
    OK(migraphx_quantize_fp16_with_op_names(p, copy));
    migraphx_quantize_op_names_destroy(copy);
    OK(migraphx_program_to_string(&printed, p));
    const char *dot = strstr(printed, "= dot("), *tanh_at = strstr(printed, "= tanh(");
    CHECK(dot && tanh_at);
    CHECK(strncmp(strstr(dot, "-> ") + 3, "half_type", 9) == 0);
    CHECK(strncmp(strstr(tanh_at, "-> ") + 3, "float_type", 10) == 0);
    migraphx_string_destroy(printed);
    migraphx_program_destroy(p);
}

CASE(options_of_generators)
{
    static const char text[] = "module: \"main\"\n"
                               "x = @param:x -> int64_type, {1, 3}, {3, 1}\n"
                               "main:@1 = @return(x)\n";
    migraphx_program_t p;
    migraphx_generator_t none = NULL;
    migraphx_generator_options_t options, copy;
    migraphx_compile_options_t compile;
    OK(migraphx_program_parse(&p, text, strlen(text)));
    OK(migraphx_compile_options_create(&compile));
    OK(migraphx_generator_options_create(&options));
    OK(migraphx_generator_options_create(&copy));
    OK(migraphx_generator_options_set_name(copy, "tokens", "to be replaced"));
    OK(migraphx_generator_options_set_compile_options(options, compile));
    OK(migraphx_generator_options_add_state(options, "past", "present"));
    OK(migraphx_generator_options_set_name(options, "tokens", "words"));
    OK(migraphx_generator_options_assign_to(copy, options));
    OK(migraphx_generator_options_destroy(options));
    OK(migraphx_generator_options_assign_to(copy, copy));
    FAILS(migraphx_generator_create(&none, p, copy), migraphx_status_unknown_error,
          "the model has no input \"words\", named as its tokens");
    OK(migraphx_generator_options_destroy(copy));
    migraphx_compile_options_destroy(compile);
    migraphx_program_destroy(p);
}

CASE(samplings)
{
    migraphx_sampling_t sampling, copy;
    OK(migraphx_sampling_create(&sampling));
    OK(migraphx_sampling_create(&copy));
    OK(migraphx_sampling_set_temperature(sampling, 0.5));
    OK(migraphx_sampling_assign_to(copy, sampling));
    OK(migraphx_sampling_destroy(sampling));
    OK(migraphx_sampling_assign_to(copy, copy));
    OK(migraphx_sampling_destroy(copy));
}

TEST_MAIN(ROW(options_of_generators) ROW(samplings) ROW(dimensions) ROW(shapes_and_their_lists)
              ROW(parameters_and_results) ROW(instructions_and_modules) ROW(modules_of_their_own)
                  ROW(trace_information_can_be_kept) ROW(options_of_compiling)
                      ROW(options_of_import) ROW(limits_of_import)
                          ROW(options_that_nothing_reads_yet) ROW(names_of_what_to_quantize))
