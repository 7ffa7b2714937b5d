// SPDX-License-Identifier: MIT
// Quantization through the C interface: options and their copies, ranges as text, what a program
// keeps, tables, errors of two programs, progress, and what is refused.
#include "api/support.h"

enum { ROWS = 3, INNER = 4, COLUMNS = 2 };

static float sample[ROWS * INNER] = {1, -2, 3, 0.5f, 0.25f, -0.75f, 2, 1, 0.1f, 0.2f, 0.3f, -3};
static const float weights[INNER * COLUMNS] = {1, -0.5f, 0.25f, 2, -1, 0.1f, 0.7f, 0.3f};

static migraphx_program_t product(void)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_instruction_t x, w, y;
    migraphx_shape_t xs = make_shape(migraphx_shape_float_type, 2, SIZES(ROWS, INNER));
    migraphx_shape_t ws = make_shape(migraphx_shape_float_type, 2, SIZES(INNER, COLUMNS));
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    must(migraphx_module_add_parameter(&x, m, "x", xs));
    must(migraphx_module_add_literal(&w, m, ws, (const char *)weights));
    y = add(m, "dot", NULL, x, w);
    add_return(m, y);
    migraphx_instruction_destroy(x);
    migraphx_instruction_destroy(w);
    migraphx_instruction_destroy(y);
    migraphx_shape_destroy(xs);
    migraphx_shape_destroy(ws);
    return p;
}

static migraphx_target_t cpu(void)
{
    migraphx_target_t target;
    must(migraphx_target_create(&target, "cpu"));
    return target;
}

static migraphx_quantize_options_t options_with_sample(void)
{
    migraphx_quantize_options_t o, copy;
    migraphx_program_parameters_t data = one_parameter("x", 2, SIZES(ROWS, INNER), sample);
    must(migraphx_quantize_options_create(&o));
    must(migraphx_quantize_options_create(&copy));
    must(migraphx_quantize_options_add_calibration_data(o, data));
    must(migraphx_quantize_options_add_op_name(o, "dot"));
    must(migraphx_quantize_options_assign_to(copy, o)); // which is all that is needed
    must(migraphx_quantize_options_destroy(o));
    must(migraphx_program_parameters_destroy(data));
    return copy;
}

static void count_progress(void *data, const char *what, size_t done, size_t total)
{
    *(int *)data += what[0] && done <= total;
}

CASE(ranges_are_text_that_does_it_again)
{
    migraphx_program_t p = product(), q = product();
    migraphx_target_t target = cpu();
    migraphx_quantize_options_t o = options_with_sample();
    char *ranges, *kept, *again, *table;
    double relative = -1, top = -1;
    int told = 0;
    OK(migraphx_quantize_options_set_progress(o, count_progress, &told));
    OK(migraphx_quantize_options_set_asymmetric(o, true));
    OK(migraphx_quantize(&ranges, p, target, o));
    CHECK(told >= 2);
    CHECK(strstr(ranges, "instruction \"main:dot:0\" int8_type\n    input 0 -3 3\n") != NULL);
    OK(migraphx_program_quantization(&kept, p));
    CHECK_TEXT(kept, ranges);
    OK(migraphx_quantize_options_set_asymmetric(o, false)); // the text says it
    OK(migraphx_quantize_options_set_ranges(o, ranges, strlen(ranges)));
    OK(migraphx_quantize(&again, q, target, o));
    CHECK_TEXT(again, ranges);
    OK(migraphx_quantization_table(&table, ranges, strlen(ranges)));
    CHECK(strstr(table, "1 of 1 products in int8_type") != NULL);
    OK(migraphx_quantization_error(&relative, &top, p, q, target, o));
    CHECK(relative == 0 && top == 0);
    migraphx_program_t wide = product();
    OK(migraphx_quantization_error(&relative, &top, wide, q, target, o));
    CHECK(relative > 0 && relative < 0.02);
    migraphx_string_destroy(ranges);
    migraphx_string_destroy(kept);
    migraphx_string_destroy(again);
    migraphx_string_destroy(table);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_program_destroy(wide);
    migraphx_target_destroy(target);
    migraphx_quantize_options_destroy(o);
}

