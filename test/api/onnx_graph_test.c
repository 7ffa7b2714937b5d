// SPDX-License-Identifier: MIT
// Graphs that a host hands over node by node, as a C client does it: what they compute, what stays
// where it is, what is refused and in which words.
#include "api/support.h"

#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define LENS(...) ((const int64_t[]){__VA_ARGS__})

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static migraphx_onnx_graph_t new_graph(void)
{
    migraphx_onnx_graph_t g;
    must(migraphx_onnx_graph_create(&g));
    must(migraphx_onnx_graph_set_opset(g, "", 17));
    return g;
}

static void input(migraphx_onnx_graph_t g, const char *name, int element, int rank,
                  const int64_t *lens)
{
    must(migraphx_onnx_graph_add_input(
        g, name, &(migraphx_onnx_type){.element = element, .rank = rank, .lens = lens}));
}

static void node(migraphx_onnx_graph_t g, const char *op, const char *a, const char *b,
                 const char *out)
{
    must(migraphx_onnx_graph_add_node(g, "", op, "", NAMES(a, b), b ? 2 : 1, &out, 1));
}

static migraphx_program_t parse(migraphx_onnx_graph_t g, bool dynamic)
{
    migraphx_program_t p;
    migraphx_onnx_options_t options;
    must(migraphx_onnx_options_create(&options));
    must(migraphx_onnx_options_set_dynamic_dims(options, dynamic));
    must(migraphx_parse_onnx_graph(&p, g, options));
    migraphx_onnx_options_destroy(options);
    return p;
}

// Result k goes to the k-th of these; counts the calls.
struct places {
    float *at[2];
    size_t rank, lens[4];
    int calls;
};

static void *place(void *data, size_t index, migraphx_shape_datatype_t type, const size_t *lens,
                   size_t rank)
{
    struct places *p = data;
    p->calls++;
    p->rank = rank;
    for (size_t i = 0; i < rank && i < 4; i++)
        p->lens[i] = lens[i];
    return type == migraphx_shape_float_type ? p->at[index] : NULL;
}

static migraphx_buffer buffer(const char *name, size_t rank, const size_t *lens, const void *data)
{
    return (migraphx_buffer){
        .name = name, .type = migraphx_shape_float_type, .lens = lens, .rank = rank, .data = data};
}

// y = relu(x + w)
static migraphx_onnx_graph_t sum_graph(const float *w, void (*release)(void *), void *owner)
{
    migraphx_onnx_graph_t g = new_graph();
    input(g, "x", FLOAT, 2, LENS(-1, 2));
    must(migraphx_onnx_graph_add_initializer(g, "w", FLOAT, LENS(2), 1, w, 2 * sizeof *w, release,
                                             owner));
    node(g, "Relu", "sum", NULL, "y"); // before what it reads
    node(g, "Add", "x", "w", "sum");
    must(migraphx_onnx_graph_add_output(g, "y", NULL));
    return g;
}

static void count(void *owner)
{
    ++*(int *)owner;
}

CASE(a_graph_computes_and_keeps_its_weights_where_they_are)
{
    static const float w[] = {1, -20}, x[] = {1, 2, 3, 40};
    float y[4] = {0};
    int released = 0;
    migraphx_onnx_graph_t g = sum_graph(w, count, &released);
    migraphx_program_t p = parse(g, true);
    OK(migraphx_onnx_graph_destroy(g));
    CHECK_INT(released, 0); // the program shows it
    compile_for(p, "cpu");
    struct places places = {.at = {y}};
    const migraphx_buffer in = buffer("x", 2, SIZES(2, 2), x);
    migraphx_arguments_t out;
    OK(migraphx_program_run_buffers(&out, p, &in, 1, place, &places));
    const_migraphx_argument_t first;
    char *at;
    OK(migraphx_arguments_get(&first, out, 0));
    OK(migraphx_argument_buffer(&at, first));
    CHECK_INT(places.calls, 1);
    CHECK(places.rank == 2 && places.lens[0] == 2 && places.lens[1] == 2);
    CHECK(y[0] == 2 && y[1] == 0 && y[2] == 4 && y[3] == 20);
    CHECK(memcmp(at, y, sizeof y) == 0);
    migraphx_arguments_destroy(out);
    OK(migraphx_program_run_buffers(NULL, p, &in, 1, NULL, NULL));
    migraphx_program_destroy(p);
    CHECK_INT(released, 1);
}

