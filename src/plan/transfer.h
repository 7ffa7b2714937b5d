// SPDX-License-Identifier: MIT
// Steps that carry bytes from one side to the other, and the host's own copy between layouts.
#pragma once

#include "plan/build.h"

// All bytes of a root, to a root of the same shape on the other side.
enum mgx_status mgx_plan_build_transfer(struct mgx_build *b, const struct mgx_ins *ins,
                                        struct mgx_plan_value *from, struct mgx_plan_value *to,
                                        struct mgx_diag *diag) MGX_NODISCARD;

bool mgx_plan_is_transfer(const struct mgx_plan_step *step);

// Was every twin that a step reads filled after the last step before it that wrote its root? Of
// steps in the order in which they were made; uses the values' `first` and `last`.
bool mgx_plan_twins_are_fresh(const struct mgx_build *b);

// Copies between layouts on the host, for machines whose own copy works elsewhere.
extern const struct mgx_plan_kernel mgx_plan_host_copy;
