// SPDX-License-Identifier: MIT
// State of an import, private to onnx/.
//
//   import   one per model: program, options, limits, files, rules, functions, folded constants
//   graph    one per scope: main graph, body of a control-flow node, expanded function call
//   value    one per name of a scope: the instruction once it exists, and the node that makes it
//
// Holds: names and lists are slices of the file; structs lie in import->arena, what one node needs
// in import->scratch, which is rewound after the node. Scopes live on the C stack, at most
// limit_depth of them.
#pragma once

#include "import/missing.h"
#include "import/source.h"
#include "onnx/build.h"
#include "onnx/proto.h"
#include "op/eval/eval.h"

// --- import ---

struct mgx_onnx_function {
    struct mgx_onnx_function_proto proto;
    int64_t cost; // nodes after expansion; 0: not computed yet, -1: being computed
};

// A call in force: what the body's attribute references stand for.
struct mgx_onnx_call {
    const struct mgx_onnx_function *function;
    const struct mgx_onnx_attribute *attributes; // no references among them
    int attribute_count;
};

// What is known beforehand of the main graph's i-th input (import of a single deferred node).
struct mgx_onnx_bound {
    const struct mgx_tensor *value; // NULL: only the shape is known; else it owns a storage
    const struct mgx_shape *shape;
};

// What a judgement says of the nodes of the main graph, and with what it goes on behind one that is
// refused.
struct mgx_onnx_verdicts {
    const char **why; // on the heap; NULL: the node is taken
    int count;
    struct mgx_map types; // name of a value -> its TypeProto, a struct mgx_wire
};

struct mgx_onnx_handed;
struct mgx_onnx_weight;

struct mgx_onnx_import {
    struct mgx_program *program;
    struct mgx_onnx_options options; // with all limits filled in
    struct mgx_diag *diag;           // the caller's, or own_diag
    struct mgx_diag own_diag;
    struct mgx_arena arena, scratch;
    struct mgx_source source;
    struct mgx_onnx_model model;
    struct mgx_map functions; // "domain:name:overload" -> struct mgx_onnx_function *
    struct mgx_fold fold;     // constants; the budget of bytes and seconds
    int64_t node_count;
    struct mgx_missing missing;
    const struct mgx_onnx_bound *bound; // of a deferred node
    int bound_count;
    struct mgx_ins *before; // import in place: in front of which instruction; NULL: at the end
    bool final;             // a rule that defers now fails: nothing more will be known later
    bool gave_up;           // ... and this says that one did
    const char *rank_note;  // of an input that was given sizes of another rank than it declares
    const struct mgx_onnx_handed *handed; // a host's weights; NULL: the model has them all
    struct mgx_onnx_verdicts *verdicts; // to fill in; NULL: a node that is refused ends the import
    bool misfit; // a node was refused for its operands and attributes, not for what the graph is
};

// An import without bytes yet, and the end of it (the program is the caller's).
enum mgx_status mgx_onnx_begin(struct mgx_onnx_import *import,
                               const struct mgx_onnx_options *options,
                               struct mgx_diag *diag) MGX_NODISCARD;
void mgx_onnx_end(struct mgx_onnx_import *import);
// What comes between: a program over `ops` from the opened source, or what `opened` says; ends the
// import.
enum mgx_status mgx_onnx_run(struct mgx_onnx_import *import, enum mgx_status opened,
                             const struct mgx_op_set *ops, struct mgx_program **out) MGX_NODISCARD;
// MGX_LIMIT when the import has taken too long.
enum mgx_status mgx_onnx_check_time(struct mgx_onnx_import *import) MGX_NODISCARD;
// Takes bytes from the budget of folded constants.
enum mgx_status mgx_onnx_spend(struct mgx_onnx_import *import, size_t bytes,
                               const char *what) MGX_NODISCARD;

// --- scopes ---

struct mgx_onnx_value {
    struct mgx_ins *ins; // NULL until its node was imported
    int node;            // that makes it; -1: an input or initialiser
};

