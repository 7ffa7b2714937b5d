// SPDX-License-Identifier: MIT
// From a body of scalar operators to a block program.
#pragma once

#include "targets/cpu/kernel/block.h"
#include "targets/cpu/lower/lower.h"

// What a body takes and gives, next to its program. Bool comes and goes as bytes, converted at the
// edges.
struct cpu_body {
    struct mgx_block block;
    int in_count, out_count;
    enum mgx_type *in_type, *out_type;
};

// Compiles `ins`, in the arena of the offer `c`: a `pointwise` instruction's body, or a single
// scalar operator as a body of one line. NULL when some operator or type has no line (c->why says
// so, or c->diag has a failure).
const struct cpu_body *cpu_body_compile(struct mgx_plan_offer *c, const struct mgx_ins *ins);
