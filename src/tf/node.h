// SPDX-License-Identifier: MIT
// What a TensorFlow operator's rule sees beyond import/node.h: attributes, and how many results
// there are.
//
// A rule is a const object mgx_tf_<name> in tf/op/<operator>.c (or a row of tf/simple.c for those
// that map one to one). Take attributes, emit instructions, set n->out[i]:
//
//     static enum mgx_status import(struct mgx_node *n)
//     {
//         TRY(mgx_node_need(n, 1, 1));
//         n->out[0] = mgx_build_clamp(n, n->in[0], 0, 6);
//         return MGX_OK;
//     }
//     const struct mgx_tf_op mgx_tf_relu6 = {.name = "Relu6", .import = import};
//
// Tensors keep TensorFlow's order of axes. What the IR computes in another order (a convolution's
// channels come second) stands between transposes, which the passes take out.
#pragma once

#include "import/build.h"
#include "tf/tf.h"

// What an operator takes besides numbers; everything else is refused before the rule sees it.
enum mgx_tf_kinds {
    MGX_TF_TEXTS = 1,
    MGX_TF_HANDLES = 2, // variables, lists: see graph.h
    MGX_TF_COMPLEX = 4,
};

struct mgx_tf_op {
    const char *name;
    enum mgx_status (*import)(struct mgx_node *n);
    const struct mgx_op *op; // what a row of simple.c maps to; rules reach it as n->tf_rule->op
    unsigned takes;          // enum mgx_tf_kinds
    int results;             // 0 stands for 1; a rule may ask for more with mgx_tf_results
    bool no_inputs;          // it asks for none of them: they are not imported for its sake
    const char *outputs;     // names of several results, "values,indices", as functions call them
};

// Room for that many results; the first ones keep what was set.
enum mgx_status mgx_tf_results(struct mgx_node *n, int64_t count) MGX_NODISCARD;

// --- attributes; a wrong type or an absent required one is recorded as a failure and gives the
// fallback ---
bool mgx_tf_has(const struct mgx_node *n, const char *name);
int64_t mgx_tf_int(const struct mgx_node *n, const char *name, int64_t fallback);
bool mgx_tf_flag(const struct mgx_node *n, const char *name, bool fallback);
double mgx_tf_real(const struct mgx_node *n, const char *name, double fallback);
const char *mgx_tf_text(const struct mgx_node *n, const char *name, const char *fallback);
struct mgx_ints mgx_tf_ints(const struct mgx_node *n, const char *name); // scratch; empty if absent
struct mgx_strings mgx_tf_texts(const struct mgx_node *n, const char *name); // the same
enum mgx_type mgx_tf_type(const struct mgx_node *n, const char *name, enum mgx_type fallback);
// A shape attribute: rank -1 if it is absent or unknown, lengths -1 where unknown.
enum mgx_status mgx_tf_shape(const struct mgx_node *n, const char *name, int *rank,
                             int64_t lens[MGX_MAX_RANK]) MGX_NODISCARD;
// A tensor attribute as an instruction; NULL with a failure if it is none.
struct mgx_ins *mgx_tf_tensor(struct mgx_node *n, const char *name);

// --- axes: TensorFlow's order and the IR's ---
// Is the channel axis the last one (data_format NHWC, NDHWC, NWC)? Fails on a format unknown.
enum mgx_status mgx_tf_channels_last(struct mgx_node *n, bool *last) MGX_NODISCARD;
// N, spatial axes, C to N, C, spatial axes, and back; x itself when the channels are not last.
struct mgx_ins *mgx_tf_to_channels_first(struct mgx_node *n, struct mgx_ins *x, bool last);
struct mgx_ins *mgx_tf_from_channels_first(struct mgx_node *n, struct mgx_ins *x, bool last);
// All inputs are of known rank and lengths.
enum mgx_status mgx_tf_need_static(struct mgx_node *n) MGX_NODISCARD;
// A constant input as integers, required: `what` names it in the refusal.
enum mgx_status mgx_tf_need_ints(struct mgx_node *n, int i, const char *what,
                                 struct mgx_ints *out) MGX_NODISCARD;
enum mgx_status mgx_tf_need_int(struct mgx_node *n, int i, const char *what,
                                int64_t *out) MGX_NODISCARD;
enum mgx_status mgx_tf_need_real(struct mgx_node *n, int i, const char *what,
                                 double *out) MGX_NODISCARD;

#define TF(name) extern const struct mgx_tf_op mgx_tf_##name;
#include "tf_list.inc"
#undef TF
