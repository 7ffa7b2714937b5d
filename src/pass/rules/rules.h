// SPDX-License-Identifier: MIT
// The tables of equations: mgx_rules_<name> is in rules/<name>.c. simplify_algebra,
// simplify_reshapes, eliminate_pad and find_activation apply them.
#pragma once

#include "pass/engine/rewrite.h"

extern const struct mgx_rules mgx_rules_activation; // gelu, silu, ... as one operator
extern const struct mgx_rules mgx_rules_scalar;     // constants combine, what is neutral goes
extern const struct mgx_rules mgx_rules_linear;     // scale and shift through convolution and dot
extern const struct mgx_rules mgx_rules_branches;   // sums of convolutions of one input
extern const struct mgx_rules mgx_rules_backwards;  // transposed convolutions of stride 1
extern const struct mgx_rules mgx_rules_hoist;      // pointwise operators before broadcasts
extern const struct mgx_rules mgx_rules_hoist_constants;
extern const struct mgx_rules mgx_rules_reduce;  // reductions of reductions and of broadcasts
extern const struct mgx_rules mgx_rules_moments; // normalisations as they are defined
extern const struct mgx_rules mgx_rules_chain;   // chains of views
extern const struct mgx_rules mgx_rules_sink;    // views past other work, so that they meet
extern const struct mgx_rules mgx_rules_join;    // slice and concat
extern const struct mgx_rules mgx_rules_flat;    // products with a matrix that batches share
extern const struct mgx_rules mgx_rules_index;   // gather by known indices
extern const struct mgx_rules mgx_rules_taps;    // kernel positions that read padding only

// Several products of one input as one product and slices of it; see horizontal.c.
enum mgx_status mgx_join_products(struct mgx_pass_call *c, struct mgx_module *m) MGX_NODISCARD;
// Slices of a concat that lie within one of its inputs become slices of that input; see join.c.
enum mgx_status mgx_cut_concats(struct mgx_pass_call *c, struct mgx_module *m) MGX_NODISCARD;
