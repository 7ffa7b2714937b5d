// SPDX-License-Identifier: MIT
// A card's memory by address, queues, and runs over them (migraphx/host.h): what a host needs whose
// allocators are its own. On MGX_TEST_DEVICE, or PoCL; without any card there is nothing to test but
// what is refused.
#include "api/support.h"

#include <string.h>

static char card[24];

static bool has_card(void)
{
    const char *named = getenv("MGX_TEST_DEVICE");
    setenv("MIGRAPHX_GPU_DEVICE", named ? named : "opencl", 1);
    return migraphx_device_card(card, sizeof card, named ? named : "opencl", 0) ==
           migraphx_status_success;
}

CASE(cards_have_names)
{
    char name[24] = "unchanged", small[3];
    if (!has_card())
        return;
    CHECK(strchr(card, ':') && strtol(strchr(card, ':') + 1, NULL, 10) == 0);
    OK(migraphx_device_card(name, sizeof name, card, 0));
    CHECK_TEXT(name, card);
    CHECK(migraphx_device_card(name, sizeof name, card, 1) != migraphx_status_success);
    CHECK(migraphx_device_card(name, sizeof name, "opencl", 100) != migraphx_status_success);
    CHECK(migraphx_device_card(name, sizeof name, "abacus", 0) != migraphx_status_success);
    CHECK(migraphx_device_card(small, sizeof small, card, 0) != migraphx_status_success);
    CHECK_TEXT(name, card);
}

CASE(a_place_is_found_by_its_name)
{
    const char *found = NULL;
    OK(migraphx_device_find(&found, "host"));
    CHECK_TEXT(found, "host");
    CHECK(migraphx_device_find(&found, "abacus:0") != migraphx_status_success);
    if (!has_card())
        return;
    OK(migraphx_device_find(&found, card));
    CHECK_TEXT(found, card);
}

CASE(bytes_go_in_and_out_in_order)
{
    static const float x[] = {1, 2, 3, 4};
    float y[4] = {0};
    void *a, *b, *stream;
    migraphx_device_queue_t queue;
    if (!has_card())
        return;
    OK(migraphx_device_memory_allocate(&a, sizeof x, card));
    OK(migraphx_device_memory_allocate(&b, sizeof x, card));
    OK(migraphx_device_queue_create(&queue, card));
    OK(migraphx_device_queue_stream(&stream, queue));
    CHECK(stream != NULL);
    OK(migraphx_device_queue_copy(queue, a, x, sizeof x, migraphx_copy_in));
    OK(migraphx_device_queue_copy(queue, b, a, sizeof x, migraphx_copy_within));
    OK(migraphx_device_queue_copy(queue, y, b, sizeof x, migraphx_copy_out));
    OK(migraphx_device_queue_wait(queue));
    CHECK(memcmp(x, y, sizeof x) == 0);
    OK(migraphx_device_queue_copy(queue, NULL, NULL, 0, migraphx_copy_in)); // nothing to do
    CHECK(migraphx_device_queue_copy(queue, a, x, 4, (migraphx_copy_t)7) !=
          migraphx_status_success);
    OK(migraphx_device_queue_destroy(queue));
    OK(migraphx_device_memory_free(a, card));
    OK(migraphx_device_memory_free(b, card));
}

CASE(the_processor_is_no_card)
{
    void *at = NULL;
    migraphx_device_queue_t queue = NULL;
    CHECK(migraphx_device_memory_allocate(&at, 8, "host") != migraphx_status_success);
    CHECK(migraphx_device_queue_create(&queue, "host") != migraphx_status_success);
    CHECK(!at && !queue);
}

