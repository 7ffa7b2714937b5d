// SPDX-License-Identifier: MIT
// ONNX import: bytes to a program. See docs/onnx.md.
#pragma once

#include "ir/module.h"

struct mgx_onnx_dims { // sizes of one input, by name
    const char *name;
    const struct mgx_dim *dims; // a fixed size is min == max; count 0 makes it a scalar
    int count;
};

struct mgx_onnx_dim_param { // size of a named dimension ("batch")
    const char *name;
    struct mgx_dim dim;
};

// All zero is the default. A limit of 0 means the default in brackets.
enum { MGX_ONNX_DEFAULT_LOOP = 10, MGX_ONNX_LIMIT_LOOP = 65535 };

struct mgx_onnx_options {
    int64_t default_dim_value;      // size of unknown dimensions; 0 = off
    struct mgx_dim default_dyn_dim; // range of unknown dimensions; {0,0} or {1,1} = off
    bool dynamic_dims; // keep free dimensions free (ranges with the model's names) instead of 1
    const struct mgx_onnx_dims *inputs;
    int input_count;
    const struct mgx_onnx_dim_param *dim_params;
    int dim_param_count;
    bool skip_unknown_operators; // they become `unknown:<Op>` instructions
    bool debug_symbols;          // print node names
    // Rounds of loops whose trip count is not in the model. The default, MIGraphX's, leaves it to
    // the model: such a loop runs until its condition ends it.
    int64_t max_loop_iterations; // [10]
    // No loop runs on after it. The default bounds only loops without any trip count.
    int64_t limit_loop_iterations;  // [65535]
    const char *external_data_path; // directory; NULL = the model's own
    size_t limit_bytes;   // of one tensor and of all folded constants together [4 GiB / 256 MiB]
    int64_t limit_nodes;  // after expansion of functions [10,000,000]
    int limit_depth;      // of nested graphs, messages and function calls [64]
    double limit_seconds; // of the whole import [60]
    bool quick_reject;    // stop at the first unsupported node instead of listing them all
};

enum mgx_status mgx_onnx_import_file(struct mgx_program **out, const char *path,
                                     const struct mgx_onnx_options *options,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// The bytes must outlive the program unless `copy`; external data then needs external_data_path.
enum mgx_status mgx_onnx_import_buffer(struct mgx_program **out, const void *data, size_t size,
                                       bool copy, const struct mgx_onnx_options *options,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// A value from a file: a TensorProto, or what `like` is of type MGX_SEQUENCE (SequenceProto) or
// MGX_TUPLE (OptionalProto). It shares the mapped file where it can.
enum mgx_status mgx_onnx_load_value(struct mgx_tensor *out, const char *path,
                                    const struct mgx_shape *like,
                                    struct mgx_diag *diag) MGX_NODISCARD;
// The operators of programs that come from here: all of them and onnx::deferred.
extern const struct mgx_op_set mgx_onnx_ops;
// Names of all supported operators, sorted, without duplicates.
int mgx_onnx_operator_count(void);
const char *mgx_onnx_operator_name(int i);