CASE(saved_programs_keep_ranges)
{
    migraphx_program_t p = product(), q;
    migraphx_target_t target = cpu();
    migraphx_quantize_options_t o = options_with_sample();
    migraphx_file_options_t file;
    char *ranges, *kept, *bytes;
    size_t size;
    OK(migraphx_quantize_options_set_budget(o, "relative", 1));
    OK(migraphx_quantize_options_set_reckon_time(o, true));
    OK(migraphx_quantize(&ranges, p, target, o));
    OK(migraphx_file_options_create(&file));
    OK(migraphx_save_buffer(&bytes, &size, p, file));
    OK(migraphx_load_buffer(&q, bytes, size, file));
    OK(migraphx_program_quantization(&kept, q));
    CHECK_TEXT(kept, ranges);
    CHECK(strstr(kept, "budget relative 1 0.0") != NULL && strstr(kept, "cost ") != NULL);
    compile_for(q, "cpu"); // comments are no instructions
    migraphx_string_destroy(ranges);
    migraphx_string_destroy(kept);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(file);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_target_destroy(target);
    migraphx_quantize_options_destroy(o);
}

CASE(nonsense_is_refused)
{
    migraphx_program_t p = product();
    migraphx_target_t target = cpu();
    migraphx_quantize_options_t o = options_with_sample();
    double a, b;
    char *text;
    FAILS(
        migraphx_quantize_options_set_method(o, "median"), migraphx_status_bad_param,
        "migraphx_quantize_options_set_method: 'median' is not max, percentile, entropy or error");
    FAILS(migraphx_quantize_options_set_percentile(o, NAN), migraphx_status_bad_param,
          "migraphx_quantize_options_set_percentile: nan is not between 0 and 100");
    FAILS(migraphx_quantize_options_set_budget(o, "angle", 1), migraphx_status_bad_param,
          "migraphx_quantize_options_set_budget: 'angle' is not relative or top");
    FAILS(migraphx_quantize_options_set_budget(o, "top", INFINITY), migraphx_status_bad_param,
          "migraphx_quantize_options_set_budget: inf is no error");
    FAILS(migraphx_quantize_options_add_op_name(o, "add"), migraphx_status_bad_param,
          "migraphx_quantize_options_add_op_name: only support DOT and CONVOLUTION operation");
    FAILS(migraphx_quantize_options_set_ranges(o, "x", 1), migraphx_status_unknown_error,
          "it does not start with 'migraphx quantization 1'\n  in ranges of a quantization");
    FAILS(migraphx_program_quantization(&text, p), migraphx_status_unknown_error,
          "the program does not say how it was quantized");
    FAILS(migraphx_quantize_int4_weights(p, (size_t)-1, false), migraphx_status_bad_param,
          "migraphx_quantize_int4_weights: blocks of 18446744073709551615 weights are too large");
    compile_for(p, "ref");
    FAILS(migraphx_quantize(NULL, p, target, o), migraphx_status_bad_param,
          "the program is compiled already: quantize it first, then compile it");
    FAILS(migraphx_quantization_error(&a, &b, p, p, target, o), migraphx_status_bad_param,
          "migraphx_quantization_error: programs are compared before they are compiled");
    migraphx_program_destroy(p);
    migraphx_target_destroy(target);
    migraphx_quantize_options_destroy(o);
}

// --- on a card ---

static bool has_card(void)
{
    const char *named = getenv("MGX_TEST_DEVICE");
    char card[24];
    setenv("MIGRAPHX_GPU_DEVICE", named ? named : "opencl", 1);
    return migraphx_device_card(card, sizeof card, named ? named : "opencl", 0) ==
           migraphx_status_success;
}

