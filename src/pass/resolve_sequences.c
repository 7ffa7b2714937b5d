// SPDX-License-Identifier: MIT
// Sequences and optionals whose members are known, followed to those members (engine/members.h).
// What nobody reads any more is dead code.
#include "pass/engine/members.h"
#include "pass/pass.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct mgx_ins *by = ins->uses ? mgx_known_member(ins, c->scratch) : NULL;
        if (by && by != ins) {
            mgx_replace_uses(ins, by);
            c->changed = true;
        }
    }
    TRY(mgx_program_status(c->program, c->diag));
    return c->scratch->failed ? mgx_fail_memory(c->diag) : MGX_OK;
}

const struct mgx_pass mgx_pass_resolve_sequences = {
    .name = "resolve_sequences",
    .meaning = "follows sequences and optionals whose members are known to those members",
    .module = run,
};
