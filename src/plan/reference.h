// SPDX-License-Identifier: MIT
// The kernel that takes everything: the operator's own reference compute, on the host, on physical
// shapes. The last of every target's list.
#pragma once

#include "plan/kernel.h"

extern const struct mgx_plan_kernel mgx_plan_reference;
// The same for operators that only hand values on (MGX_OP_HANDS_ON), declined for all others: so a
// plan tells work that is left to the host from members that come and go there.
extern const struct mgx_plan_kernel mgx_plan_hand_on;
