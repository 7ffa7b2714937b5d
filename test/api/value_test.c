// SPDX-License-Identifier: MIT
// Shapes, dimensions and arguments as a client sees them.
#include "api/support.h"

CASE(shapes_answer)
{
    migraphx_shape_t s, t;
    const size_t *values;
    size_t count, n;
    bool yes;
    OK(migraphx_shape_create_with_strides(&s, migraphx_shape_half_type, SIZES(2, 3), 2, SIZES(1, 2),
                                          2));
    OK(migraphx_shape_lengths(&values, &count, s));
    CHECK_INT(count, 2);
    CHECK_INT(values[1], 3);
    OK(migraphx_shape_strides(&values, &count, s));
    CHECK_INT(values[1], 2);
    OK(migraphx_shape_bytes(&n, s));
    CHECK_INT(n, 12);
    OK(migraphx_shape_elements(&n, s));
    CHECK_INT(n, 6);
    OK(migraphx_shape_index(&n, s, 4)); // element (1, 1)
    CHECK_INT(n, 3);
    OK(migraphx_shape_standard(&yes, s));
    CHECK(!yes);
    OK(migraphx_shape_transposed(&yes, s));
    CHECK(yes);
    OK(migraphx_shape_packed(&yes, s));
    CHECK(yes);
    t = make_shape(migraphx_shape_half_type, 2, SIZES(2, 3));
    OK(migraphx_shape_equal(&yes, s, t));
    CHECK(!yes);
    OK(migraphx_shape_assign_to(t, s));
    OK(migraphx_shape_equal(&yes, s, t));
    CHECK(yes);
    migraphx_shape_destroy(s);
    migraphx_shape_destroy(t);
}

CASE(a_scalar_shows_one_axis)
{
    migraphx_shape_t s, one;
    const size_t *values;
    size_t count;
    bool same;
    OK(migraphx_shape_create_scalar(&s, migraphx_shape_int64_type));
    OK(migraphx_shape_lengths(&values, &count, s));
    CHECK_INT(count, 1);
    CHECK_INT(values[0], 1);
    OK(migraphx_shape_strides(&values, &count, s));
    CHECK_INT(values[0], 0);
    OK(migraphx_shape_ndim(&count, s));
    CHECK_INT(count, 1);
    OK(migraphx_shape_rank(&count, s));
    CHECK_INT(count, 0);
    OK(migraphx_shape_create_with_strides(&one, migraphx_shape_int64_type, SIZES(1), 1, SIZES(0),
                                          1));
    OK(migraphx_shape_equal(&same, s, one));
    CHECK(same);
    migraphx_shape_destroy(one);
    migraphx_shape_destroy(s);
}

CASE(dynamic_shapes_have_ranges)
{
    migraphx_optimals_t optimals;
    migraphx_dynamic_dimension_t batch, fixed;
    migraphx_dynamic_dimensions_t dims, back;
    const_migraphx_dynamic_dimension_t dim;
    migraphx_shape_t s;
    const size_t *values;
    size_t count;
    bool yes;
    char *text;
    OK(migraphx_optimals_create(&optimals, SIZES(4, 2, 4), 3));
    OK(migraphx_dynamic_dimension_create_min_max_optimals(&batch, 1, 4, optimals));
    OK(migraphx_dynamic_dimension_create_min_max(&fixed, 3, 3));
    OK(migraphx_dynamic_dimensions_create(
        &dims, (const const_migraphx_dynamic_dimension_t[]){batch, fixed}, 2));
    OK(migraphx_shape_create_dynamic(&s, migraphx_shape_float_type, dims));
    OK(migraphx_shape_dynamic(&yes, s));
    CHECK(yes);
    OK(migraphx_shape_to_string(&text, s));
    CHECK_TEXT(text, "dynamic, float_type, {[1..4], 3}");
    migraphx_string_destroy(text);
    OK(migraphx_shape_lengths(&values, &count, s)); // of the largest
    CHECK(count == 2 && values[0] == 4 && values[1] == 3);
    OK(migraphx_shape_elements(&count, s));
    CHECK_INT(count, 12);
    OK(migraphx_shape_bytes(&count, s));
    CHECK_INT(count, 48);
    FAILS(migraphx_shape_strides(&values, &count, s), migraphx_status_unknown_error,
          "migraphx_shape_strides: called on a dynamic shape");
    OK(migraphx_shape_dyn_dims(&back, s));
    OK(migraphx_dynamic_dimensions_size(&count, back));
    CHECK_INT(count, 2);
    OK(migraphx_dynamic_dimensions_get(&dim, back, 0));
    OK(migraphx_dynamic_dimension_equal(&yes, dim, batch));
    CHECK(yes);
    OK(migraphx_dynamic_dimension_optimals(&values, &count, dim));
    CHECK_INT(count, 2);
    CHECK_INT(values[0], 2);
    OK(migraphx_dynamic_dimensions_get(&dim, back, 1));
    OK(migraphx_dynamic_dimension_is_fixed(&yes, dim));
    CHECK(yes);
    migraphx_dynamic_dimensions_destroy(back);
    migraphx_shape_destroy(s);
    migraphx_dynamic_dimensions_destroy(dims);
    migraphx_dynamic_dimension_destroy(fixed);
    migraphx_dynamic_dimension_destroy(batch);
    migraphx_optimals_destroy(optimals);
}

