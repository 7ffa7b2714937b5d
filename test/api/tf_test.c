// SPDX-License-Identifier: MIT
// TensorFlow graphs through the C API: from memory and from a SavedModel's folder, with every
// option.
#include "api/support.h"
#include "tf/graph_writer.h"

// y = relu(x) of an image whose batch is open.
static struct pb open_graph(void)
{
    struct pb g = {0};
    tf_placeholder(&g, "x", 4, (int64_t[]){-1, 2, 3, 1});
    tf_node(&g, "y", "Relu", "x", NULL);
    tf_node(&g, "z", "Neg", "y", NULL);
    return g;
}

static migraphx_program_t parse(migraphx_tf_options_t take_options)
{
    struct pb g = open_graph();
    migraphx_program_t p = NULL;
    must(migraphx_parse_tf_buffer(&p, g.data, g.size, take_options));
    pb_free(&g);
    migraphx_tf_options_destroy(take_options);
    return p;
}

// Lengths of parameter x; the program is consumed.
static bool lengths_are(migraphx_program_t take_program, const size_t *want)
{
    migraphx_program_parameter_shapes_t shapes;
    const_migraphx_shape_t shape;
    const size_t *lens;
    size_t rank;
    must(migraphx_program_get_parameter_shapes(&shapes, take_program));
    must(migraphx_program_parameter_shapes_get(&shape, shapes, "x"));
    must(migraphx_shape_lengths(&lens, &rank, shape));
    const bool ok = rank == 4 && memcmp(lens, want, 4 * sizeof *lens) == 0;
    migraphx_program_parameter_shapes_destroy(shapes);
    migraphx_program_destroy(take_program);
    return ok;
}

static migraphx_tf_options_t options(bool nhwc)
{
    migraphx_tf_options_t o;
    must(migraphx_tf_options_create(&o));
    must(migraphx_tf_options_set_nhwc(o, nhwc));
    return o;
}

CASE(options_change_the_parameters)
{
    migraphx_tf_options_t o = options(false);
    CHECK(lengths_are(parse(o), SIZES(1, 2, 3, 1)));
    CHECK(lengths_are(parse(options(true)), SIZES(1, 1, 2, 3)));
    o = options(false);
    OK(migraphx_tf_options_set_default_dim_value(o, 5));
    CHECK(lengths_are(parse(o), SIZES(5, 2, 3, 1)));
    o = options(true);
    OK(migraphx_tf_options_set_input_parameter_shape(o, "x", SIZES(4, 1, 2, 3), 4));
    CHECK(lengths_are(parse(o), SIZES(4, 1, 2, 3)));
    o = options(false); // instead of the declared 2, 3, 1
    OK(migraphx_tf_options_set_input_parameter_shape(o, "x", SIZES(4, 6, 7, 8), 4));
    CHECK(lengths_are(parse(o), SIZES(4, 6, 7, 8)));
}

CASE(results_are_those_asked_for)
{
    const char *names[] = {"y:0", "z"};
    migraphx_tf_options_t o = options(false);
    size_t count;
    OK(migraphx_tf_options_set_output_names(o, names, 2));
    migraphx_program_t p = parse(o);
    OK(migraphx_program_output_names_size(&count, p));
    CHECK_INT(count, 2);
    migraphx_program_destroy(p);
}

// Nothing but a node without a value: the program runs and gives nothing.
CASE(a_graph_without_results_is_a_program_without_results)
{
    struct pb g = {0};
    migraphx_program_t p = NULL;
    migraphx_program_parameters_t none;
    migraphx_arguments_t results;
    size_t count;
    tf_node(&g, "nothing", "NoOp", "", NULL);
    migraphx_tf_options_t o = options(true);
    OK(migraphx_parse_tf_buffer(&p, g.data, g.size, o));
    OK(migraphx_program_parameters_create(&none));
    OK(migraphx_program_run(&results, p, none));
    OK(migraphx_arguments_size(&count, results));
    CHECK_INT(count, 0);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(none);
    migraphx_program_destroy(p);
    migraphx_tf_options_destroy(o);
    pb_free(&g);
}

CASE(the_bytes_may_go_after_the_call)
{
    float x[6] = {-1, 2, -3, 4, -5, 6}, sum = 0;
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    double values[6];
    migraphx_program_t p = parse(options(false));
    migraphx_program_parameters_t params = one_parameter("x", 4, SIZES(1, 2, 3, 1), x);
    OK(migraphx_program_run(&results, p, params));
    OK(migraphx_arguments_get(&result, results, 0));
    OK(migraphx_argument_values(values, 6, result));
    for (int i = 0; i < 6; i++)
        sum += (float)values[i];
    CHECK_NEAR(sum, -12, 0);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
}

CASE(a_folder_is_a_saved_model)
{
    migraphx_tf_options_t o = options(true);
    migraphx_program_t p = NULL;
    OK(migraphx_parse_tf(&p, "test/tf/saved/v2", o));
    migraphx_program_destroy(p);
    FAILS(migraphx_parse_tf(&p, "test/tf", o), migraphx_status_unknown_error,
          "test/tf/saved_model.pb: No such file or directory");
    migraphx_tf_options_destroy(o);
}

CASE(operators_have_names)
{
    const char *name;
    size_t count;
    OK(migraphx_get_tf_operators_size(&count));
    CHECK(count > 200);
    OK(migraphx_get_tf_operator_name_at_index(&name, count - 1));
    CHECK(name[0]);
    CHECK_INT(migraphx_get_tf_operator_name_at_index(&name, count), migraphx_status_bad_param);
}

TEST_MAIN(ROW(options_change_the_parameters) ROW(results_are_those_asked_for)
              ROW(the_bytes_may_go_after_the_call) ROW(a_folder_is_a_saved_model)
                  ROW(a_graph_without_results_is_a_program_without_results)
                      ROW(operators_have_names))
