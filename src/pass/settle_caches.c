// SPDX-License-Identifier: MIT
// Caches whose length depends on how many tokens there will be keep the room that they have.
//
//     cache_append(now, ends, total, past {b, h, room, d})  =>  cache_append(now, ends, room, past)
//
// For programs whose results have places of a fixed size before any run, given by the caller: the
// room of a result is what its place has. What finds no place there is left out, as the operator
// says. Runs only where it is named (targets/gpu/target.c). Holds: past's room is fixed, not 0, and
// holds the new tokens; a total that is a literal stays. O(instructions).
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/pass.h"

enum { NOW, ENDS, TOTAL, PAST };

static bool is_open(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_cache_append && ins->in_count > PAST && !ins->in[TOTAL]->literal &&
           mgx_shape_is_static(&ins->in[PAST]->shape) &&
           mgx_shape_is_static(&ins->in[NOW]->shape) && ins->in[PAST]->shape.lens[2] > 0 &&
           ins->in[PAST]->shape.lens[2] >= ins->in[NOW]->shape.lens[2];
}

static enum mgx_status settle(struct mgx_ins *ins, struct mgx_diag *diag)
{
    struct mgx_program *p = ins->owner->program;
    struct mgx_ins *room = mgx_literal_ints(ins->owner, &ins->in[PAST]->shape.lens[2], 1);
    if (room)
        mgx_set_input(ins, TOTAL, room);
    return mgx_program_status(p, diag);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    bool changed = false;
    MGX_EACH (ins, m) {
        if (is_open(ins)) {
            TRY(settle(ins, c->diag));
            changed = true;
        }
        if (changed && ins->in_count) // whoever reads a cache knows its length now
            TRY(mgx_update_shape(ins, c->diag));
    }
    c->changed |= changed;
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_settle_caches = {
    .name = "settle_caches",
    .meaning = "caches whose length the run would say keep the room that they have",
    .module = run,
    .by_size = true,
};