struct mgx_onnx_graph {
    struct mgx_onnx_import *import;
    struct mgx_onnx_graph *up; // the enclosing graph; NULL for main and inside functions
    struct mgx_module *module;
    const struct mgx_onnx_call *call; // NULL outside functions
    struct mgx_onnx_opsets opsets;
    struct mgx_messages nodes;
    uint8_t *state; // per node
    struct mgx_map values;
    int depth;         // of scopes
    const char *label; // "<OpType>_<n>": MIGraphX's name for it, for the modules of its bodies
};

// Makes names known, then imports all nodes in an order that respects data flow.
enum mgx_status mgx_onnx_graph_start(struct mgx_onnx_graph *g) MGX_NODISCARD;
enum mgx_status mgx_onnx_graph_nodes(struct mgx_onnx_graph *g) MGX_NODISCARD;
void mgx_onnx_graph_fini(struct mgx_onnx_graph *g);
// Where a failure is, before its node has been read: "node 3 of 12".
void mgx_onnx_blame_index(struct mgx_onnx_graph *g, int node);
// A name that comes from outside the nodes (input, initialiser).
enum mgx_status mgx_onnx_graph_define(struct mgx_onnx_graph *g, struct mgx_slice name,
                                      struct mgx_ins *ins) MGX_NODISCARD;
// In this scope or an enclosing one; NULL if unknown.
struct mgx_onnx_value *mgx_onnx_graph_find(const struct mgx_onnx_graph *g, struct mgx_slice name);
// The instruction of a result; fails if the name is unknown or was left unset.
enum mgx_status mgx_onnx_graph_result(struct mgx_onnx_graph *g, struct mgx_slice name,
                                      struct mgx_ins **out) MGX_NODISCARD;
// Version of a domain in force here; 0 if it is not imported.
int64_t mgx_onnx_opset_of(const struct mgx_onnx_graph *g, struct mgx_slice domain);
// Initialisers and inputs of a GraphProto. The first inputs may be bound to instructions instead of
// becoming parameters, or get shapes other than those they declare.
struct mgx_onnx_arguments {
    struct mgx_ins *const *given;
    int given_count;
    const struct mgx_shape *shapes;
    int shape_count;
};
enum mgx_status mgx_onnx_graph_inputs(struct mgx_onnx_graph *g,
                                      const struct mgx_onnx_graph_proto *proto,
                                      const struct mgx_onnx_arguments *arguments) MGX_NODISCARD;

// --- parts ---

// Names that the graphs of a node read from outside them, in order of appearance.
enum mgx_status mgx_onnx_captures(struct mgx_onnx_import *import,
                                  const struct mgx_onnx_node_proto *node, int depth,
                                  struct mgx_arena *arena, struct mgx_names *out) MGX_NODISCARD;
// Attribute by name with its reference resolved; NULL if absent.
const struct mgx_onnx_attribute *mgx_onnx_attribute(const struct mgx_node *n, const char *name);
const struct mgx_onnx_attribute *mgx_onnx_resolve(const struct mgx_onnx_graph *g,
                                                  const struct mgx_onnx_attribute *a);
// TensorProto and SparseTensorProto to a tensor that shares or owns its bytes. `name` may be NULL.
enum mgx_status mgx_onnx_read_tensor(struct mgx_onnx_import *import, struct mgx_wire w,
                                     struct mgx_slice *name, struct mgx_tensor *out) MGX_NODISCARD;
enum mgx_status mgx_onnx_read_sparse(struct mgx_onnx_import *import, struct mgx_wire w,
                                     struct mgx_slice *name, struct mgx_tensor *out) MGX_NODISCARD;
// A host's weight as a tensor that shows its bytes, or a copy where that cannot be.
enum mgx_status mgx_onnx_show_weight(struct mgx_onnx_import *import,
                                     const struct mgx_onnx_weight *w,
                                     struct mgx_tensor *out) MGX_NODISCARD;
