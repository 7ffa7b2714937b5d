// SPDX-License-Identifier: MIT
// What the matching of epilogues is made of; private to epilogue*.c.
//
// The body of a group is a tree over the sums of its main instruction. Nodes are instructions of
// the element-wise body, leaves are inputs of the group, the sums, or constants.
#pragma once

#include "targets/cpu/lower/epilogue.h"

struct cpu_match {
    struct mgx_plan_offer *c;
    struct mgx_product_roles roles;
    const struct mgx_ins *main, *last; // in the group's body; last == main without an epilogue
    int column;                        // axis
    struct cpu_epilogue *out;
};

// What a node stands for outside the body: an input of the group, or the main instruction. NULL for
// what is computed in the body.
const struct mgx_ins *cpu_match_leaf(const struct cpu_match *m, const struct mgx_ins *node);
// The number of a leaf among the group's inputs, -1 if it is none.
int cpu_match_input(const struct cpu_match *m, const struct mgx_ins *leaf);
// The same of what a node stands for.
int cpu_match_operand(const struct cpu_match *m, const struct mgx_ins *node);
// What a node stands for if that is one constant value, else NULL.
const struct mgx_tensor *cpu_match_value_of(const struct cpu_match *m, const struct mgx_ins *node);
// Is it one constant float?
bool cpu_match_constant(const struct cpu_match *m, const struct mgx_ins *node, double *value);
// Notes an activation that `node` is; what it is applied to, or the node itself.
const struct mgx_ins *cpu_match_act(struct cpu_match *m, const struct mgx_ins *node);
// A tensor of the result's lengths and this type, or of bfloat16 where floats are
// multiplied, with contiguous columns.
bool cpu_match_residual(const struct cpu_match *m, int input, enum mgx_type type);
// Notes such a tensor as the residual.
void cpu_match_add(struct cpu_match *m, int input, enum cpu_operand_place where);
// act(sum + bias), also with factors and terms behind it; notes what it finds.
bool cpu_match_value(struct cpu_match *m, const struct mgx_ins *node);
// A constant that is one value, or one per column, into an array of as many; false: it is none.
bool cpu_match_column(const struct cpu_match *m, const struct mgx_ins *node, double *out);
// The axes of the result that count its rows, all but the column, outermost in memory first.
int cpu_match_row_axes(const struct cpu_match *m, int *order);
// Steps of an operand over rows and columns; false if it has no such form.
bool cpu_match_steps(const struct cpu_match *m, int input, int64_t *row, int64_t *col);
const struct mgx_ins *cpu_match_root(const struct cpu_match *m);
void cpu_match_reset(struct cpu_epilogue *e);

// --- epilogue_bytes.c ---

// A result of bytes: quantizelinear of a value, of a value and a residual, or a function of one
// that was quantized before.
bool cpu_match_bytes(struct cpu_match *m);
// A result of floats of which the value was quantized on the way.
bool cpu_match_floats(struct cpu_match *m);
// The step from floats that are bytes already to bytes.
bool cpu_match_plain_bytes(struct cpu_match *m);
