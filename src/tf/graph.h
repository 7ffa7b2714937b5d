// SPDX-License-Identifier: MIT
// State of an import, private to tf/.
//
//   import   one per model: program, options, limits, files, functions, variables, constants
//   body     nodes and their names: of the main graph, of each function; made once
//   graph    one per scope: a body with its arguments, results of nodes as they are imported
//   handle   what stands for a value that is no tensor: a variable, a list of tensors
//
// Nodes are imported on demand, from the results asked for; nobody's node is never looked at.
//
// Holds: names and lists are slices of the file; structs lie in import->arena, what one node needs
// in import->scratch, which is rewound after the node. Scopes live on the C stack, at most
// limit_depth of them.
#pragma once

#include "import/missing.h"
#include "import/source.h"
#include "tf/bundle.h"
#include "tf/node.h"
#include "tf/proto.h"

struct mgx_tf_body {
    struct mgx_messages nodes;
    struct mgx_map places;                      // name -> node, or nodes.count + argument; plus one
    const struct mgx_tf_function_def *function; // NULL: the main graph
    bool switches;                              // control inputs say by which conditions nodes run
    struct mgx_tf_frames *frames;               // NULL until the first is met
};

enum mgx_tf_handle_kind {
    MGX_TF_VARIABLE,
    MGX_TF_REFERENCE, // a variable that stands for its value wherever a tensor is asked for
    MGX_TF_LIST_OF_TENSORS,
    MGX_TF_NOTHING, // a table, a name of a file: what only nodes that are not imported can use
};

struct mgx_tf_handle {
    enum mgx_tf_handle_kind kind;
    struct mgx_ins *value; // of a variable, once it was assigned; in main
    const char *name;
    enum mgx_type type; // of a list that holds nothing yet
    int64_t count;
    int rank; // of its members, -1 if unknown
    int64_t lens[MGX_MAX_RANK];
};

struct mgx_tf_import {
    struct mgx_program *program;
    struct mgx_tf_options options; // with all limits filled in
    struct mgx_diag *diag;         // the caller's, or own_diag
    struct mgx_diag own_diag;
    struct mgx_arena arena, scratch;
    struct mgx_source source;
    struct mgx_fold fold;
    struct mgx_missing missing;
    struct mgx_map functions; // name -> struct mgx_tf_body *
    struct mgx_map handles;   // instruction -> struct mgx_tf_handle *
    struct mgx_map variables; // name -> instruction of the handle
    struct mgx_map inputs;    // placeholder -> name of its parameter, by the signature
    struct mgx_tf_bundle bundle;
    const char *shapeless; // the first input whose rank nobody says; NULL: none
    int64_t node_count;
    int64_t result_count; // of nodes with several
    int loops;            // being imported, one inside the other
};

// The condition under which a node runs, by Switch.
struct mgx_tf_guard {
    struct mgx_ins *condition;
    bool side;
    const struct mgx_tf_guard *up;
};

struct mgx_tf_state { // of a node in a scope
    uint8_t phase;
    bool dead; // behind a Switch that goes the other way
    int out_count;
    struct mgx_ins **out;
    const struct mgx_tf_op *rule;
    const struct mgx_tf_guard *guard;
    struct mgx_ins *condition; // of a Switch
};

struct mgx_tf_graph {
    struct mgx_tf_import *import;
    struct mgx_tf_graph *up; // the calling scope
    struct mgx_module *module;
    struct mgx_tf_body *body;
    struct mgx_tf_state *states; // per node
    struct mgx_ins *const *args; // of a function
    int arg_count;
    const struct mgx_node *call; // whose attributes the function's placeholders name
    int depth;
    bool effects; // nodes are followed along control inputs too
    // Of the Merge in hand: its values' guards, the place of its first value that lives; its own.
    const struct mgx_tf_guard **guards;
    int first_alive;
    const struct mgx_tf_guard *merged;
};

