// SPDX-License-Identifier: MIT
// Import with every allocation failing in turn: MGX_NO_MEMORY (or success, where a lack of memory
// only costs an optimisation), nothing leaked, and the next import works.
#include "graph_writer.h"
#include "test_arena.h"
#include "test_import_memory.h"

static enum mgx_status import(const void *model, bool copy, struct mgx_program **out,
                              struct mgx_diag *diag)
{
    const struct mgx_tf_options options = {.nhwc = true, .skip_unknown_operators = true};
    const struct pb *graph = model;
    return mgx_tf_import_buffer(out, graph->data, graph->size, copy, &options, diag);
}

static bool survives(struct pb *take_graph)
{
    const bool ok = import_survives(import, take_graph);
    pb_free(take_graph);
    return ok;
}

CASE(a_convolution_a_call_and_a_slice)
{
    struct pb g = tf_small_graph();
    tf_node(&g, "z", "NobodyKnowsThis", "y", NULL);
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
