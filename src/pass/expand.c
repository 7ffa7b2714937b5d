// SPDX-License-Identifier: MIT
// Operators that stand for others until their inputs are known (a model's node whose sizes come
// with the run) are replaced by those others, once shapes and values suffice.
//
// Runs after constants were propagated: a size that became a literal is what was missing. An
// operator that cannot be expanded stays; its reference runs it.
#include "pass/pass.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        bool done = false;
        if (!ins->op->expand)
            continue;
        TRY(ins->op->expand(ins, c->scratch, &done, c->diag));
        TRY(mgx_program_status(c->program, c->diag));
        c->changed |= done;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_expand = {
    .name = "expand",
    .meaning = "operators that waited for their inputs become what they stand for",
    .module = run,
};