// What an input or a result's name means: "^node", "node", "node:1", "node:output:1", "argument".
struct mgx_tf_reference {
    struct mgx_slice name, output;
    int64_t index;
    bool control;
};

// --- names (names.c) ---
struct mgx_tf_reference mgx_tf_reference_of(struct mgx_slice text);
// The node or argument of a name; -1 if there is none.
int64_t mgx_tf_place(const struct mgx_tf_body *body, struct mgx_slice name);

// --- the main graph (main.c) ---
// The functions of a graph, and a scope over its nodes; `use` gets the scope.
enum mgx_status mgx_tf_import_graph(struct mgx_tf_import *import, struct mgx_wire bytes,
                                    enum mgx_status (*use)(struct mgx_tf_graph *g, void *context),
                                    void *context) MGX_NODISCARD;
// Imports what the names say into main and returns it from there under these names.
enum mgx_status mgx_tf_add_results(struct mgx_tf_graph *g, const struct mgx_slice *references,
                                   const struct mgx_slice *names, int count) MGX_NODISCARD;

// --- scopes (graph.c) ---
enum mgx_status mgx_tf_body_init(struct mgx_tf_import *import, struct mgx_messages nodes,
                                 const struct mgx_tf_function_def *function,
                                 struct mgx_tf_body *body) MGX_NODISCARD;
void mgx_tf_body_fini(struct mgx_tf_body *body);
// Needs import, module, body, and for functions args, call; sets the rest.
enum mgx_status mgx_tf_graph_start(struct mgx_tf_graph *g) MGX_NODISCARD;
// The value of a reference, its node imported. NULL for a control reference and a dead node.
enum mgx_status mgx_tf_graph_value(struct mgx_tf_graph *g, struct mgx_slice reference,
                                   struct mgx_ins **out) MGX_NODISCARD;
// Imports the node of a name for what it does: "^name". `what` says whose name it is.
enum mgx_status mgx_tf_graph_effect(struct mgx_tf_graph *g, struct mgx_slice name,
                                    const char *what) MGX_NODISCARD;
// A node's one result without importing it: both results of a Switch.
enum mgx_status mgx_tf_graph_bind(struct mgx_tf_graph *g, int node,
                                  struct mgx_ins *value) MGX_NODISCARD;

// --- SavedModels (saved.c) ---
// Are these the bytes of a saved_model.pb rather than of a graph?
bool mgx_tf_is_saved_model(struct mgx_wire bytes);
enum mgx_status mgx_tf_import_saved(struct mgx_tf_import *import) MGX_NODISCARD;

// --- rules (rules.c) ---
const struct mgx_tf_op *mgx_tf_rule_find(struct mgx_slice name); // NULL if there is none

// --- attributes ---
// By name, placeholders resolved; false if it is absent.
bool mgx_tf_attribute(const struct mgx_node *n, const char *name, struct mgx_tf_attribute *out);
// The function that an attribute names; fails if there is none.
enum mgx_status mgx_tf_function(const struct mgx_node *n, const char *name,
                                struct mgx_tf_body **out) MGX_NODISCARD;

// The functions of a list of them.
enum mgx_status mgx_tf_functions(const struct mgx_node *n, const char *name,
                                 struct mgx_tf_body ***out, int *count) MGX_NODISCARD;

// --- tensors (tensor.c) ---
struct mgx_ins *mgx_tf_read_tensor(struct mgx_node *n, struct mgx_wire w);
// Bytes of a file, as many as the shape needs, as a tensor that shows or copies them.
enum mgx_status mgx_tf_from_region(struct mgx_node *n, const struct mgx_region *region,
                                   const struct mgx_shape *shape,
                                   struct mgx_tensor *out) MGX_NODISCARD;

// --- handles ---
struct mgx_ins *mgx_tf_new_handle(struct mgx_node *n, struct mgx_tf_handle handle);
struct mgx_tf_handle *mgx_tf_handle_of(const struct mgx_node *n, const struct mgx_ins *ins);
