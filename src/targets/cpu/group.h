// SPDX-License-Identifier: MIT
// Wrapping instructions into a `group`: its body holds them as they were, its inputs are what they
// read from outside.
#pragma once

#include "targets/cpu/cpu.h"

enum { CPU_GROUP_INS = 16, CPU_GROUP_INPUTS = 12 };

struct cpu_region {
    struct mgx_ins *ins[CPU_GROUP_INS]; // in the module's order; the last one is the result
    int count;
};

// Adds an instruction to the region, once. False when it is full.
bool cpu_region_add(struct cpu_region *r, struct mgx_ins *ins);
// Nobody outside reads anything of the region but its last instruction, and the inputs are few
// enough.
bool cpu_region_closed(struct cpu_region *r);
// Replaces the region by one group with this tag.
enum mgx_status cpu_region_group(struct mgx_pass_call *c, struct cpu_region *r,
                                 const char *tag) MGX_NODISCARD;