CASE(a_dimension_without_end_has_no_length)
{
    migraphx_dynamic_dimension_t any;
    migraphx_dynamic_dimensions_t dims;
    migraphx_shape_t s;
    const size_t *values;
    size_t count;
    OK(migraphx_dynamic_dimension_create_min_max(&any, 0, SIZE_MAX));
    OK(migraphx_dynamic_dimensions_create(&dims, (const const_migraphx_dynamic_dimension_t[]){any},
                                          1));
    OK(migraphx_shape_create_dynamic(&s, migraphx_shape_float_type, dims));
    FAILS(migraphx_shape_lengths(&values, &count, s), migraphx_status_unknown_error,
          "migraphx_shape_lengths: called on a dynamic shape without upper bounds");
    FAILS(migraphx_shape_elements(&count, s), migraphx_status_unknown_error,
          "migraphx_shape_elements: called on a dynamic shape without upper bounds");
    FAILS(migraphx_shape_bytes(&count, s), migraphx_status_unknown_error,
          "migraphx_shape_bytes: called on a dynamic shape without upper bounds");
    migraphx_shape_destroy(s);
    migraphx_dynamic_dimensions_destroy(dims);
    migraphx_dynamic_dimension_destroy(any);
}

// Nothing has no address.
CASE(a_literal_without_elements_needs_no_buffer)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_instruction_t ins;
    migraphx_program_parameters_t params;
    migraphx_arguments_t results;
    const_migraphx_argument_t value;
    const_migraphx_shape_t shape;
    size_t count = 1;
    migraphx_shape_t none = make_shape(migraphx_shape_float_type, 2, SIZES(0, 3)),
                     some = make_shape(migraphx_shape_float_type, 2, SIZES(1, 3));
    OK(migraphx_program_create(&p));
    OK(migraphx_program_get_main_module(&m, p));
    FAILS(migraphx_module_add_literal(&ins, m, some, NULL), migraphx_status_bad_param,
          "migraphx_module_add_literal: buffer is NULL");
    OK(migraphx_module_add_literal(&ins, m, none, NULL));
    add_return(m, ins);
    OK(migraphx_program_parameters_create(&params));
    OK(migraphx_program_run(&results, p, params));
    OK(migraphx_arguments_get(&value, results, 0));
    OK(migraphx_argument_shape(&shape, value));
    OK(migraphx_shape_elements(&count, shape));
    CHECK_INT(count, 0);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_instruction_destroy(ins);
    migraphx_program_destroy(p);
    migraphx_shape_destroy(none);
    migraphx_shape_destroy(some);
}

