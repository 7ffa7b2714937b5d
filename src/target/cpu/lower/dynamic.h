// SPDX-License-Identifier: MIT
// Kernels for instructions whose sizes are known only at run time.
#pragma once

#include "target/cpu/cpu.h"

struct cpu_dynamic; // a step's memory of what was chosen, in the plan's arena

// NULL when out of memory.
struct cpu_dynamic *cpu_dynamic_create(struct cpu_prepare *c);
// Computes the step by a kernel if one takes these shapes: *done says so, *out owns the result.
enum mgx_status cpu_dynamic_run(const struct cpu_step *step, const struct cpu_args *args,
                                const struct mgx_tensor *const *in, struct mgx_tensor *out,
                                bool *done, struct mgx_diag *diag) MGX_NODISCARD;
