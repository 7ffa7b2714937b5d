// SPDX-License-Identifier: MIT
// The messages of an ONNX file, read on demand: a struct here holds slices of the file and lists of
// slices; what is inside them is read when it is needed.
//
// Holds: what message.h says of lists and names; unknown fields are ignored.
#pragma once

#include "import/message.h"

// Newest versions this importer was written for.
enum { MGX_ONNX_IR_MAX = 14, MGX_ONNX_OPSET_MAX = 28 };

struct mgx_onnx_opset {
    struct mgx_slice domain;
    int64_t version;
};

struct mgx_onnx_opsets {
    const struct mgx_onnx_opset *v;
    int count;
};

struct mgx_onnx_model {
    int64_t ir_version;
    struct mgx_onnx_opsets opsets;
    struct mgx_wire graph;
    struct mgx_messages functions;
};

struct mgx_onnx_graph_proto {
    struct mgx_messages nodes, initializers, sparse, inputs, outputs;
};

struct mgx_onnx_function_proto {
    struct mgx_slice name, domain, overload;
    struct mgx_names inputs, outputs, attributes;
    struct mgx_messages defaults; // attributes with a value of their own
    struct mgx_messages nodes;
    struct mgx_onnx_opsets opsets;
};

// AttributeProto.AttributeType
enum mgx_onnx_kind {
    MGX_ONNX_UNDEFINED = 0,
    MGX_ONNX_FLOAT = 1,
    MGX_ONNX_INT = 2,
    MGX_ONNX_STRING = 3,
    MGX_ONNX_TENSOR = 4,
    MGX_ONNX_GRAPH = 5,
    MGX_ONNX_FLOATS = 6,
    MGX_ONNX_INTS = 7,
    MGX_ONNX_STRINGS = 8,
    MGX_ONNX_TENSORS = 9,
    MGX_ONNX_GRAPHS = 10,
    MGX_ONNX_SPARSE = 11,
    MGX_ONNX_SPARSES = 12,
    MGX_ONNX_TYPE = 13,
    MGX_ONNX_TYPES = 14,
};

struct mgx_onnx_graph;

struct mgx_onnx_attribute {
    struct mgx_slice name;
    struct mgx_slice reference; // not empty: the value is an attribute of the enclosing function
    enum mgx_onnx_kind kind;
    struct mgx_wire body;
    struct mgx_onnx_graph *home; // the scope it was written in, for graphs
};

struct mgx_onnx_node_proto {
    struct mgx_slice name, op_type, domain, overload;
    struct mgx_names in, out;
    const struct mgx_onnx_attribute *attributes;
    int attribute_count;
    bool has_graphs; // some attribute is a graph
    struct mgx_wire body;
};

enum mgx_status mgx_onnx_read_model(struct mgx_wire w, struct mgx_arena *arena,
                                    struct mgx_onnx_model *out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_onnx_read_graph(struct mgx_wire w, struct mgx_arena *arena,
                                    struct mgx_onnx_graph_proto *out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_onnx_read_function(struct mgx_wire w, struct mgx_arena *arena,
                                       struct mgx_onnx_function_proto *out,
                                       struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_onnx_read_node(struct mgx_wire w, struct mgx_arena *arena,
                                   struct mgx_onnx_node_proto *out,
                                   struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_onnx_read_attribute(struct mgx_wire w, struct mgx_onnx_attribute *out,
                                        struct mgx_diag *diag) MGX_NODISCARD;
// Name and type of a ValueInfoProto.
enum mgx_status mgx_onnx_read_value(struct mgx_wire w, struct mgx_slice *name,
                                    struct mgx_wire *type, struct mgx_diag *diag) MGX_NODISCARD;
// The graphs of an attribute (field g, or each of graphs): calls for message number i = 0, 1, ...
bool mgx_onnx_attribute_graph(const struct mgx_onnx_attribute *a, int i, struct mgx_wire *out);

// "" and "ai.onnx" are the same domain.
bool mgx_onnx_same_domain(struct mgx_slice a, struct mgx_slice b);
bool mgx_onnx_is_standard(struct mgx_slice domain);
