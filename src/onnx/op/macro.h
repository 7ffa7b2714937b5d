// SPDX-License-Identifier: MIT
// Macros: names that stand for several instructions, for those who build programs by hand.
//
//     gemm[alpha=2,transB=1](a, b, c)    ->    transpose, mul, dot, multibroadcast, add
//
// A macro is what an ONNX operator's rule does, reached by name and options instead of by a node
// of a model, so a program built by hand and an imported one look alike. Its options are a field
// table, as attributes of operators are: they parse, print and default the same way.
//
// Holds: a macro that fails leaves the module as it was. Shapes must be known as far as the rule
// needs them: nothing is deferred to the run.
#pragma once

#include "ir/module.h"

struct mgx_macro_call;
struct mgx_onnx_op;

struct mgx_macro {
    struct mgx_op options; // name, fields, size and defaults alone
    // What it does: `build`, or the rule of an operator with the options as its attributes.
    enum mgx_status (*build)(struct mgx_macro_call *c);
    const struct mgx_onnx_op *rule;
    const struct mgx_op *op; // of a builder that serves several macros
    int64_t opset;           // the version of the rule
};

enum { MGX_MACRO_RESULTS = 2 }; // at most

const struct mgx_macro *mgx_macro_find(const char *name); // NULL if there is none
int mgx_macro_count(void);
const char *mgx_macro_name(int i); // sorted

// Adds what the macro stands for to a module, in front of an instruction or (NULL) at the end.
enum mgx_status mgx_macro_add(const struct mgx_macro *macro, const void *options,
                              struct mgx_module *m, struct mgx_ins *before,
                              struct mgx_ins *const *in, int in_count,
                              struct mgx_ins *out[MGX_MACRO_RESULTS], int *out_count,
                              struct mgx_diag *diag) MGX_NODISCARD;
