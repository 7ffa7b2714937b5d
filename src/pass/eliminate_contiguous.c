// SPDX-License-Identifier: MIT
// Copies into row-major order that nobody needs.
//
//     contiguous(x of standard shape)   =>  x
//     op(contiguous(x))                 =>  op(x)      where op reads any strides at full speed
//
// A copy that a result, an operator with demands on its input's layout, or a body reads stays. A
// reshape moves the copy into itself where it needs one.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/walk.h"

#include <assert.h>

#include "pass/layout.h"

static bool can_skip(const struct mgx_use *use)
{
    return mgx_reads_any_stride(use->user->op) && !mgx_is(use->user, &mgx_op_contiguous);
}

// True if the shape rule still gives the same lengths with x in that place; else all is as before.
static bool try_input(struct mgx_ins *user, int slot, struct mgx_ins *x)
{
    assert(slot >= 0 && slot < user->in_count);
    struct mgx_ins *const old = user->in[slot];
    const struct mgx_shape shape = user->shape;
    struct mgx_diag why = {0};
    mgx_set_input(user, slot, x);
    if (mgx_update_shape(user, &why) == MGX_OK && mgx_shape_same_lens(&shape, &user->shape))
        return true;
    mgx_set_input(user, slot, old);
    user->shape = shape;
    return false;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        if (!mgx_is(ins, &mgx_op_contiguous) || !mgx_shape_is_static(&ins->shape))
            continue;
        struct mgx_ins *x = ins->in[0];
        if (mgx_shape_is_static(&x->shape) && mgx_shape_is_standard(&x->shape)) {
            mgx_replace(ins, x);
            c->changed = true;
            continue;
        }
        for (struct mgx_use *use = ins->uses, *next; use; use = next) {
            next = use->next;
            if (can_skip(use))
                c->changed |= try_input(use->user, use->slot, x);
        }
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_eliminate_contiguous = {
    .name = "eliminate_contiguous",
    .meaning = "removes copies whose readers take any strides",
    .module = run,
};
