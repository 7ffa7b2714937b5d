// SPDX-License-Identifier: MIT
// The hand-built network of the user's guide: a 1x1 convolution, a slice, contiguous, flatten. Its
// printed graph to the letter, its twelve numbers, and the same program in many threads, traced,
// profiled, copied, parsed back.
#include <pthread.h>

#include "api/support.h"

static const char graph[] =
    "module: \"main\"\n"
    "main:@0 = @literal{1} -> float_type, {1, 1, 1, 1}, {1, 1, 1, 1}\n"
    "input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
    "main:@2 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0,"
    "use_dynamic_same_auto_pad=0](input,main:@0) -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
    "main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](main:@2) -> float_type, {1, 1, 4, 3}, "
    "{24, 24, 6, 1}\n"
    "main:@4 = contiguous(main:@3) -> float_type, {1, 1, 4, 3}, {12, 12, 3, 1}\n"
    "main:@5 = flatten[axis=1](main:@4) -> float_type, {1, 12}, {12, 1}\n"
    "main:@6 = @return(main:@5)\n"
    "\n";

static const float expected[12] = {2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22};

static migraphx_program_t make_net(void)
{
    migraphx_program_t p;
    migraphx_module_t m;
    migraphx_instruction_t input, kernel, conv, slice, contiguous, flatten;
    const float weight = 1;
    migraphx_shape_t in_shape = make_shape(migraphx_shape_float_type, 4, SIZES(1, 1, 4, 6));
    migraphx_shape_t weight_shape = make_shape(migraphx_shape_float_type, 4, SIZES(1, 1, 1, 1));
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    must(migraphx_module_add_parameter(&input, m, "input", in_shape));
    must(migraphx_module_add_literal(&kernel, m, weight_shape, (const char *)&weight));
    conv = add(m, "convolution",
               "{padding:[0,0],stride:[1,1],dilation:[1,1],group:1,padding_mode:0}", input, kernel);
    slice = add(m, "slice", "{axes:[2,3], starts:[0,2],ends:[4,5]}", conv, NULL);
    contiguous = add(m, "contiguous", NULL, slice, NULL);
    flatten = add(m, "flatten", NULL, contiguous, NULL);
    add_return(m, flatten);
    migraphx_instruction_t all[] = {input, kernel, conv, slice, contiguous, flatten};
    for (int i = 0; i < 6; i++)
        migraphx_instruction_destroy(all[i]);
    migraphx_shape_destroy(in_shape);
    migraphx_shape_destroy(weight_shape);
    return p;
}

static void fill(float *data)
{
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
}

static bool right(migraphx_arguments_t results)
{
    const_migraphx_argument_t result;
    const_migraphx_shape_t shape;
    const size_t *lens;
    size_t rank;
    char *data;
    must(migraphx_arguments_get(&result, results, 0));
    must(migraphx_argument_shape(&shape, result));
    must(migraphx_shape_lengths(&lens, &rank, shape));
    must(migraphx_argument_buffer(&data, result));
    return rank == 2 && lens[0] == 1 && lens[1] == 12 &&
           memcmp(data, expected, sizeof expected) == 0;
}

CASE(the_graph_prints_to_the_letter)
{
    migraphx_program_t p = make_net();
    char *text;
    OK(migraphx_program_to_string(&text, p));
    CHECK_TEXT(text, graph);
    migraphx_string_destroy(text);
    migraphx_program_destroy(p);
}

CASE(the_text_parses_back_to_an_equal_program)
{
    migraphx_program_t p = make_net(), back;
    bool same = false;
    OK(migraphx_program_parse(&back, graph, strlen(graph)));
    OK(migraphx_program_equal(&same, p, back));
    CHECK(same);
    OK(migraphx_program_verify(back));
    migraphx_program_destroy(back);
    migraphx_program_destroy(p);
}

CASE(twelve_numbers)
{
    migraphx_program_t p = make_net();
    float data[24];
    fill(data);
    compile_for(p, "ref");
    migraphx_program_parameters_t params = one_parameter("input", 4, SIZES(1, 1, 4, 6), data);
    migraphx_arguments_t results;
    size_t count;
    OK(migraphx_program_run(&results, p, params));
    OK(migraphx_arguments_size(&count, results));
    CHECK_INT(count, 1);
    CHECK(right(results));
    migraphx_program_destroy(p); // results live on
    CHECK(right(results));
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
}