// y = relu(x), of four numbers for addresses of the card, or of any and with copies
static migraphx_program_t make_relu(bool open)
{
    migraphx_onnx_graph_t g;
    migraphx_program_t p;
    migraphx_target_t target;
    migraphx_compile_options_t options;
    migraphx_onnx_options_t parsing;
    const int64_t lens[] = {open ? -1 : 4};
    const migraphx_onnx_type type = {.element = 1, .rank = 1, .lens = lens};
    must(migraphx_onnx_graph_create(&g));
    must(migraphx_onnx_graph_set_opset(g, "", 17));
    must(migraphx_onnx_graph_add_input(g, "x", &type));
    must(migraphx_onnx_graph_add_node(g, "", "Relu", "", (const char *[]){"x"}, 1,
                                      (const char *[]){"y"}, 1));
    must(migraphx_onnx_graph_add_output(g, "y", NULL));
    must(migraphx_onnx_options_create(&parsing));
    must(migraphx_onnx_options_set_dynamic_dims(parsing, true));
    must(migraphx_parse_onnx_graph(&p, g, parsing));
    must(migraphx_onnx_options_destroy(parsing));
    must(migraphx_onnx_graph_destroy(g));
    must(migraphx_target_create(&target, "gpu"));
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_offload_copy(options, open));
    must(migraphx_program_compile(p, target, options));
    must(migraphx_compile_options_destroy(options));
    must(migraphx_target_destroy(target));
    return p;
}

static void run_relu(migraphx_program_t p, migraphx_device_queue_t queue, void *x, void *y,
                     bool by_stream)
{
    const size_t lens[] = {4};
    const migraphx_buffer params[] = {
        {"x", migraphx_shape_float_type, lens, 1, x, NULL},
        {"main:#output_0", migraphx_shape_float_type, lens, 1, y, NULL}};
    void *stream;
    OK(migraphx_device_queue_stream(&stream, queue));
    if (by_stream)
        OK(migraphx_program_run_buffers_async(NULL, p, params, 2, NULL, NULL, stream));
    else
        OK(migraphx_program_run_buffers(NULL, p, params, 2, NULL, NULL));
}

static void check_relu(migraphx_program_t p)
{
    static const float x[] = {1, -2, 3, -4}, want[] = {1, 0, 3, 0}, none[4] = {0};
    migraphx_device_queue_t queue;
    void *a, *b;
    OK(migraphx_device_memory_allocate(&a, sizeof x, card));
    OK(migraphx_device_memory_allocate(&b, sizeof x, card));
    OK(migraphx_device_queue_create(&queue, card));
    for (int round = 0; round < 6; round++) {
        float y[4];
        OK(migraphx_device_queue_copy(queue, a, x, sizeof x, migraphx_copy_in));
        OK(migraphx_device_queue_copy(queue, b, none, sizeof x, migraphx_copy_in));
        if (round % 2 == 0) // a run that is not given the queue's stream does not wait for it
            OK(migraphx_device_queue_wait(queue));
        run_relu(p, queue, a, b, round % 2 == 1);
        OK(migraphx_device_queue_copy(queue, y, b, sizeof y, migraphx_copy_out));
        OK(migraphx_device_queue_wait(queue));
        CHECK(memcmp(y, want, sizeof y) == 0);
    }
    OK(migraphx_device_queue_destroy(queue));
    OK(migraphx_device_memory_free(a, card));
    OK(migraphx_device_memory_free(b, card));
}

CASE(programs_run_over_the_hosts_addresses_and_by_its_stream)
{
    if (!has_card())
        return;
    migraphx_program_t p = make_relu(false);
    check_relu(p);
    OK(migraphx_program_destroy(p));
}

CASE(a_program_with_open_sizes_gives_one_for_the_hosts_addresses)
{
    const size_t lens[] = {4}, rank = 1;
    const char *const name = "x";
    bool there = true;
    migraphx_program_t p, fixed;
    if (!has_card())
        return;
    p = make_relu(true);
    OK(migraphx_program_takes_device_data(&there, p));
    CHECK(!there);
    OK(migraphx_program_specialise_on_card(&fixed, p, &name, lens, &rank, 1));
    OK(migraphx_program_takes_device_data(&there, fixed));
    CHECK(there);
    check_relu(fixed);
    OK(migraphx_program_destroy(p)); // which the other outlives
    check_relu(fixed);
    OK(migraphx_program_destroy(fixed));
}

TEST_MAIN(ROW(cards_have_names) ROW(a_place_is_found_by_its_name) ROW(bytes_go_in_and_out_in_order)
              ROW(the_processor_is_no_card)
                  ROW(programs_run_over_the_hosts_addresses_and_by_its_stream)
                      ROW(a_program_with_open_sizes_gives_one_for_the_hosts_addresses))