// What the program, compiled for the target, makes of the sample.
static void result_of(migraphx_program_t p, migraphx_target_t target, float *out)
{
    migraphx_compile_options_t options;
    migraphx_program_parameters_t data = one_parameter("x", 2, SIZES(ROWS, INNER), sample);
    migraphx_arguments_t results;
    const_migraphx_argument_t first;
    char *bytes;
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_offload_copy(options, true));
    must(migraphx_program_compile(p, target, options));
    must(migraphx_program_run(&results, p, data));
    must(migraphx_arguments_get(&first, results, 0));
    must(migraphx_argument_buffer(&bytes, first));
    memcpy(out, bytes, sizeof(float) * ROWS * COLUMNS);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(data);
    migraphx_compile_options_destroy(options);
}

// Of x in steps of 3 / 127 and weights in steps of a 127th of their column's largest.
static void expected_in_int8(float *out)
{
    static const double largest[COLUMNS] = {1, 2};
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = 0;
            for (int k = 0; k < INNER; k++)
                sum += nearbyint(sample[r * INNER + k] * 127 / 3.0) *
                       nearbyint(weights[k * COLUMNS + c] * 127 / largest[c]);
            out[r * COLUMNS + c] = (float)(sum * 3 / 127 * largest[c] / 127);
        }
}

CASE(the_guide_on_a_card)
{
    const bool card = has_card();
    float got[ROWS * COLUMNS], want[ROWS * COLUMNS];
    migraphx_program_t p = product();
    migraphx_target_t target;
    migraphx_quantize_int8_options_t o;
    migraphx_program_parameters_t data = one_parameter("x", 2, SIZES(ROWS, INNER), sample);
    if (card) {
        OK(migraphx_target_create(&target, "gpu"));
        OK(migraphx_quantize_int8_options_create(&o));
        OK(migraphx_quantize_int8_options_add_calibration_data(o, data));
        OK(migraphx_quantize_int8_options_add_op_name(o, "dot"));
        OK(migraphx_quantize_int8(p, target, o));
        result_of(p, target, got);
        expected_in_int8(want);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK_NEAR(got[i], want[i], 1e-5);
        migraphx_quantize_int8_options_destroy(o);
        migraphx_target_destroy(target);
    }
    migraphx_program_parameters_destroy(data);
    migraphx_program_destroy(p);
}

CASE(a_budget_on_a_card)
{
    const bool card = has_card();
    migraphx_program_t p = product(), wide = product();
    migraphx_target_t target;
    migraphx_quantize_options_t o = options_with_sample();
    char *ranges = NULL;
    double relative = 1, top, error, gain;
    if (card) {
        OK(migraphx_target_create(&target, "gpu"));
        OK(migraphx_quantize_options_set_budget(o, "relative", 0.05));
        OK(migraphx_quantize(&ranges, p, target, o));
        const char *cost = strstr(ranges, "    cost ");
        CHECK(cost && sscanf(cost, "    cost %lf %lf", &error, &gain) == 2);
        CHECK(error > 0 && error < 0.05 && fabs(gain) < 1e6); // of a card's clock, not reckoned
        CHECK(fabs(gain - ROWS * COLUMNS * INNER / 25e9 * 1e6 * 2 / 3) > 1e-9);
        CHECK((gain > 0) == (strstr(ranges, "dot:0\" int8_type") != NULL));
        OK(migraphx_quantization_error(&relative, &top, wide, p, target, o));
        CHECK(relative > 0 && relative <= 0.05);
        migraphx_string_destroy(ranges);
        migraphx_target_destroy(target);
    }
    migraphx_quantize_options_destroy(o);
    migraphx_program_destroy(wide);
    migraphx_program_destroy(p);
}

// Those on a card first: the environment is read once.
TEST_MAIN(ROW(the_guide_on_a_card) ROW(a_budget_on_a_card) ROW(ranges_are_text_that_does_it_again)
              ROW(saved_programs_keep_ranges) ROW(nonsense_is_refused))
