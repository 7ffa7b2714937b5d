// SPDX-License-Identifier: MIT
// What an operator is: one const object that says once everything that is true of it.
//
// Shape rule and compute are pure functions of what they are handed. The same shape rule serves
// import, passes, specialisation and the run, because it may look at input *values* where they are
// known: `reshape` with a second input, say, has a static result as soon as that input is a
// constant, and a dynamic one before. So nothing has to be written twice for dynamic shapes.
#pragma once

#include "ir/attr.h"
#include "ir/tensor.h"

struct mgx_ins;
struct mgx_module;
struct mgx_eval;

struct mgx_shape_call {
    const struct mgx_op *op;
    const void *attr;
    const struct mgx_shape *const *in;
    int in_count;
    const struct mgx_tensor *const
        *values; // NULL, or per input NULL or its value, when it is known
    struct mgx_module *const *mod;
    int mod_count;
    struct mgx_arena *arena; // for dims and sub of the result
    struct mgx_diag *diag;
};

struct mgx_compute_call {
    const struct mgx_op *op;
    const void *attr;
    const struct mgx_tensor *const *in; // any strides, static shapes
    int in_count;
    // Memory of the shape rule's result, uninitialised. Where that shape is still dynamic (NonZero,
    // Unique, Loop), or for tuples and sequences, *out is empty, out_shape says what is known, and
    // compute creates it. View operators (and MGX_OP_RESHAPE) fill *out with mgx_tensor_view(in[0],
    // ...) instead of computing.
    struct mgx_tensor *out;
    const struct mgx_shape *out_shape;
    const struct mgx_shape *declared; // the instruction's shape; NULL when there is none
    struct mgx_module *const *mod;
    int mod_count;
    struct mgx_eval *eval;     // runs submodules; see op/eval/eval.h
    struct mgx_arena *scratch; // freed when compute returns
    struct mgx_diag *diag;
};

enum mgx_op_flags {
    MGX_OP_POINTWISE = 1 << 0,  // out[i] depends on in[...][i] only
    MGX_OP_VIEW = 1 << 1,       // the result is a view of input 0: same bytes, another shape
    MGX_OP_IMPURE = 1 << 2,     // two equal calls may differ (random, custom): no CSE, no folding
    MGX_OP_EFFECT = 1 << 3,     // must not be removed even when unused
    MGX_OP_BUILTIN = 1 << 4,    // @param, @literal, @return, ...
    MGX_OP_REDUCE = 1 << 5,     // reduces over `axes`, keeping them as length 1
    MGX_OP_ANY_STRIDE = 1 << 6, // reads inputs of any strides at full speed on every target
    MGX_OP_UNRANKED = 1 << 7,   // its shape rule takes unranked inputs itself
    MGX_OP_AGGREGATE = 1 << 9,  // takes tuples and sequences among its inputs
    MGX_OP_MOVE = 1 << 10,      // moves elements by mgx_tensor_copy: inputs may lie at any address
    MGX_OP_RESHAPE = 1 << 8,    // a view of input 0 where that is standard, else a copy of it
    MGX_OP_COMMUTATIVE = 1 << 11,   // of two inputs; the result is the same when they are swapped
    MGX_OP_REGROUP = 1 << 12,       // the elements of input 0 in row-major order, other lengths
    MGX_OP_CHANNELS_LAST = 1 << 13, // of images {n, c, ...}: fastest with channels innermost
    MGX_OP_CHANNELS_LAST_4D = 1 << 14, // ... where they have two spatial axes
    MGX_OP_HANDS_ON = 1 << 15,         // arranges tensors and computes no number of them
    MGX_OP_PRODUCT = 1 << 16,          // sums products of inputs 0 and 1: a target multiplies tiles
    MGX_OP_MATRICES = 1 << 17,         // ... of matrices: over the last axis and the last but one
    MGX_OP_TRUTH = 1 << 18,            // gives 0 or 1, whatever the type
    MGX_OP_STEP = 1 << 19,             // jumps: a little more may give another whole number
    MGX_OP_BLIND = 1 << 20,            // moves the numbers of its inputs and looks at none
};

struct mgx_op {
    const char *name;
    const char *meaning;            // one line of maths or words, for the operator table in docs/
    const struct mgx_field *fields; // ends with {0}; NULL without attributes
    size_t attr_size;
    const void *defaults; // a const attribute struct, or NULL for zeros
    int in_min, in_max;   // number of inputs; in_max -1 = any number
    unsigned flags;
    // Result of the inputs. Called by mgx_op_shape, which checks the counts, the result, and
    // unranked inputs first (an unranked input gives an unranked result of `unranked_type(c)`
    // without calling the rule).
    enum mgx_status (*shape)(struct mgx_shape_call *c, struct mgx_shape *out);
    enum mgx_type (*unranked_type)(const struct mgx_shape_call *c); // NULL: the type of input 0
    // The reference: right before fast; double accumulation, all types, all strides, zero sizes.
    // NULL if the operator only exists before lowering.
    enum mgx_status (*compute)(struct mgx_compute_call *c);
    const void *user; // of a custom operator or a table row
    // For operators that stand for several others until their inputs are known: puts those in front
    // of `ins` and makes its readers read them. *done is false, and nothing has changed but dead
    // code, when too little is known. NULL for all others.
    enum mgx_status (*expand)(struct mgx_ins *ins, struct mgx_arena *scratch, bool *done,
                              struct mgx_diag *diag);
    // Inputs, by bit, whose values decide how long results are, or what the instruction stands for:
    // with them known it is one of fixed sizes. NULL: none.
    uint32_t (*sized_by)(const struct mgx_ins *ins);
};

// The checked way to a result shape; `c->op` and everything else set by the caller.
enum mgx_status mgx_op_shape(struct mgx_shape_call *c, struct mgx_shape *out) MGX_NODISCARD;

// A set of operators, for parsing text and making instructions by name.
struct mgx_op_set {
    const struct mgx_op *(*find)(const struct mgx_op_set *set, const char *name,
                                 size_t size); // NULL if unknown
};

// The built-in ones of the IR itself.
extern const struct mgx_op mgx_op_param;   // struct mgx_param_attr
extern const struct mgx_op mgx_op_literal; // value in ins->literal
extern const struct mgx_op mgx_op_return;
extern const struct mgx_op mgx_op_comment; // text attribute

struct mgx_param_attr {
    const char *parameter;
    int64_t order; // order of creation: inputs of a model in its own order
};
