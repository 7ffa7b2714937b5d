// SPDX-License-Identifier: MIT
// Attributes of onnx::deferred.
#pragma once

#include "onnx/graph.h"

struct deferred {
    const char *op_type;
    const char *node;
    int64_t opset;
    struct mgx_ints types; // of the results, in enum mgx_type; -1 - type: a sequence of that
    int64_t max_loop, limit_loop;
    const char *model; // base64
    int64_t asks;      // inputs, by bit, of which the import wanted values in vain
};

extern const struct mgx_op mgx_onnx_deferred;
