// SPDX-License-Identifier: MIT
// Programs in other forms than the text form: source code that builds them, and pictures.
#pragma once

#include "base/map.h"
#include "op/op.h"

// A row of the table of forms: a name ("py") and what appends the whole program in that form.
struct mgx_format {
    const char *name;
    enum mgx_status (*print)(struct mgx_str *out, const struct mgx_program *p,
                             struct mgx_diag *diag);
};

const struct mgx_format *mgx_format_find(const char *name); // NULL if unknown
const struct mgx_format *const *mgx_format_all(int *count);

// Code for MIGraphX's Python module. Weights of 1024 elements and more become generated ones.
enum mgx_status mgx_format_py(struct mgx_str *out, const struct mgx_program *p,
                              struct mgx_diag *diag) MGX_NODISCARD;
// Code for MIGraphX's C++ interface; all weights become generated ones.
enum mgx_status mgx_format_cpp(struct mgx_str *out, const struct mgx_program *p,
                               struct mgx_diag *diag) MGX_NODISCARD;
// The main module for dot(1): tables with attributes and shapes, or operator names alone.
enum mgx_status mgx_format_graphviz(struct mgx_str *out, const struct mgx_program *p,
                                    struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_format_graphviz_brief(struct mgx_str *out, const struct mgx_program *p,
                                          struct mgx_diag *diag) MGX_NODISCARD;

// The main module as an ONNX model to look at; bytes, not text.
enum mgx_status mgx_format_netron(struct mgx_str *out, const struct mgx_program *p,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// --- shared by the printers of source code ---

enum { MGX_FORMAT_MAX_DEPTH = 64 }; // of modules within modules

// Variables of generated code. What is neither letter nor digit in a name becomes an underscore,
// and where two would be called the same the second has a number behind it.
struct mgx_format_names {
    struct mgx_map taken; // variables, and the number that the next one of that name tries first
    struct mgx_map of;    // instruction or module -> its variable
    struct mgx_arena arena;
    bool failed; // out of memory
};
bool mgx_format_names_init(struct mgx_format_names *names);
void mgx_format_names_fini(struct mgx_format_names *names);
// p_<parameter>, x_<number>, x_<module>_<number>.
void mgx_format_put_name(struct mgx_str *out, struct mgx_format_names *names,
                         const struct mgx_ins *ins);
// m<module>; the main one's is m<of_main>.
void mgx_format_put_module_name(struct mgx_str *out, struct mgx_format_names *names,
                                const struct mgx_module *m, const char *of_main);
// A text from a model as a string of the language, whatever bytes it has.
void mgx_format_put_quoted(struct mgx_str *out, const char *text, bool python);
// {1, 2, 3} between the brackets given; a scalar as {1}, or {0} for strides.
void mgx_format_put_lens(struct mgx_str *out, const struct mgx_shape *s, bool strides,
                         const char *open, const char *close);
// Parameters and literals are written first, in reverse order: each is inserted at the front when
// the code runs, which gives the order they have here.
static inline bool mgx_format_goes_first(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_param || ins->op == &mgx_op_literal;
}
