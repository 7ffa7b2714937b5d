// SPDX-License-Identifier: MIT
// What an ONNX operator rule sees: one node, its attributes and inputs, and where to emit
// instructions.
//
// A rule is a const object mgx_onnx_<name> in onnx/op/<operator>.c (or a row of onnx/simple.c for
// those that map one to one). It reads like the ONNX specification: take attributes, normalise old
// versions, emit instructions, set n->out[i]. Emitting is sticky: NULL in gives NULL out, and the
// caller checks the program's status once after the rule.
//
//     static enum mgx_status import(struct mgx_node *n)
//     {
//         struct mgx_ins *x = n->in[0];
//         n->out[0] = mgx_build_mul(n, x, mgx_build_sigmoid(n, x));
//         return MGX_OK;
//     }
//     const struct mgx_onnx_op mgx_onnx_swish = {.name = "Swish", .since = 24, .import = import};
//
// When a rule needs a shape or a value that is not known before the run (an axes *input*, an
// unranked operand) and the IR has no operator with a dynamic operand for it, it returns
// mgx_onnx_defer(n): the node is then kept whole and imported at run time with what its inputs
// really are. Every rule is thus right for dynamic models, and static ones stay static.
#pragma once

#include "import/node.h"
#include "onnx/onnx.h"

// What an operator takes besides numbers. Rules are written for numbers; a hostile model hands
// strings to a convolution, and the walk refuses them before the rule sees them.
enum mgx_onnx_kinds {
    MGX_ONNX_TEXT = 1,
    MGX_ONNX_COMPLEX = 2,
    MGX_ONNX_SEQUENCE = 4,
    MGX_ONNX_OPTIONAL = 8,
};

struct mgx_onnx_op {
    const char *name;   // ONNX op_type
    const char *domain; // NULL: ai.onnx
    int64_t since;      // first opset this rule is for; 0 or 1 = from the beginning
    int64_t until;      // last one; 0 = open. Several rules of one name may cover different ranges
    enum mgx_status (*import)(struct mgx_node *n);
    const struct mgx_op *op; // what a row of simple.c maps to; rules reach it as n->rule->op
    unsigned takes;          // enum mgx_onnx_kinds, by the standard's type constraints
    // Element types of the results by the standard, for nodes that are imported only when they run.
    // One letter per result, the last one for all that follow; NULL: the type of input 0. Test
    // onnx/schemas compares them and `takes` with the standard.
    //   0-9  type of that input            e  type of the members of input 0, a sequence
    //   0?.. of that input if it is there, else of the letter after the question mark
    //   b f i l t u  bool float int32 int64 string uint8
    //   s    a sequence of input 0's type  q  a sequence like input 0
    //   @..  named by the attribute (a TensorProto type number), else of the letter after it
    //   o    the other one of string and int64: not input 0's
    //   B C  as that body makes them; C: behind the condition, its first result
    //   c    what a classifier calls its classes: string with classlabels_strings, else int64
    //   v    the type of the tensor that the attribute holds, float without it
    const char *result;
    const char *result_attribute; // of @, v, B and C
};

// --- attributes; a wrong type or an absent required one is recorded as a failure and gives the
// fallback ---
bool mgx_onnx_has(const struct mgx_node *n, const char *name);
int64_t mgx_onnx_int(const struct mgx_node *n, const char *name, int64_t fallback);
double mgx_onnx_real(const struct mgx_node *n, const char *name, double fallback);
const char *mgx_onnx_text(const struct mgx_node *n, const char *name, const char *fallback);
struct mgx_ints mgx_onnx_ints(const struct mgx_node *n,
                              const char *name); // count 0 if absent; scratch memory
struct mgx_doubles mgx_onnx_reals(const struct mgx_node *n, const char *name);
struct mgx_strings mgx_onnx_texts(const struct mgx_node *n, const char *name);
// A tensor attribute as a literal in the module; NULL if absent.
struct mgx_ins *mgx_onnx_tensor(const struct mgx_node *n, const char *name);
// A graph attribute imported as a module (body of If, Loop, Scan). `in_shapes` are the shapes its
// inputs get.
struct mgx_module *mgx_onnx_body(const struct mgx_node *n, const char *name,
                                 const struct mgx_shape *in_shapes, int in_count);
// The same for a branch, which may never run: NULL with the reason in *why, and nothing recorded,
// when a node in it does not fit the sizes given. Everything else is a failure as ever.
struct mgx_module *mgx_onnx_branch(const struct mgx_node *n, const char *name, const char **why);
// What stands for a branch that does not fit: its results are shaped like those of `like`, and
// running it fails with the reason.
struct mgx_module *mgx_onnx_failing_branch(const struct mgx_node *n, const char *name,
                                           const struct mgx_module *like, const char *why);
// Numbers of inputs and outputs of a graph attribute.
enum mgx_status mgx_onnx_body_counts(const struct mgx_node *n, const char *name, int *inputs,
                                     int *outputs) MGX_NODISCARD;
// A graph attribute imported in place, its inputs bound to `in` (If with a constant condition).
enum mgx_status mgx_onnx_inline(struct mgx_node *n, const char *name, struct mgx_ins *const *in,
                                int in_count, struct mgx_ins **out, int out_count) MGX_NODISCARD;
// ONNX TensorProto.DataType number to our type; fails with the number in the message.
enum mgx_status mgx_onnx_type(const struct mgx_node *n, int64_t number,
                              enum mgx_type *out) MGX_NODISCARD;

// --- inputs ---
// Axes, sizes and the like that moved from attribute to input over the versions: attribute `name`,
// else input i. *known is false when it is given but not constant; absent gives known with count 0
// and *given false.
enum mgx_status mgx_onnx_ints_or_input(struct mgx_node *n, const char *name, int i, bool *given,
                                       bool *known, struct mgx_ints *out) MGX_NODISCARD;
// --- not now ---
enum mgx_status mgx_onnx_defer(struct mgx_node *n) MGX_NODISCARD;

// All rules, in order of names.
const struct mgx_onnx_op *const *mgx_onnx_rules(int *count);

#define ONNX(name) extern const struct mgx_onnx_op mgx_onnx_##name;
#include "onnx_list.inc"
#undef ONNX
