// SPDX-License-Identifier: MIT
// Wrapping instructions into a `group`: its body holds them as they were, its inputs are what they
// read from outside.
#pragma once

#include "pass/engine/pass.h"

enum { MGX_REGION_INS = 16, MGX_REGION_INPUTS = 12 };

struct mgx_region {
    struct mgx_ins *ins[MGX_REGION_INS]; // in the module's order; the last one is the result
    int count;
};

// A scalar operator, or a fused body of them.
bool mgx_is_elementwise(const struct mgx_ins *ins);

// The same of one value.
bool mgx_is_one_step(const struct mgx_ins *ins);
// What a parameter of the group's body is given; NULL for what is made in the body.
struct mgx_ins *mgx_group_gives(const struct mgx_ins *group, const struct mgx_ins *inner);

// Does the target take this instruction as it stands, as something of this tag?
bool mgx_region_has_kernel(const struct mgx_pass_call *c, struct mgx_ins *ins, const char *tag);
// What a target says of one instruction that a pass has made; if it does not take it, that goes
// again. A target that says nothing takes all, and NULL is not taken.
bool mgx_region_keeps(const struct mgx_pass_call *c, struct mgx_ins *ins, const char *tag);

// Adds an instruction to the region, once. False when it is full.
bool mgx_region_add(struct mgx_region *r, struct mgx_ins *ins);
// Nobody outside reads anything of the region but its last instruction, and the inputs are few
// enough.
bool mgx_region_closed(struct mgx_region *r);
// Replaces the region by one group with this tag, if the target wants it
// (mgx_pass_target.supports).
enum mgx_status mgx_region_fuse(struct mgx_pass_call *c, struct mgx_region *r,
                                const char *tag) MGX_NODISCARD;
// The same, wanted or not.
enum mgx_status mgx_region_group(struct mgx_pass_call *c, struct mgx_region *r,
                                 const char *tag) MGX_NODISCARD;
