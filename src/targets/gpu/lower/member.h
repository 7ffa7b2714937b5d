// SPDX-License-Identifier: MIT
// One result of an operator that gives several: group[tag=member], whose body is the operator and
// the taking of a member (pass/split_members.c).
#pragma once

#include "targets/gpu/lower/lower.h"

struct gpu_member {
    const struct mgx_ins *ins; // the operator
    int which;                 // of its results
    int in[GPU_CALL_INPUTS];   // its inputs by their numbers in the offer
    int in_count;
};

// Is what is offered a member of such an operator?
bool gpu_member_read(const struct mgx_plan_offer *c, const struct mgx_op *op, struct gpu_member *m);
