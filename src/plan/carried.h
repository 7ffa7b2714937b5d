// SPDX-License-Identifier: MIT
// Plans that come out of a file, and go into one: constants packed already, what tuning found.
#pragma once

#include "plan/build.h"

// Does it come from a file, saved for this machine, as passes left it? Then none of them ran, none
// has read the literals, and its loader drops it where it does not compile.
static inline bool mgx_program_is_settled(const struct mgx_program *p)
{
    return p->carry && p->carry->fits;
}

// Before steps are made: what the program brought is found by whoever packs.
enum mgx_status mgx_plan_carried_begin(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
// When they are: the bytes of the file that runs are going to read are what was written.
enum mgx_status mgx_plan_carried_check(struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