CASE(results_are_placed_on_every_target_compiled_or_not)
{
    static const float w[] = {1, 2}, x[] = {1, 2};
    const char *const targets[] = {"cpu", "ref", NULL};
    for (int i = 0; i < 3; i++) {
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            float y[2] = {0};
            struct places places = {.at = {y}};
            migraphx_onnx_graph_t g = sum_graph(w, NULL, NULL);
            migraphx_program_t p = parse(g, dynamic);
            if (targets[i])
                compile_for(p, targets[i]);
            const migraphx_buffer in = buffer("x", 2, SIZES(1, 2), x);
            for (int round = 0; round < 3; round++) {
                y[0] = y[1] = 0;
                OK(migraphx_program_run_buffers(NULL, p, &in, 1, place, &places));
                CHECK(y[0] == 2 && y[1] == 4);
                CHECK_INT(places.calls, round + 1);
            }
            migraphx_program_destroy(p);
            migraphx_onnx_graph_destroy(g);
        }
    }
}

CASE(axes_that_share_a_placeholder_for_a_name_may_differ)
{
    static const float x[] = {1, -2, 3, -4, 5, -6};
    static const char *const placeholders[] = {"?", "-1", "None"};
    for (int i = 0; i < 3; i++) {
        float y[6] = {0};
        struct places places = {.at = {y}};
        const char *names[] = {placeholders[i], placeholders[i]};
        migraphx_onnx_graph_t g = new_graph();
        OK(migraphx_onnx_graph_add_input(
            g, "x",
            &(migraphx_onnx_type){
                .element = FLOAT, .rank = 2, .lens = LENS(-1, -1), .names = names}));
        node(g, "Relu", "x", NULL, "y");
        OK(migraphx_onnx_graph_add_output(g, "y", NULL));
        migraphx_program_t p = parse(g, true);
        const migraphx_buffer in = buffer("x", 2, SIZES(2, 3), x);
        OK(migraphx_program_run_buffers(NULL, p, &in, 1, place, &places));
        CHECK(places.rank == 2 && places.lens[0] == 2 && places.lens[1] == 3 && y[4] == 5 && !y[5]);
        migraphx_program_destroy(p);
        migraphx_onnx_graph_destroy(g);
    }
}

// if (c) y = x + w, a weight of the body; else y = x
CASE(bodies_have_weights_and_read_values_around_them)
{
    static const float w[] = {10, 20}, x[] = {1, 2};
    static const char yes = 1, no = 0;
    migraphx_onnx_graph_t g = new_graph(), then, other;
    input(g, "c", BOOL, 0, NULL);
    input(g, "x", FLOAT, 1, LENS(2));
    OK(migraphx_onnx_graph_create_body(&then, g));
    OK(migraphx_onnx_graph_create_body(&other, g));
    OK(migraphx_onnx_graph_add_initializer(then, "w", FLOAT, LENS(2), 1, w, sizeof w, NULL, NULL));
    node(then, "Add", "x", "w", "a");
    OK(migraphx_onnx_graph_add_output(then, "a", NULL));
    node(other, "Identity", "x", NULL, "b");
    OK(migraphx_onnx_graph_add_output(other, "b", NULL));
    node(g, "If", "c", NULL, "y");
    OK(migraphx_onnx_graph_set_body(g, "then_branch", then));
    OK(migraphx_onnx_graph_set_body(g, "else_branch", other));
    OK(migraphx_onnx_graph_destroy(then));
    OK(migraphx_onnx_graph_destroy(other));
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    migraphx_program_t p = parse(g, false);
    OK(migraphx_onnx_graph_destroy(g));
    compile_for(p, "cpu");
    for (int i = 0; i < 2; i++) {
        float y[2] = {0};
        struct places places = {.at = {y}};
        migraphx_buffer in[] = {
            {.name = "c", .type = migraphx_shape_bool_type, .data = i ? &yes : &no},
            buffer("x", 1, SIZES(2), x)};
        OK(migraphx_program_run_buffers(NULL, p, in, 2, place, &places));
        CHECK(y[0] == (i ? 11 : 1) && y[1] == (i ? 22 : 2));
    }
    migraphx_program_destroy(p);
}

