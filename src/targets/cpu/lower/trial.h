// SPDX-License-Identifier: MIT
// What a product or a convolution reads and writes while it is measured: buffers of its own, as
// large as those of the call.
#pragma once

#include "plan/contest.h"
#include "targets/cpu/lower/epilogue.h"

struct cpu_trial {
    void *x, *w, *y, *bias, *scale, *workspace;
    void *residual; // NULL: the call has none
};

// Room for w in bytes, and for one bias and factor a column. False when out of memory; fini frees
// what there is either way.
bool cpu_trial_init(struct cpu_trial *t, const struct mgx_plan_offer *c,
                    const struct cpu_epilogue *e, int64_t columns, size_t w_bytes, size_t workspace,
                    struct mgx_diag *diag);
void cpu_trial_fini(struct cpu_trial *t);
