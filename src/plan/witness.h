// SPDX-License-Identifier: MIT
// A witness: what the operator's own compute makes of a step's operands, beside what the step's
// kernel makes of them. Debug builds ask it of every small step of a context's first run, so that a
// kernel prepared wrongly is named at its own step and not by the results of the whole program.
#pragma once

#include "plan/context.h"

struct mgx_plan_witness {
    struct mgx_tensor want; // empty: the step is not one that can be asked about
};

// Before the step: computes what it is to make.
enum mgx_status mgx_plan_witness_hear(struct mgx_plan_witness *w, const struct mgx_plan_step *step,
                                      const struct mgx_plan_args *args,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// After the step: MGX_INTERNAL, naming step, kernel, element and both values, if they differ by
// more than rounding can make them. Ends the witness.
enum mgx_status mgx_plan_witness_compare(struct mgx_plan_witness *w,
                                         const struct mgx_plan_step *step,
                                         const struct mgx_plan_args *args,
                                         struct mgx_diag *diag) MGX_NODISCARD;
