// SPDX-License-Identifier: MIT
// Plans of fixed sizes for a target with a memory of its own: one for every (texts, tokens, room)
// that runs meet.
//
//     program with open sizes  --lengths fixed, inputs and results where the caller says-->  a plan
//
// A plan's caches come in and go out at one address, so that a run writes its own rows and copies
// nothing; states of fixed lengths come out beside those that went in. All share the weights.
// Kernels do not depend on the room: a plan for another one compiles none.
//
// Holds: several generators may share one table; a plan that somebody holds stays. At most MOST of
// them are kept, the least recently used goes first, and all that nobody holds go when memory is
// short. Cost: making one is some milliseconds for each layer, and the compilation of its kernels.
#pragma once

#include "generate/roles.h"

struct mgx_plans;

struct mgx_fixed_plan {
    const struct mgx_program *program;
    struct mgx_shape logits;
    int64_t rows, tokens, room, heard; // places of what an encoder gave, where one did
    const char **places;               // names of the parameters that results go to, by result
};

// May plans be the way for such a model, on a target that has some? Where what it remembers are
// caches with room and states of fixed lengths.
bool mgx_plans_take_roles(const struct mgx_roles *roles);
// Are they the way for this program, which is compiled? Only where a target with memory of its own
// appends to its caches. NULL: they are not. Makes the plan of one token of one text.
enum mgx_status mgx_plans_create(struct mgx_plans **out, const struct mgx_program *program,
                                 const struct mgx_roles *roles,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_plans_destroy(struct mgx_plans *plans); // NULL is allowed
const struct mgx_memory *mgx_plans_memory(const struct mgx_plans *plans);

// Of what is asked for only the sizes are read.
enum mgx_status mgx_plans_take(struct mgx_plans *plans, const struct mgx_fixed_plan *sizes,
                               const struct mgx_fixed_plan **out,
                               struct mgx_diag *diag) MGX_NODISCARD;
void mgx_plans_give(struct mgx_plans *plans, const struct mgx_fixed_plan *plan);
