// SPDX-License-Identifier: MIT
// The frames of a graph of TensorFlow's first version: which nodes make which loop.
//
// A loop is a frame: values enter (Enter), meet what the last round made of them (Merge of Enter
// and NextIteration), go on or leave by a test (Switch by LoopCond), and leave (Exit). A Merge, a
// Switch or an Exit of no frame belongs to a condition. op/frame.c imports what is found here.
// Cost: one pass over the nodes of a graph that has frames, once.
#pragma once

#include "base/array.h"
#include "tf/graph.h"

struct mgx_tf_frame_value {
    int enter, merge, swap, next; // nodes; swap is the Switch, -1 until it is found
};

struct mgx_tf_frame_exit {
    int node, value;
};

struct mgx_tf_frame {
    struct mgx_slice name;
    int test;              // LoopCond, -1 until it is found
    MGX_ARRAY(int) enters; // of the invariants too
    MGX_ARRAY(struct mgx_tf_frame_value) values;
    MGX_ARRAY(struct mgx_tf_frame_exit) exits;
};

struct mgx_tf_frames {
    struct mgx_map by_name;   // struct mgx_tf_frame *
    uint8_t *kinds;           // per node
    struct mgx_tf_frame **of; // per Merge, Switch and Exit of a loop
    int *value;               // ... which of the frame's values; of an Enter, which Enter
};

// The loop that ends at this Exit; fails if it has no test or a value without a Switch.
enum mgx_status mgx_tf_frame_of(struct mgx_tf_graph *g, struct mgx_slice exit,
                                struct mgx_tf_frame **out) MGX_NODISCARD;
// What must be there before that loop can be imported: what enters it.
enum mgx_status mgx_tf_frame_needs(struct mgx_tf_graph *g, struct mgx_slice exit,
                                   struct mgx_names *out) MGX_NODISCARD;
// The first input of a node, as the file has it.
enum mgx_status mgx_tf_first_input(const struct mgx_tf_graph *g, int node,
                                   struct mgx_slice *out) MGX_NODISCARD;
void mgx_tf_frames_fini(struct mgx_tf_frames *f);
