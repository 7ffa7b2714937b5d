// SPDX-License-Identifier: MIT
// A program of fp8 with float at its edges: parameters and results of main change their type.
//
//     x: fp8 parameter   =>  convert[fp8](x: float parameter)
//     return(y: fp8)     =>  return(convert[float](y))
//
// For callers without fp8 of their own. It changes the interface of the program, so it is in no
// pipeline. Parameters keep their names, lengths and order.
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

// The parameter itself becomes a float one; who read it reads it converted. It goes to the front
// and its conversion stays where it was, so that parameters stand together as MIGraphX has them.
static bool widen_parameter(struct mgx_module *m, struct mgx_ins *param)
{
    const enum mgx_type type = param->shape.type;
    struct mgx_ins *next = param->next;
    if (!next)
        return true; // nobody reads it
    param->shape.type = MGX_FLOAT;
    struct mgx_ins *narrow = mgx_emit_convert(next, param, type);
    if (!narrow)
        return false;
    mgx_replace_uses(param, narrow);
    if (m->first != param)
        mgx_move_before(param, m->first);
    return true;
}

static bool widen_results(struct mgx_ins *ret)
{
    for (int i = 0; i < ret->in_count; i++) {
        if (!mgx_type_is_fp8(ret->in[i]->shape.type))
            continue;
        struct mgx_ins *wide = mgx_emit_convert(ret, ret->in[i], MGX_FLOAT);
        if (!wide)
            return false;
        mgx_set_input(ret, i, wide);
    }
    return true;
}

static enum mgx_status run(struct mgx_pass_call *c)
{
    struct mgx_module *m = mgx_program_main(c->program);
    struct mgx_ins *ret = mgx_module_return(m);
    bool good = true;
    MGX_EACH (ins, m) {
        if (ins->op != &mgx_op_param || !mgx_type_is_fp8(ins->shape.type))
            continue;
        good &= widen_parameter(m, ins);
        c->changed = true;
    }
    for (int i = 0; ret && i < ret->in_count; i++)
        c->changed |= mgx_type_is_fp8(ret->in[i]->shape.type);
    if (ret)
        good &= widen_results(ret);
    return good ? MGX_OK : mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_autocast_fp8 = {
    .name = "autocast_fp8",
    .meaning = "makes fp8 parameters and results float ones",
    .program = run,
};
