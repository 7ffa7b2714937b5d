// SPDX-License-Identifier: MIT
// Constant folding by a target's kernels, for those that work on the host.
#pragma once

#include "pass/pass.h"
#include "plan/machine.h"

struct mgx_plan_folder;

// Sets what folding is offered in `pass`, for as long as the folder lives. NULL when out of memory.
struct mgx_plan_folder *mgx_plan_folder_create(const struct mgx_program *p,
                                               const struct mgx_plan_machine *machine,
                                               struct mgx_pass_options *pass);
void mgx_plan_folder_destroy(struct mgx_plan_folder *folder); // NULL is allowed
