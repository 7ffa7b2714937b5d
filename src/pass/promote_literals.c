// SPDX-License-Identifier: MIT
// Literals of bodies move to main, where each is stored once and uploaded once.
//
//     body: literal   =>   main: literal, read by the body from outside
//
// Bodies of fused kernels keep theirs: there they are part of the code.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/walk.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_module *main = mgx_program_main(c->program);
    if (m == main)
        return MGX_OK;
    MGX_EACH (ins, m) {
        if (!ins->literal)
            continue;
        struct mgx_ins *moved = mgx_add_literal(main, ins->literal);
        if (!moved)
            return mgx_program_status(c->program, c->diag);
        if (ins == m->last)
            mgx_add_return(m, &moved, 1);
        mgx_replace_uses(ins, moved);
        c->changed = true;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_promote_literals = {
    .name = "promote_literals",
    .meaning = "moves literals of bodies to the main module",
    .module = run,
};
