// SPDX-License-Identifier: MIT
// Removes instructions that hand on their input.
//
//     identity(x)  =>  x
#include "pass/engine/rewrite.h"

static const struct mgx_rule rules[] = {{"identity(x) => x"}};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_eliminate_identity = {
    .name = "eliminate_identity",
    .meaning = "removes identity",
    .module = run,
};
