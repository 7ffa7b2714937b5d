// SPDX-License-Identifier: MIT
// Functions of one byte: 256 results instead of the function.
#pragma once

#include "base/arena.h"
#include "ir/module.h"

// Element-wise steps that a body may have to become one: passes are told (mgx_pass_target).
enum { MGX_PLAN_TABLE_STEPS = 56 };

// The result of a body for every value of `from`, one of its instructions or parameters and of 8
// bits, by the byte as it lies in memory. NULL when the result, of 8 bits too, depends on anything
// else that is not constant, or when out of memory. The reference computes it.
const uint8_t *mgx_plan_table_of(struct mgx_arena *arena, const struct mgx_module *body,
                                 const struct mgx_ins *from);
// The same of `to`, one of the body's instructions, in place of its result.
const uint8_t *mgx_plan_table_between(struct mgx_arena *arena, const struct mgx_module *body,
                                      const struct mgx_ins *from, const struct mgx_ins *to);
