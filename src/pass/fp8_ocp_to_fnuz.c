// SPDX-License-Identifier: MIT
// MIGraphX's name for rewriting floats of 8 bits of one kind as those of another, which some cards
// multiply alone. Here both kinds are computed with wherever they are met: there is nothing to
// rewrite, and scripts that ask for it by name go on.
#include "pass/engine/pass.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    (void)c, (void)m;
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fp8_ocp_to_fnuz = {
    .name = "fp8_ocp_to_fnuz",
    .meaning = "nothing: fp8 of every kind is computed with",
    .module = run,
};
