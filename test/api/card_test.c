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

// y = relu(x), compiled for addresses of the card
static migraphx_program_t make_relu(void)
{
    migraphx_onnx_graph_t g;
    migraphx_program_t p;
    migraphx_target_t target;
    migraphx_compile_options_t options;
    const int64_t lens[] = {4};
    const migraphx_onnx_type type = {.element = 1, .rank = 1, .lens = lens};
    must(migraphx_onnx_graph_create(&g));
    must(migraphx_onnx_graph_set_opset(g, "", 17));
    must(migraphx_onnx_graph_add_input(g, "x", &type));
    must(migraphx_onnx_graph_add_node(g, "", "Relu", "", (const char *[]){"x"}, 1,
                                      (const char *[]){"y"}, 1));
    must(migraphx_onnx_graph_add_output(g, "y", NULL));
    must(migraphx_parse_onnx_graph(&p, g, NULL));
    must(migraphx_onnx_graph_destroy(g));
    must(migraphx_target_create(&target, "gpu"));
    must(migraphx_compile_options_create(&options));
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

CASE(programs_run_over_the_hosts_addresses_and_by_its_stream)
{
    static const float x[] = {1, -2, 3, -4}, want[] = {1, 0, 3, 0}, none[4] = {0};
    migraphx_device_queue_t queue;
    void *a, *b;
    if (!has_card())
        return;
    OK(migraphx_device_memory_allocate(&a, sizeof x, card));
    OK(migraphx_device_memory_allocate(&b, sizeof x, card));
    OK(migraphx_device_queue_create(&queue, card));
    migraphx_program_t p = make_relu();
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
    OK(migraphx_program_destroy(p));
    OK(migraphx_device_queue_destroy(queue));
    OK(migraphx_device_memory_free(a, card));
    OK(migraphx_device_memory_free(b, card));
}

TEST_MAIN(ROW(cards_have_names) ROW(bytes_go_in_and_out_in_order) ROW(the_processor_is_no_card)
              ROW(programs_run_over_the_hosts_addresses_and_by_its_stream))
