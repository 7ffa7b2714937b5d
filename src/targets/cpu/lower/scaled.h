// SPDX-License-Identifier: MIT
// Bodies that are bytes times a factor, q(dq(x) * factor) or q((dq(x) - shift) * factor); see
// kernel/rows/byte_scale.h.
#pragma once

#include "targets/cpu/kernel/rows/byte_scale.h"
#include "targets/cpu/lower/lower.h"

struct cpu_scaled {
    struct mgx_byte_scale step;
    int x, factor, shift; // inputs; no shift: -1
    mgx_byte_scale_fn run;
};

// NULL: the body is another one, or there is no memory. In the offer's arena.
const struct cpu_scaled *cpu_scaled_of(struct mgx_plan_offer *c, const struct mgx_module *body);