static void attributes_of_conv(migraphx_onnx_graph_t g)
{
    must(migraphx_onnx_graph_set_ints(g, "pads", LENS(1, 1, 1, 1), 4));
    must(migraphx_onnx_graph_set_int(g, "group", 1));
}

CASE(attributes_reach_their_node)
{
    static const float w = 3;
    migraphx_onnx_graph_t g = new_graph();
    input(g, "x", FLOAT, 4, LENS(1, 1, 2, 2));
    OK(migraphx_onnx_graph_add_initializer(g, "w", FLOAT, LENS(1, 1, 1, 1), 4, &w, sizeof w, NULL,
                                           NULL));
    node(g, "Conv", "x", "w", "c");
    attributes_of_conv(g);
    node(g, "LeakyRelu", "c", NULL, "y");
    OK(migraphx_onnx_graph_set_float(g, "alpha", 0.5f));
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    migraphx_program_t p = parse(g, false);
    char *text;
    OK(migraphx_program_to_string(&text, p));
    CHECK(strstr(text, "padding={1,1,1,1}") || strstr(text, "padding={1, 1, 1, 1}"));
    CHECK(strstr(text, "alpha=0.5"));
    migraphx_string_destroy(text);
    migraphx_program_destroy(p);
    migraphx_onnx_graph_destroy(g);
}

// ONNX Runtime fills in the standard's default, which has a function for each of two directions.
CASE(a_recurrent_node_of_one_direction_takes_the_default_of_two)
{
    migraphx_onnx_graph_t g = new_graph();
    input(g, "x", FLOAT, 3, LENS(2, 1, 3));
    input(g, "w", FLOAT, 3, LENS(1, 4, 3));
    input(g, "r", FLOAT, 3, LENS(1, 4, 4));
    OK(migraphx_onnx_graph_add_node(g, "", "RNN", "", NAMES("x", "w", "r"), 3, NAMES("y"), 1));
    OK(migraphx_onnx_graph_set_int(g, "hidden_size", 4));
    OK(migraphx_onnx_graph_set_strings(g, "activations", NAMES("Tanh", "Tanh"),
                                       (const size_t[]){4, 4}, 2));
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    migraphx_program_t p;
    OK(migraphx_parse_onnx_graph(&p, g, NULL));
    migraphx_program_destroy(p);
    migraphx_onnx_graph_destroy(g);
}

CASE(a_judgement_names_each_node_that_is_not_taken)
{
    migraphx_onnx_graph_t g = new_graph();
    const migraphx_onnx_type known = {.element = FLOAT, .rank = 1, .lens = LENS(4)};
    input(g, "x", FLOAT, 1, LENS(4));
    node(g, "Relu", "x", NULL, "a");
    node(g, "Nonsense", "a", NULL, "b");
    node(g, "Concat", "b", "a", "c"); // no axis
    node(g, "Neg", "b", NULL, "y");
    OK(migraphx_onnx_graph_add_value(g, "b", &known));
    OK(migraphx_onnx_graph_add_value(g, "c", &known));
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    const char *why;
    OK(migraphx_onnx_graph_judge(g, NULL));
    OK(migraphx_onnx_graph_verdict(&why, g, 0));
    CHECK(!why);
    OK(migraphx_onnx_graph_verdict(&why, g, 1));
    CHECK(why && strstr(why, "Nonsense"));
    OK(migraphx_onnx_graph_verdict(&why, g, 2));
    CHECK(why && strstr(why, "axis"));
    OK(migraphx_onnx_graph_verdict(&why, g, 3));
    CHECK(!why);
    FAILS(migraphx_onnx_graph_verdict(&why, g, 4), migraphx_status_bad_param,
          "migraphx_onnx_graph_verdict: node 4, but 4 were judged");
    migraphx_program_t p;
    CHECK(migraphx_parse_onnx_graph(&p, g, NULL) != migraphx_status_success);
    migraphx_onnx_graph_destroy(g);
}

