// SPDX-License-Identifier: MIT
// What every target runs first, in order.
#include "pass/pass.h"

const struct mgx_pass *const mgx_pipeline_simplify[] = {
    &mgx_pass_normalize_ops,
    &mgx_pass_eliminate_identity,
    &mgx_pass_rewrite_rnn,
    &mgx_pass_propagate_constant, // operands that must be known become literals
    &mgx_pass_expand,             // ... with which deferred operators say what they are
    &mgx_pass_simplify_dyn_ops,   // ... and attributes
    &mgx_pass_inline_module,
    &mgx_pass_resolve_sequences,
    &mgx_pass_eliminate_pad,
    &mgx_pass_rewrite_gelu,
    &mgx_pass_optimize_module,
    &mgx_pass_eliminate_pad, // of paddings that stood behind a transpose
    &mgx_pass_dead_code_elimination,
    NULL,
};
