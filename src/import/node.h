// SPDX-License-Identifier: MIT
// What an operator's rule of any importer sees: one node of a model, its inputs, and where to emit
// instructions. What is special to a format (attributes, names, bodies) each importer adds for
// itself: onnx/node.h, tf/node.h.
//
// Emitting is sticky (build.h): NULL in gives NULL out, and whoever applied the rule checks the
// program's status once after it.
#pragma once

#include "import/fold.h"
#include "op/op.h"

struct mgx_onnx_graph;
struct mgx_onnx_op;
struct mgx_tf_graph;
struct mgx_tf_op;

struct mgx_node {
    const char *name; // of the node, "" if it has none
    const char *op_type;
    const char *domain;        // of an ONNX operator, "" for ai.onnx
    int64_t opset;             // version of that domain in force
    struct mgx_module *module; // where to emit
    struct mgx_ins *before;    // in front of this instruction of it; NULL: at the end
    struct mgx_ins *const *in; // NULL for an absent optional input
    int in_count;
    struct mgx_ins **out; // out_count results to set; those that nobody can name may stay NULL
    int out_count;
    struct mgx_arena *scratch; // freed after the rule
    struct mgx_diag *diag;
    struct mgx_fold *fold; // constants of the whole import
    uint32_t *asked;       // inputs, by bit, that a rule asked for and are no constants; or NULL
    const char *origin;    // "name (OpType)", made when first needed
    const void *wire;      // the node as it was read
    union {                // the walk's state and the rule being applied
        struct {
            struct mgx_onnx_graph *graph;
            const struct mgx_onnx_op *rule;
        };
        struct {
            struct mgx_tf_graph *tf;
            const struct mgx_tf_op *tf_rule;
        };
    };
};

// --- inputs ---
struct mgx_ins *mgx_node_in(const struct mgx_node *n, int i); // NULL if absent or beyond the list
// Arity (max_in < 0: no upper limit) and that the required ones are there.
enum mgx_status mgx_node_need(struct mgx_node *n, int min_in, int max_in) MGX_NODISCARD;
// The first `count` inputs, those that are there, are floats: what a rule computes of integers
// would be cut off to whole numbers.
enum mgx_status mgx_node_need_floats(struct mgx_node *n, int count) MGX_NODISCARD;
// One input or more, none absent between or behind the others.
enum mgx_status mgx_node_need_all(struct mgx_node *n) MGX_NODISCARD;
// The value of an input if it is a constant (folded within the limits), else NULL. Lives as long as
// the import; a literal made of it keeps its own share.
const struct mgx_tensor *mgx_node_constant(const struct mgx_node *n, int i);
// The same as integers. False if unknown.
bool mgx_node_constant_ints(const struct mgx_node *n, int i, struct mgx_ints *out);
// Says that a rule will want these inputs' values, though it stops at the first unknown one.
void mgx_node_ask(const struct mgx_node *n, int first, int count);

// What was recorded so far: an attribute that could not be read, an instruction that could not be
// made.
enum mgx_status mgx_node_status(const struct mgx_node *n) MGX_NODISCARD;

// --- refusing; both return the first failure: an attribute that could not be read looks like a
// wrong one ---
enum mgx_status mgx_node_unsupported(struct mgx_node *n, const char *fmt, ...) MGX_PRINTF(2, 3);
enum mgx_status mgx_node_invalid(struct mgx_node *n, const char *fmt, ...) MGX_PRINTF(2, 3);