CASE(what_is_wrong_is_refused_in_words)
{
    migraphx_onnx_graph_t g = new_graph(), body, stranger = new_graph();
    static const float w = 1;
    migraphx_program_t p;
    FAILS(migraphx_onnx_graph_set_int(g, "axis", 1), migraphx_status_bad_param,
          "migraphx_onnx_graph_set_int: attribute \"axis\" is given before any node");
    OK(migraphx_onnx_graph_add_initializer(g, "w", FLOAT, LENS(3), 1, &w, sizeof w, NULL, NULL));
    node(g, "Relu", "w", NULL, "y");
    OK(migraphx_onnx_graph_create_body(&body, g));
    FAILS(migraphx_onnx_graph_set_body(g, "body", stranger), migraphx_status_bad_param,
          "migraphx_onnx_graph_set_body: \"body\" was not made as a body of this graph");
    FAILS(migraphx_parse_onnx_graph(&p, body, NULL), migraphx_status_bad_param,
          "migraphx_parse_onnx_graph: the graph is a body");
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    CHECK(migraphx_parse_onnx_graph(&p, g, NULL) != migraphx_status_success);
    CHECK(strstr(last_error(), "data of 4 bytes where its dimensions need 12"));
    CHECK(strstr(last_error(), "tensor \"w\""));
    CHECK(migraphx_onnx_graph_add_initializer_file(g, "f", FLOAT, LENS(1), 1, "/nowhere", 0, 4) !=
          migraphx_status_success);
    migraphx_onnx_graph_destroy(body);
    migraphx_onnx_graph_destroy(stranger);
    migraphx_onnx_graph_destroy(g);
}

CASE(weights_of_files_are_mapped)
{
    static const float w[] = {0, 5, 6};
    char path[] = "/tmp/mgx-weights-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    CHECK(file && fwrite(w, sizeof w, 1, file) == 1 && fclose(file) == 0);
    migraphx_onnx_graph_t g = new_graph();
    OK(migraphx_onnx_graph_add_initializer_file(g, "w", FLOAT, LENS(2), 1, path, 4, 8));
    CHECK(migraphx_onnx_graph_add_initializer_file(g, "v", FLOAT, LENS(2), 1, path, 8, 8) !=
          migraphx_status_success);
    CHECK(strstr(last_error(), "beyond the 12 bytes"));
    remove(path);
    node(g, "Neg", "w", NULL, "y");
    OK(migraphx_onnx_graph_add_output(g, "y", NULL));
    migraphx_program_t p = parse(g, false);
    OK(migraphx_onnx_graph_destroy(g));
    compile_for(p, "cpu");
    float y[2] = {0};
    struct places places = {.at = {y}};
    OK(migraphx_program_run_buffers(NULL, p, NULL, 0, place, &places));
    CHECK(y[0] == -5 && y[1] == -6);
    migraphx_program_destroy(p);
}

TEST_MAIN(ROW(a_graph_computes_and_keeps_its_weights_where_they_are)
              ROW(results_are_placed_on_every_target_compiled_or_not)
                  ROW(axes_that_share_a_placeholder_for_a_name_may_differ)
                      ROW(bodies_have_weights_and_read_values_around_them)
                          ROW(attributes_reach_their_node)
                              ROW(a_recurrent_node_of_one_direction_takes_the_default_of_two)
                                  ROW(a_judgement_names_each_node_that_is_not_taken)
                                      ROW(what_is_wrong_is_refused_in_words)
                                          ROW(weights_of_files_are_mapped))
