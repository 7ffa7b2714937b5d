// SPDX-License-Identifier: MIT
// Bodies of scalar operators over any number types, compiled to lines over blocks
// (kernel/rows/typed.h).
//
// What body.h declines (integers, double, half, conversions between them) runs here: each
// instruction of the body is a line, its value cut back to its own type, as the reference does it.
// Operators without a loop are computed element by element within the block.
#pragma once

#include "targets/cpu/lower/lower.h"

struct cpu_typed;

// NULL when some value is of a type without lanes (c->why says so, or c->diag has a failure).
const struct cpu_typed *cpu_typed_compile(struct mgx_plan_offer *c, const struct mgx_ins *ins);
size_t cpu_typed_scratch(const struct cpu_typed *t); // bytes per thread, aligned to 64

// n <= MGX_BLOCK elements: operand i from data[i] + offset[i], `step[i]` elements apart.
struct cpu_typed_args {
    void *const *in;
    const int64_t *offset, *step;
    void *out;
    int64_t out_offset, out_step;
};
void cpu_typed_run(const struct cpu_typed *t, const struct cpu_typed_args *args, int n,
                   void *scratch);
