// SPDX-License-Identifier: MIT
// The kernel that takes everything: the operator's own reference compute, on the host, on physical
// shapes. The last of every target's list.
#pragma once

#include "plan/kernel.h"

extern const struct mgx_plan_kernel mgx_plan_reference;