CASE(parameters_and_results_are_described)
{
    migraphx_program_t p = make_net();
    migraphx_program_parameter_shapes_t shapes;
    migraphx_shapes_t outputs;
    const_migraphx_shape_t shape;
    const char *name;
    size_t count;
    char *text;
    OK(migraphx_program_get_parameter_shapes(&shapes, p));
    OK(migraphx_program_parameter_shapes_size(&count, shapes));
    CHECK_INT(count, 1);
    OK(migraphx_program_parameter_shapes_names(&name, shapes));
    CHECK_TEXT(name, "input");
    OK(migraphx_program_parameter_shapes_get(&shape, shapes, "input"));
    OK(migraphx_shape_to_string(&text, shape));
    CHECK_TEXT(text, "float_type, {1, 1, 4, 6}, {24, 24, 6, 1}");
    migraphx_string_destroy(text);
    OK(migraphx_program_get_output_shapes(&outputs, p));
    OK(migraphx_shapes_get(&shape, outputs, 0));
    OK(migraphx_shape_to_string(&text, shape));
    CHECK_TEXT(text, "float_type, {1, 12}, {12, 1}");
    migraphx_string_destroy(text);
    migraphx_shapes_destroy(outputs);
    migraphx_program_parameter_shapes_destroy(shapes);
    migraphx_program_destroy(p);
}

struct job {
    migraphx_program_t program;
    int wrong;
};

static void *run_often(void *user)
{
    struct job *job = user;
    float data[24];
    fill(data);
    migraphx_program_parameters_t params = one_parameter("input", 4, SIZES(1, 1, 4, 6), data);
    for (int i = 0; i < 50; i++) {
        migraphx_arguments_t results = NULL;
        if (migraphx_program_run(&results, job->program, params) || !right(results))
            job->wrong++;
        migraphx_arguments_destroy(results);
    }
    migraphx_program_parameters_destroy(params);
    return NULL;
}

CASE(eight_threads_run_one_program)
{
    enum { THREADS = 8 };
    migraphx_program_t p = make_net();
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    compile_for(p, "ref");
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){p, 0};
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(jobs[i].wrong, 0);
    migraphx_program_destroy(p);
}

struct seen {
    int count;
    size_t index[8];
    char name[8][64];
    float first[8];
    int fail_at; // instruction at which the callback fails; -1 never
};

static migraphx_status note(migraphx_trace_info_t info, void *data)
{
    struct seen *seen = data;
    const char *name;
    const_migraphx_argument_t result;
    char *bytes;
    must(migraphx_trace_info_get_index(&seen->index[seen->count], info));
    must(migraphx_trace_info_get_name(&name, info));
    must(migraphx_trace_info_get_result(&result, info));
    must(migraphx_argument_buffer(&bytes, result));
    snprintf(seen->name[seen->count], sizeof seen->name[0], "%.40s", name);
    memcpy(&seen->first[seen->count], bytes, sizeof(float));
    return ++seen->count == seen->fail_at ? migraphx_status_unknown_target
                                          : migraphx_status_success;
}

CASE(a_trace_sees_every_computing_instruction)
{
    migraphx_program_t p = make_net();
    float data[24];
    fill(data);
    compile_for(p, "ref");
    migraphx_program_parameters_t params = one_parameter("input", 4, SIZES(1, 1, 4, 6), data);
    struct seen seen = {.fail_at = -1};
    migraphx_arguments_t results;
    OK(migraphx_program_run_trace(&results, p, params, note, &seen));
    CHECK(right(results));
    CHECK_INT(seen.count, 4);
    CHECK_INT(seen.index[0], 2);
    CHECK_INT(seen.index[3], 5);
    CHECK_TEXT(seen.name[1], "slice[axes={2, 3},starts={0, 2},ends={4,");
    CHECK_NEAR(seen.first[0], 0, 0);
    CHECK_NEAR(seen.first[1], 2, 0);
    migraphx_arguments_destroy(results);
    struct seen failing = {.fail_at = 2};
    CHECK_INT(migraphx_program_run_trace(&results, p, params, note, &failing),
              migraphx_status_unknown_target); // the callback's own status
    CHECK_INT(failing.count, 2);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
}

