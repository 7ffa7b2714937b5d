// SPDX-License-Identifier: MIT
// The plan's certificate: what must hold of a complete plan, looked at again by other means than
// those that made it. Debug builds ask for it after every plan.
#pragma once

#include "plan/build.h"

// MGX_INTERNAL, naming the step and the rule.
enum mgx_status mgx_plan_certify(const struct mgx_build *b, struct mgx_diag *diag) MGX_NODISCARD;