CASE(arguments_borrow_and_share)
{
    float data[4] = {1, 2, 3, 4};
    migraphx_shape_t s = make_shape(migraphx_shape_float_type, 1, SIZES(4));
    migraphx_argument_t a, b;
    char *buffer, *text;
    bool same;
    OK(migraphx_argument_create(&a, s, data));
    OK(migraphx_argument_buffer(&buffer, a));
    CHECK(buffer == (char *)data);
    OK(migraphx_argument_to_string(&text, a));
    CHECK_TEXT(text, "1, 2, 3, 4");
    migraphx_string_destroy(text);
    OK(migraphx_argument_create_values(&b, s, (const double[]){1, 2, 3, 4}, 4));
    OK(migraphx_argument_equal(&same, a, b));
    CHECK(same);
    data[0] = 7;
    OK(migraphx_argument_equal(&same, a, b));
    CHECK(!same);
    CHECK_INT(migraphx_argument_create_values(&b, s, (const double[]){1}, 1),
              migraphx_status_unknown_error);
    CHECK_TEXT(last_error(), "Values and shape elements do not match: 1 values, 4 elements");
    migraphx_argument_destroy(a);
    migraphx_argument_destroy(b);
    migraphx_shape_destroy(s);
}

CASE(generated_values_are_reproducible_and_in_range)
{
    migraphx_shape_t s = make_shape(migraphx_shape_float_type, 1, SIZES(512));
    migraphx_argument_t a, b, c;
    double v[512], sum = 0;
    bool same;
    OK(migraphx_argument_generate(&a, s, 5));
    OK(migraphx_argument_generate(&b, s, 5));
    OK(migraphx_argument_generate(&c, s, 6));
    OK(migraphx_argument_equal(&same, a, b));
    CHECK(same);
    OK(migraphx_argument_equal(&same, a, c));
    CHECK(!same);
    OK(migraphx_argument_values(v, 512, a));
    for (int i = 0; i < 512; i++) {
        CHECK(v[i] >= -1 && v[i] < 1);
        CHECK_NEAR(v[i] * 16, floor(v[i] * 16), 0);
        sum += v[i];
    }
    CHECK_NEAR(sum / 512, 0, 0.15); // uniform: the mean's deviation is 0.026
    migraphx_argument_destroy(a);
    migraphx_argument_destroy(b);
    migraphx_argument_destroy(c);
    migraphx_shape_destroy(s);
}

static int released;

static void release(void *owner)
{
    free(owner);
    released++;
}

CASE(an_owned_buffer_is_released_once_by_the_last_user)
{
    migraphx_shape_t s = make_shape(migraphx_shape_float_type, 1, SIZES(4));
    migraphx_program_parameters_t params;
    migraphx_argument_t a;
    float *data = calloc(4, sizeof *data);
    released = 0;
    OK(migraphx_argument_create_owned(&a, s, data, release, data));
    OK(migraphx_program_parameters_create(&params));
    OK(migraphx_program_parameters_add(params, "x", a));
    OK(migraphx_program_parameters_add(params, "x", a)); // replaced by itself
    migraphx_argument_destroy(a);
    CHECK_INT(released, 0);
    migraphx_program_parameters_destroy(params);
    CHECK_INT(released, 1);
    migraphx_shape_destroy(s);
}

CASE(strings_and_groups)
{
    migraphx_shape_datatype_t type;
    migraphx_shape_t s;
    migraphx_argument_t texts, group;
    const_migraphx_argument_t member;
    const char *text;
    size_t size;
    OK(migraphx_type_find(&type, "string_type"));
    s = make_shape(type, 1, SIZES(2));
    OK(migraphx_argument_create_strings(&texts, s, (const char *const[]){"one", "three"},
                                        SIZES(3, 5), 2));
    OK(migraphx_argument_string(&text, &size, texts, 1));
    CHECK_INT(size, 5);
    CHECK(memcmp(text, "three", 5) == 0);
    OK(migraphx_argument_create_group(&group, (const const_migraphx_argument_t[]){texts, texts}, 2,
                                      false));
    migraphx_argument_destroy(texts);
    OK(migraphx_argument_members_size(&size, group));
    CHECK_INT(size, 2);
    OK(migraphx_argument_member(&member, group, 1));
    OK(migraphx_argument_string(&text, &size, member, 0));
    CHECK_INT(size, 3);
    migraphx_argument_destroy(group);
    migraphx_shape_destroy(s);
}

