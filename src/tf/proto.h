// SPDX-License-Identifier: MIT
// The messages of a TensorFlow model, read on demand: a struct here holds slices of the file and
// lists of slices; what is inside them is read when it is needed.
//
// Holds: what message.h says of lists and names; unknown fields are ignored. Cost: two passes over
// a message's own fields, never into its children.
#pragma once

#include "import/message.h"
#include "ir/shape.h"

struct mgx_tf_graph_def {
    struct mgx_messages nodes, functions;
};

struct mgx_tf_node_def {
    struct mgx_slice name, op;
    struct mgx_names in;
    struct mgx_messages attributes; // entries of a map
};

struct mgx_tf_function_def {
    struct mgx_slice name;
    struct mgx_messages inputs, outputs; // ArgDef
    struct mgx_messages attributes, nodes, results, control_results;
};

// AttrValue: one of its fields.
enum mgx_tf_kind {
    MGX_TF_NONE = 0,
    MGX_TF_LIST = 1,
    MGX_TF_TEXT = 2,
    MGX_TF_INT = 3,
    MGX_TF_FLOAT = 4,
    MGX_TF_BOOL = 5,
    MGX_TF_TYPE = 6,
    MGX_TF_SHAPE = 7,
    MGX_TF_TENSOR = 8,
    MGX_TF_PLACEHOLDER = 9,
    MGX_TF_FUNCTION = 10,
};

struct mgx_tf_attribute {
    enum mgx_tf_kind kind;
    struct mgx_wire body; // of a list, text, shape, tensor, function, placeholder
    int64_t number;       // of an int, bool or type
    float real;
};

enum mgx_status mgx_tf_read_graph(struct mgx_wire w, struct mgx_arena *arena,
                                  struct mgx_tf_graph_def *out,
                                  struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_tf_read_node(struct mgx_wire w, struct mgx_arena *arena,
                                 struct mgx_tf_node_def *out, struct mgx_diag *diag) MGX_NODISCARD;
// Only name and operator, for an index of nodes.
enum mgx_status mgx_tf_read_node_name(struct mgx_wire w, struct mgx_slice *name,
                                      struct mgx_slice *op, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_tf_read_function(struct mgx_wire w, struct mgx_arena *arena,
                                     struct mgx_tf_function_def *out,
                                     struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_tf_read_attribute(struct mgx_wire w, struct mgx_tf_attribute *out,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// Key and value of a map's entry with a text key.
enum mgx_status mgx_tf_read_entry(struct mgx_wire w, struct mgx_slice *key, struct mgx_wire *value,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// The value of a key in a map; value->p is NULL if it is not there.
enum mgx_status mgx_tf_find_entry(const struct mgx_messages *map, struct mgx_slice key,
                                  struct mgx_wire *value, struct mgx_diag *diag) MGX_NODISCARD;
// A text field of a message: the name of an ArgDef (1) or of a NameAttrList (1), and the like.
struct mgx_slice mgx_tf_text_field(struct mgx_wire w, uint32_t number);

// TensorShapeProto: rank -1 if unknown, lengths -1 where unknown.
enum mgx_status mgx_tf_read_shape(struct mgx_wire w, int *rank, int64_t lens[MGX_MAX_RANK],
                                  struct mgx_diag *diag) MGX_NODISCARD;
// DataType number to our type; fails with the number in the message.
enum mgx_status mgx_tf_type_of(int64_t number, enum mgx_type *out,
                               struct mgx_diag *diag) MGX_NODISCARD;
