// SPDX-License-Identifier: MIT
// Reductions first take the element-wise work around them, then the rest of it fuses.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/walk.h"
#include "pass/pass.h"

static enum mgx_status run(struct mgx_pass_call *c)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_fuse_reduce, &mgx_pass_fuse_pointwise,
                                                    NULL};
    return mgx_pass_apply_all(c, passes);
}

const struct mgx_pass mgx_pass_fuse_pointwise_reduce = {
    .name = "fuse_pointwise_reduce",
    .meaning = "fuse_reduce, then fuse_pointwise",
    .program = run,
    .by_size = true,
};
