// SPDX-License-Identifier: MIT
// MIGraphX's name for making one program of each size that a dimension may have. Here one program
// takes all sizes and plans those that come again (docs/sizes.md): there is nothing to split, and
// scripts that ask for it by name go on.
#include "pass/engine/pass.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    (void)c, (void)m;
    return MGX_OK;
}

const struct mgx_pass mgx_pass_split_single_dyn_dim = {
    .name = "split_single_dyn_dim",
    .meaning = "nothing: one program takes all sizes",
    .module = run,
};
