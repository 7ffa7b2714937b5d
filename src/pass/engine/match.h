// SPDX-License-Identifier: MIT
// Patterns over trees of instructions, written as text.
//
//     mul(c:convolution!(x, w#), a#)
//
//     x            any instruction; a letter binds it, the same letter again asks for the same one
//     x#           a constant (see constant.h)
//     x!  op!      read by one instruction only
//     2  0.5  -1   a constant whose elements all have this value, behind whatever views
//     op           this operator, with any inputs
//     op(p, q)     ... with inputs that match; commutative operators match in either order
//     a|b(p)       one of these operators
//     %pointwise   a class: %pointwise, %unary (pointwise of one input), %reduce, %view
//     c:op         binds the operator's own instruction
//
// A pattern is compiled once per pass call and matches without allocating; nesting is that of its
// text.
#pragma once

#include "base/size.h"
#include "op/op.h"

enum { MGX_PATTERN_NODES = 20, MGX_PATTERN_OPS = 8 };

enum mgx_pattern_kind { MGX_MATCH_ANY, MGX_MATCH_VALUE, MGX_MATCH_OP, MGX_MATCH_CLASS };

struct mgx_pattern_node {
    enum mgx_pattern_kind kind;
    char letter; // bound variable, 0 for none
    bool constant, once;
    double value;
    const struct mgx_op *ops[MGX_PATTERN_OPS];
    int op_count;
    unsigned flags; // of a class
    int arg_count;  // -1: any inputs
    int child, sibling;
};

struct mgx_pattern {
    int count;
    struct mgx_pattern_node node[MGX_PATTERN_NODES]; // [0] is the root
};

struct mgx_match {
    struct mgx_ins *var[26];
};

static inline struct mgx_ins *mgx_var(const struct mgx_match *m, char letter)
{
    return m->var[letter - 'a'];
}

// Reads one pattern from *text and leaves *text behind it. False when the text is not a pattern or
// names an unknown operator: a mistake in a rule.
bool mgx_pattern_parse(struct mgx_pattern *out, const char **text);
// A copy that takes as much room as the pattern has nodes, a tenth as a rule. NULL when out of
// memory.
const struct mgx_pattern *mgx_pattern_keep(struct mgx_arena *arena, const struct mgx_pattern *p);
// Could an instruction with this operator be the pattern's root?
bool mgx_pattern_may_begin(const struct mgx_pattern *p, const struct mgx_op *op);
// Is the root's operator one that the pattern asks for? Cheap.
bool mgx_pattern_may_match(const struct mgx_pattern *p, const struct mgx_ins *ins);
bool mgx_pattern_match(const struct mgx_pattern *p, struct mgx_ins *ins, struct mgx_match *m);
