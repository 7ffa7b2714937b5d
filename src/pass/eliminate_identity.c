// SPDX-License-Identifier: MIT
// Removes instructions that hand on their input.
//
//     identity(x)  =>  x
#include "pass/engine/rewrite.h"

static const struct mgx_rule rules[] = {{"identity(x) => x"}};

const struct mgx_pass mgx_pass_eliminate_identity = {
    .name = "eliminate_identity",
    .meaning = "removes identity",
    .rules = {rules, MGX_COUNT(rules)},
};
