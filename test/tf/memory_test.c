// SPDX-License-Identifier: MIT
// Import with every allocation failing in turn: MGX_NO_MEMORY (or success, where a lack of memory
// only costs an optimisation), nothing leaked, and the next import works.
#include "graph_writer.h"
#include "test_arena.h"
#include "test_malloc.h"

#define LENS(...)                                                                                  \
    (sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

// Imports a copy of the graph again and again, allocation number 0, 1, 2, ... failing.
static bool survives(struct pb *take_graph)
{
    bool ok = true, again = true;
    const struct mgx_tf_options options = {.nhwc = true, .skip_unknown_operators = true};
    for (long n = 0; ok && again; n++) {
        struct mgx_program *p = NULL;
        struct mgx_diag diag;
        mgx_diag_clear(&diag);
        const long live = test_malloc_live();
        test_malloc_fail_after(n);
        const enum mgx_status status =
            mgx_tf_import_buffer(&p, take_graph->data, take_graph->size, n % 2, &options, &diag);
        again = test_malloc_failed();
        test_malloc_fail_after(-1);
        mgx_program_destroy(p);
        const bool said = status == MGX_OK || (status == MGX_NO_MEMORY && again && diag.text[0]);
        ok = said && test_malloc_live() == live && (again || status == MGX_OK);
        if (!ok)
            printf("allocation %ld: status %s, %ld blocks left: %s\n", n, mgx_status_text(status),
                   test_malloc_live() - live, diag.text);
    }
    pb_free(take_graph);
    return ok;
}

CASE(a_convolution_a_call_and_a_slice)
{
    struct pb g = {0}, a = {0}, nodes = {0};
    const float weights[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, one = 1;
    tf_placeholder(&g, "x", LENS(1, 4, 4, 1));
    tf_constant(&g, "w", TF_FLOAT, LENS(3, 3, 1, 1), 4, weights, sizeof weights);
    tf_ints(&a, "strides", LENS(1, 1, 1, 1));
    tf_text(&a, "padding", "SAME");
    tf_node(&g, "conv", "Conv2D", "x,w", &a);
    tf_constant(&g, "one", TF_FLOAT, 0, NULL, 5, &one, 4);
    tf_node(&nodes, "sum", "AddV2", "a0,a1", NULL);
    tf_define(&g, "f", 2, &nodes, 1, (const char *const[]){"sum:z:0"});
    tf_function(&a, "f", "f");
    tf_node(&g, "call", "PartitionedCall", "conv,one", &a);
    tf_vector(&g, "begin", 4, (int64_t[]){0, 1, 1, 0});
    tf_vector(&g, "end", 4, (int64_t[]){1, 3, 4, 1});
    tf_vector(&g, "steps", 4, (int64_t[]){1, 1, 2, 1});
    tf_node(&g, "s", "StridedSlice", "call,begin,end,steps", &a);
    tf_node(&g, "y", "NobodyKnowsThis", "s", NULL);
    CHECK(survives(&g));
}

// while (a0 < 10) a0 = a0 + 1, as functions.
CASE(a_loop_of_functions)
{
    struct pb g = {0}, a = {0}, nodes = {0}, library = {0};
    const float ten = 10;
    tf_constant(&nodes, "ten", TF_FLOAT, 0, NULL, 5, &ten, 4);
    tf_node(&nodes, "less", "Less", "a0,ten:output:0", NULL);
    tf_add_function(&library, "test", 1, &nodes, 1, (const char *const[]){"less:z:0"});
    tf_node(&nodes, "square", "Square", "a0", NULL);
    tf_add_function(&library, "step", 1, &nodes, 1, (const char *const[]){"square:y:0"});
    pb_message(&g, 2, &library);
    tf_placeholder(&g, "x", 0, NULL);
    tf_function(&a, "cond", "test");
    tf_function(&a, "body", "step");
    tf_node(&g, "y", "While", "x", &a);
    CHECK(survives(&g));
}

// The same as a frame, with a condition behind it.
CASE(a_frame_and_a_condition)
{
    struct pb g = {0}, a = {0};
    const float ten = 10;
    tf_placeholder(&g, "x", 0, NULL);
    tf_constant(&g, "ten", TF_FLOAT, 0, NULL, 5, &ten, 4);
    tf_text(&a, "frame_name", "f");
    tf_node(&g, "enter", "Enter", "x", &a);
    tf_text(&a, "frame_name", "f");
    tf_node(&g, "bound", "Enter", "ten", &a);
    tf_node(&g, "merge", "Merge", "enter,next", NULL);
    tf_node(&g, "less", "Less", "merge,bound", NULL);
    tf_node(&g, "test", "LoopCond", "less", NULL);
    tf_node(&g, "switch", "Switch", "merge,test", NULL);
    tf_node(&g, "square", "Square", "switch:1", NULL);
    tf_node(&g, "next", "NextIteration", "square", NULL);
    tf_node(&g, "exit", "Exit", "switch", NULL);
    tf_node(&g, "is", "Less", "exit,ten", NULL);
    tf_node(&g, "which", "Switch", "exit,is", NULL);
    tf_node(&g, "yes", "Neg", "which:1", NULL);
    tf_node(&g, "no", "Abs", "which:0", NULL);
    tf_node(&g, "y", "Merge", "no,yes", NULL);
    CHECK(survives(&g));
}

TEST_MAIN(ROW(a_convolution_a_call_and_a_slice) ROW(a_loop_of_functions)
              ROW(a_frame_and_a_condition))
