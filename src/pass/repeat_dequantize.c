// SPDX-License-Identifier: MIT
// Every reader gets a dequantization of its own, so that what lies between two instructions is the
// narrow value: a reader's kernel widens it on the way in.
//
//     y = dq(x); a = f(y); b = g(y)   =>   a = f(dq(x)); b = g(dq'(x))
//
// Runs last before fusing: what merges equal instructions would undo it. The work is repeated, the
// memory is a quarter. Bytes alone: nothing multiplies other narrow values, and a pair of quantize
// and dequantize that stays together never leaves registers.
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

static bool is_narrow(const struct mgx_ins *ins)
{
    const enum mgx_type type = ins->in_count ? ins->in[0]->shape.type : MGX_FLOAT;
    return ins->op == &mgx_op_dequantizelinear && mgx_shape_is_static(&ins->shape) &&
           mgx_type_size(type) == 1 && mgx_type_is_integral(type);
}

// The readers but one read copies.
static enum mgx_status repeat(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    while (!mgx_used_once(ins) && ins->uses) {
        struct mgx_ins *user = ins->uses->user;
        struct mgx_ins *copy = mgx_emit_again(ins, ins, ins->in, ins->in_count);
        if (!copy)
            return mgx_program_status(c->program, c->diag);
        for (int i = 0; i < user->in_count; i++)
            if (user->in[i] == ins)
                mgx_set_input(user, i, copy);
        c->changed = true;
    }
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (m->bypass)
        return MGX_OK;
    MGX_EACH (ins, m)
        if (is_narrow(ins))
            TRY(repeat(c, ins));
    return MGX_OK;
}

const struct mgx_pass mgx_pass_repeat_dequantize = {
    .name = "repeat_dequantize",
    .meaning = "gives every reader a dequantization of its own",
    .module = run,
};