enum mgx_status mgx_onnx_type_of(int64_t number, enum mgx_type *out,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// TypeProto to a shape, with the options applied to what it leaves free.
enum mgx_status mgx_onnx_read_type(struct mgx_onnx_import *import, struct mgx_wire type,
                                   const char *name, struct mgx_shape *out) MGX_NODISCARD;
// How many axes a tensor type declares beyond `rank`, if all of those say that their length is 1; 0
// where one does not, or the type says no lengths.
int mgx_onnx_trailing_ones(struct mgx_wire type, int rank);
// Bytes of a file beside the model.
enum mgx_status mgx_onnx_external(struct mgx_onnx_import *import,
                                  const struct mgx_messages *entries, size_t need,
                                  struct mgx_region *out) MGX_NODISCARD;

// --- functions of the model ---
enum mgx_status mgx_onnx_functions_read(struct mgx_onnx_import *import) MGX_NODISCARD;
struct mgx_onnx_function *mgx_onnx_function_find(struct mgx_onnx_import *import,
                                                 const struct mgx_onnx_node_proto *node);
// Checks the number of nodes after expansion against the limit before anything is imported.
enum mgx_status mgx_onnx_budget(struct mgx_onnx_import *import,
                                struct mgx_messages nodes) MGX_NODISCARD;

// --- rules ---
// NULL, and why, when there is none.
const struct mgx_onnx_op *mgx_onnx_rule_find(const struct mgx_onnx_graph *g,
                                             const struct mgx_onnx_node_proto *node, int64_t *opset,
                                             const char **why);

// Refuses inputs of kinds that the operator is not meant for.
enum mgx_status mgx_onnx_admit(struct mgx_node *n) MGX_NODISCARD;

// Remembers an operator that cannot be imported; MGX_OK when the import may go on to find more.
enum mgx_status mgx_onnx_add_missing(struct mgx_node *n, const char *why) MGX_NODISCARD;
// One failure that lists them all, or MGX_OK.
enum mgx_status mgx_onnx_report_missing(struct mgx_onnx_import *import) MGX_NODISCARD;

// --- judgement ---
// Reads what the graph says of its values' types.
enum mgx_status mgx_onnx_judge_begin(struct mgx_onnx_graph *g) MGX_NODISCARD;
// Notes why a node of the main graph is not taken, and puts parameters in the place of its results.
// Fails with what has nothing to do with the node.
enum mgx_status mgx_onnx_judge_refuse(struct mgx_onnx_graph *g, int node,
                                      const struct mgx_onnx_node_proto *proto,
                                      enum mgx_status status) MGX_NODISCARD;

// --- deferral ---
// Element type of result i of a node, as far as the standard says; `sequence`: of its members.
enum mgx_type mgx_onnx_result_type(const struct mgx_node *n, int i, bool *sequence);
// The same as far as the rule's row says; false where a body has to.
bool mgx_onnx_promised_type(const struct mgx_node *n, int i, enum mgx_type *type, bool *sequence);
// Loop, Scan and If: the type that their body declares for result i.
bool mgx_onnx_declared_type(const struct mgx_node *n, const char *body, int i, enum mgx_type *type,
                            bool *sequence);
// Imports a model from memory with inputs given; what the deferred operator does at run time.
enum mgx_status mgx_onnx_import_bound(struct mgx_program **out, const void *data, size_t size,
                                      const struct mgx_onnx_options *options,
                                      const struct mgx_onnx_bound *bound, int count, bool *gave_up,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// Imports a model from memory in front of an instruction, its inputs bound to `in`.
enum mgx_status mgx_onnx_import_at(struct mgx_ins *before, const void *data, size_t size,
                                   const struct mgx_onnx_options *options,
                                   struct mgx_ins *const *in, int in_count,
                                   struct mgx_ins **results, bool *gave_up,
                                   struct mgx_diag *diag) MGX_NODISCARD;
