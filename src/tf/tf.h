// SPDX-License-Identifier: MIT
// TensorFlow import: a frozen graph or a SavedModel to a program. See docs/tensorflow.md.
#pragma once

#include "ir/module.h"

struct mgx_tf_dims { // sizes of one input, by name
    const char *name;
    const size_t *dims;
    size_t count;
};

// All zero is the default. A limit of 0 means the default in brackets.
struct mgx_tf_options {
    bool nhwc;    // inputs of rank 4 become parameters in the order N, C, H, W
    size_t batch; // of dimensions that the model leaves open [1]
    const struct mgx_tf_dims *inputs;
    size_t input_count;
    const char *const *outputs; // "node" or "node:k"; none: all nodes that feed nothing
    size_t output_count;
    bool skip_unknown_operators;   // they become `unknown:<Op>` instructions
    size_t limit_bytes;            // of one tensor and of all folded constants [4 GiB / 256 MiB]
    int64_t limit_nodes;           // after expansion of functions and bodies [10,000,000]
    int limit_depth;               // of nested calls and bodies [64]
    double limit_seconds;          // of the whole import [60]
    int64_t limit_loop_iterations; // of one that the model leaves to a condition [65,535]
};

// `path` is a frozen graph, a saved_model.pb or the folder that holds one.
enum mgx_status mgx_tf_import_file(struct mgx_program **out, const char *path,
                                   const struct mgx_tf_options *options,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// A frozen graph. The bytes must outlive the program unless `copy`.
enum mgx_status mgx_tf_import_buffer(struct mgx_program **out, const void *data, size_t size,
                                     bool copy, const struct mgx_tf_options *options,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// Names of all supported operators, sorted.
int mgx_tf_operator_count(void);
const char *mgx_tf_operator_name(int i);
