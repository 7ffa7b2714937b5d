// SPDX-License-Identifier: MIT
// A loop of either kind, functional (While) or of frames (Enter .. Exit): values go round while a
// test holds.
//
// What a loop hands through unchanged is read from outside by its body; the rest is carried. Lists
// of tensors are one tensor; a list that is empty at first gets its members' shape from what the
// body puts in.
#pragma once

#include "tf/graph.h"

struct mgx_tf_loop {
    struct mgx_node *n;
    int count;
    struct mgx_ins **values; // at the start; at the end afterwards
    bool *fixed;             // handed through
    // What the values are tested and replaced by, emitted into a module.
    enum mgx_status (*test)(struct mgx_tf_loop *l, struct mgx_module *m,
                            struct mgx_ins *const *values, struct mgx_ins **out);
    enum mgx_status (*step)(struct mgx_tf_loop *l, struct mgx_module *m,
                            struct mgx_ins *const *values, struct mgx_ins **next);
    void *context;
};

enum mgx_status mgx_tf_loop_import(struct mgx_tf_loop *l) MGX_NODISCARD;

// A module for a body, named after the node; NULL with a failure.
struct mgx_module *mgx_tf_add_module(struct mgx_node *n, const char *what);
// A condition as one bool: a number counts when it is not 0.
struct mgx_ins *mgx_tf_condition(struct mgx_node *n, struct mgx_ins *x);
