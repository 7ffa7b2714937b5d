// SPDX-License-Identifier: MIT
// From a body of scalar operators to a block program.
#pragma once

#include "targets/cpu/kernel/rows/block.h"
#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/lower/lower.h"

// What a body takes and gives, next to its program. Bool comes and goes as bytes, converted at the
// edges; so do integers of 8 and 16 bits and floats of eight, and integers of 32 come: lanes hold
// them as floats. Only conversions to float, quantizelinear and dequantizelinear may read or make
// them.
struct cpu_body {
    struct mgx_block block;
    mgx_isa isa;
    int in_count, out_count;
    enum mgx_type *in_type, *out_type;
};

// Compiles `ins`, in the arena of the offer `c`: a `pointwise` instruction's body, or a single
// scalar operator as a body of one line. NULL when some operator or type has no line (c->why says
// so, or c->diag has a failure).
const struct cpu_body *cpu_body_compile(struct mgx_plan_offer *c, const struct mgx_ins *ins);

// n elements of an operand as floats, `step` elements apart from `offset` on: in place where they
// lie side by side, else in `room`.
struct mgx_block_operand cpu_body_load(mgx_isa isa, const void *data, enum mgx_type type,
                                       int64_t offset, int64_t step, int n, float *room);
// n floats to a result.
void cpu_body_store(mgx_isa isa, void *data, enum mgx_type type, int64_t offset, int64_t step,
                    int n, const float *from);
// The kernels' name of a type that bodies load and store; false if there is none.
bool cpu_kernel_type(enum mgx_type type, enum mgx_kernel_type *out);
