// SPDX-License-Identifier: MIT
// Writing the body of a fused instruction: a module to which instructions of another are copied.
//
// What a copied instruction reads is looked up: a parameter of the body, an instruction copied
// before, or what `make` makes of an operand that is neither. Instructions come producers first
// (mgx_body_sort). The first failure is the program's; from then on NULL comes back.
#pragma once

#include "base/map.h"
#include "pass/engine/pass.h"

enum { MGX_BODY_INPUTS = 16 };

struct mgx_body {
    struct mgx_module *module;
    struct mgx_map to;                   // an instruction outside -> what stands for it inside
    struct mgx_ins *in[MGX_BODY_INPUTS]; // what the parameters stand for, in order
    int in_count;
    struct mgx_ins *(*make)(struct mgx_body *b, struct mgx_ins *in); // NULL: all are known
};

// Adds the module. False: the program says why.
bool mgx_body_begin(struct mgx_body *b, struct mgx_program *p, const char *name);
// The next parameter, x0, x1, ..., of a shape; it stands for `in`.
struct mgx_ins *mgx_body_param(struct mgx_body *b, struct mgx_ins *in,
                               const struct mgx_shape *shape);
// Says that `to` stands for `from` in the body.
struct mgx_ins *mgx_body_note(struct mgx_body *b, const struct mgx_ins *from, struct mgx_ins *to);
// A literal of the body that repeats nothing: the first element of a constant.
struct mgx_ins *mgx_body_scalar(struct mgx_body *b, const struct mgx_tensor *constant);
struct mgx_ins *mgx_body_copy(struct mgx_body *b, const struct mgx_ins *ins);
// Gives back what the making took; the module stays.
void mgx_body_end(struct mgx_body *b);

// Is it one of these?
bool mgx_body_has(struct mgx_ins *const *list, int count, const struct mgx_ins *ins);
// Is `ins` read by these alone?
bool mgx_body_keeps(struct mgx_ins *const *list, int count, const struct mgx_ins *ins);
// Producers before readers, else as they stand. Cost: the square of count, and bodies are small.
void mgx_body_sort(struct mgx_ins **list, int count);