CASE(a_profile_has_a_time_per_instruction)
{
    migraphx_program_t p = make_net();
    float data[24];
    fill(data);
    compile_for(p, "ref");
    migraphx_program_parameters_t params = one_parameter("input", 4, SIZES(1, 1, 4, 6), data);
    double times[7] = {-1, -1, -1, -1, -1, -1, -1};
    migraphx_arguments_t results;
    OK(migraphx_program_run_profile(&results, p, params, times, 7));
    CHECK(right(results));
    for (int i = 2; i < 6; i++)
        CHECK(times[i] > 0);
    CHECK_NEAR(times[0], 0, 0);
    CHECK_NEAR(times[6], 0, 0);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
}

CASE(modules_outlive_compiling_and_instructions_say_that_they_do_not)
{
    migraphx_program_t p = make_net();
    migraphx_module_t m;
    migraphx_instructions_t before, after;
    migraphx_instruction_t stale, live;
    const char *name;
    char *text;
    size_t count;
    OK(migraphx_program_get_main_module(&m, p));
    OK(migraphx_module_instructions(&before, m));
    OK(migraphx_instructions_get(&stale, before, 0));
    compile_for(p, "cpu");
    OK(migraphx_module_name(&name, m));
    CHECK_TEXT(name, "main");
    OK(migraphx_module_to_string(&text, m));
    CHECK(strstr(text, "input = @param:input"));
    migraphx_string_destroy(text);
    OK(migraphx_module_instructions(&after, m));
    OK(migraphx_instructions_size(&count, after));
    CHECK(count > 1);
    OK(migraphx_instructions_get(&live, after, 0));
    OK(migraphx_instruction_name(&name, live));
    FAILS(migraphx_instruction_name(&name, stale), migraphx_status_bad_param,
          "migraphx_instruction_name: instruction is from before its program was compiled; get it "
          "anew");
    migraphx_instruction_t other = NULL;
    CHECK_INT(migraphx_instructions_get(&other, before, 0), migraphx_status_bad_param);
    migraphx_instruction_destroy(stale);
    migraphx_instruction_destroy(live);
    migraphx_instructions_destroy(before);
    migraphx_instructions_destroy(after);
    migraphx_program_destroy(p);
}

CASE(a_copy_is_equal_but_not_compiled)
{
    migraphx_program_t p = make_net(), copy;
    bool same = false, compiled = true;
    compile_for(p, "ref");
    OK(migraphx_program_create(&copy));
    OK(migraphx_program_assign_to(copy, p));
    OK(migraphx_program_equal(&same, p, copy));
    CHECK(same);
    OK(migraphx_program_is_compiled(&compiled, copy));
    CHECK(!compiled);
    migraphx_program_destroy(p);
    compile_for(copy, "ref");
    migraphx_program_destroy(copy);
}

CASE(a_trimmed_program_takes_what_was_cut_as_parameters)
{
    migraphx_program_t p = make_net();
    char *text;
    OK(migraphx_program_trim(p, 1, 2));
    OK(migraphx_program_verify(p));
    OK(migraphx_program_to_string(&text, p));
    CHECK_TEXT(text, "module: \"main\"\n"
                     "x0 = @param:x0 -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
                     "main:@1 = @literal{1} -> float_type, {1, 1, 1, 1}, {1, 1, 1, 1}\n"
                     "input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}\n"
                     "main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](x0) -> float_type, "
                     "{1, 1, 4, 3}, {24, 24, 6, 1}\n"
                     "main:@4 = contiguous(main:@3) -> float_type, {1, 1, 4, 3}, {12, 12, 3, 1}\n"
                     "main:@5 = @return(main:@4)\n"
                     "\n");
    migraphx_string_destroy(text);
    FAILS(migraphx_program_trim(p, 9, 0), migraphx_status_unknown_error,
          "cannot drop 9 of 2 instructions");
    migraphx_program_destroy(p);
}

TEST_MAIN(ROW(the_graph_prints_to_the_letter) ROW(the_text_parses_back_to_an_equal_program)
              ROW(twelve_numbers) ROW(parameters_and_results_are_described)
                  ROW(eight_threads_run_one_program) ROW(a_trace_sees_every_computing_instruction)
                      ROW(a_profile_has_a_time_per_instruction)
                          ROW(modules_outlive_compiling_and_instructions_say_that_they_do_not)
                              ROW(a_copy_is_equal_but_not_compiled)
                                  ROW(a_trimmed_program_takes_what_was_cut_as_parameters))
