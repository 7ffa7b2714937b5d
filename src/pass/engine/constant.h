// SPDX-License-Identifier: MIT
// Questions about constants: which instructions are one, and what values they hold.
//
// A constant is a literal, or a pure operator whose inputs are all constants. Whether an
// instruction is one is kept in ins->mark during a pass (mgx_mark_constants), so asking is O(1).
#pragma once

#include "base/size.h"
#include "pass/engine/pass.h"

enum { MGX_MARK_UNKNOWN, MGX_MARK_CONSTANT, MGX_MARK_VARIABLE };

// Sets the mark of every instruction of the module. O(instructions).
void mgx_mark_constants(struct mgx_module *m);
// Uses the marks; instructions made since are looked at once. Of what the module captures from
// outside only literals count.
bool mgx_is_constant(const struct mgx_module *m, struct mgx_ins *ins);

// Behind views that neither drop nor reorder values (broadcasts, reshapes, contiguous ...): the
// instruction they look at.
const struct mgx_ins *mgx_strip_views(const struct mgx_ins *ins);
// A large concat of constants that folding leaves as it is: weights of several products, joined. A
// copy would double what lies in the model's file; whoever packs them takes them from there.
bool mgx_is_joined(const struct mgx_ins *ins);
// A large literal of 16 bits converted to float, or large weights of fewer bits, constants,
// dequantized, which folding leaves as they are: the copy would be several times their size;
// whoever packs the weights takes them from there.
bool mgx_is_widened(const struct mgx_ins *ins);
// One of the two, of literals by now; pieces may be literals that are widened.
bool mgx_is_joined_weights(const struct mgx_ins *ins);
// Is it a literal, behind broadcasts of known lengths?
bool mgx_is_spread_literal(const struct mgx_ins *ins);
// The literal of one value, a number, that an operand is everywhere, behind broadcasts; NULL.
const struct mgx_tensor *mgx_scalar_constant(const struct mgx_ins *ins);
// Do all elements have one value? Literals behind views; at least one element.
bool mgx_splat_value(const struct mgx_ins *ins, double *value);
bool mgx_is_splat(const struct mgx_ins *ins, double value);
// Has each of the inputs from number `first` on one value? Scales and zero points are such.
bool mgx_has_splats(const struct mgx_ins *ins, int first);

// What magnitudes a constant holds: of a literal behind views. False if unknown or not all finite.
struct mgx_range {
    double low, high;    // signed
    double small, large; // magnitudes; `small` of the nonzero elements (0 if there are none)
};
bool mgx_constant_range(const struct mgx_ins *ins, struct mgx_range *out);
// Is it known to be zero or more, or NaN; and not minus infinity? Looks a few steps back.
bool mgx_is_nonnegative(const struct mgx_ins *ins);
// May weights `a` be multiplied by factors `b` (sums: added up) ahead of time, in this type? No
// overflow, and no more than negligible loss below the range of normal numbers. Integers wrap alike
// in any order.
bool mgx_product_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b);
bool mgx_quotient_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b);
bool mgx_sum_is_safe(enum mgx_type type, const struct mgx_ins *a, const struct mgx_ins *b);