CASE(operations_take_formats)
{
    migraphx_operation_t op, copy;
    char *text, name[5];
    OK(migraphx_operation_create(&op, "convolution", "{padding: [%i, %i], stride: [%zu, 1]}", 1, 2,
                                 (size_t)3));
    OK(migraphx_operation_to_string(&text, op));
    CHECK(strstr(text, "convolution[padding={1, 2},stride={3, 1},dilation={1, 1},group=1"));
    migraphx_string_destroy(text);
    OK(migraphx_operation_name(name, sizeof name, op));
    CHECK_TEXT(name, "conv");
    OK(migraphx_operation_create(&copy, "relu", NULL));
    OK(migraphx_operation_assign_to(copy, op));
    migraphx_operation_destroy(op);
    OK(migraphx_operation_attributes(&text, copy));
    CHECK(strstr(text, "\"padding\":[1,2]"));
    migraphx_string_destroy(text);
    migraphx_operation_destroy(copy);
}

enum { MANY = 40 }; // more names than are compared one by one

// concat(p0, p1, ...), each one float.
static migraphx_program_t make_concat(migraphx_shape_t shape)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_operation_t op;
    migraphx_instructions_t args;
    migraphx_instruction_t in[MANY], joined;
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        must(migraphx_module_add_parameter(&in[i], m, name, shape));
    }
    must(migraphx_operation_create_json(&op, "concat", "{axis: 0}"));
    must(migraphx_instructions_create(&args, (const const_migraphx_instruction_t *)in, MANY));
    must(migraphx_module_add_instruction(&joined, m, op, args));
    add_return(m, joined);
    for (int i = 0; i < MANY; i++)
        migraphx_instruction_destroy(in[i]);
    migraphx_instruction_destroy(joined);
    migraphx_instructions_destroy(args);
    migraphx_operation_destroy(op);
    return p;
}

static void add_value(migraphx_program_parameters_t params, migraphx_shape_t shape, int i,
                      float *value)
{
    char name[16];
    migraphx_argument_t a;
    snprintf(name, sizeof name, "p%d", i);
    OK(migraphx_argument_create(&a, shape, value));
    OK(migraphx_program_parameters_add(params, name, a));
    migraphx_argument_destroy(a);
}

CASE(many_parameters_are_found_by_name)
{
    float values[MANY], other = -1;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 1, SIZES(1));
    migraphx_program_t p = make_concat(shape);
    migraphx_program_parameters_t params;
    migraphx_program_parameter_shapes_t shapes;
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    const_migraphx_shape_t found;
    char *data;
    OK(migraphx_program_get_parameter_shapes(&shapes, p));
    OK(migraphx_program_parameter_shapes_get(&found, shapes, "p39"));
    CHECK_INT(migraphx_program_parameter_shapes_get(&found, shapes, "p40"),
              migraphx_status_bad_param);
    compile_for(p, "ref");
    OK(migraphx_program_parameters_create(&params));
    for (int i = MANY - 1; i >= 0; i--) {
        values[i] = (float)i;
        add_value(params, shape, i, &values[i]);
    }
    add_value(params, shape, 7, &other);
    OK(migraphx_program_run(&results, p, params));
    OK(migraphx_arguments_get(&result, results, 0));
    OK(migraphx_argument_buffer(&data, result));
    for (int i = 0; i < MANY; i++)
        CHECK_INT((int)((const float *)data)[i], i == 7 ? -1 : i);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_program_parameter_shapes_destroy(shapes);
    migraphx_shape_destroy(shape);
    migraphx_program_destroy(p);
}

TEST_MAIN(ROW(shapes_answer) ROW(a_scalar_shows_one_axis) ROW(dynamic_shapes_have_ranges)
              ROW(a_dimension_without_end_has_no_length)
                  ROW(a_literal_without_elements_needs_no_buffer) ROW(arguments_borrow_and_share)
                      ROW(generated_values_are_reproducible_and_in_range)
                          ROW(an_owned_buffer_is_released_once_by_the_last_user)
                              ROW(strings_and_groups) ROW(operations_take_formats)
                                  ROW(many_parameters_are_found_by_name))
