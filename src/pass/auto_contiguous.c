// SPDX-License-Identifier: MIT
// Copies into row-major order where an operator asks for it.
//
//     op(x)          =>  op(contiguous(x))         x not standard, op not for any strides
//     @return(x)     =>  @return(contiguous(x))    in main: results are row-major
//
// One copy serves all readers in a module. O(edges).
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include "pass/engine/walk.h"

#include <assert.h>

#include "pass/layout.h"

bool mgx_reads_any_stride(const struct mgx_op *op)
{
    return op->flags &
           (MGX_OP_ANY_STRIDE | MGX_OP_POINTWISE | MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_REDUCE);
}

static bool needs_copy(const struct mgx_ins *x)
{
    return mgx_shape_is_static(&x->shape) && mgx_type_is_number(x->shape.type) &&
           !mgx_shape_is_standard(&x->shape) && mgx_shape_elements(&x->shape) > 1;
}

static struct mgx_ins *copy_of(struct mgx_ins *x, struct mgx_ins *user, struct mgx_map *copies)
{
    assert(needs_copy(x) && user->owner->program == x->owner->program);
    struct mgx_ins *copy = mgx_map_find_pointer(copies, x);
    if (copy)
        return copy;
    copy = mgx_emit_before(user, &mgx_op_contiguous, NULL, MGX_IN(x));
    return copy && mgx_map_put_pointer(copies, x, copy) ? copy : NULL;
}

static bool wants_standard(const struct mgx_ins *user, const struct mgx_module *m)
{
    if (user->op == &mgx_op_return)
        return m == mgx_program_main(m->program);
    return !(user->op->flags & MGX_OP_BUILTIN) && !mgx_reads_any_stride(user->op);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_map copies = {0};
    bool ok = true;
    MGX_EACH (ins, m) {
        for (int i = 0; i < ins->in_count && ok; i++) {
            if (!wants_standard(ins, m) || !needs_copy(ins->in[i]))
                continue;
            struct mgx_ins *copy = copy_of(ins->in[i], ins, &copies);
            ok = copy != NULL;
            if (ok)
                mgx_set_input(ins, i, copy);
            c->changed = true;
        }
    }
    mgx_map_fini(&copies);
    return ok ? MGX_OK : mgx_fail_memory(c->diag);
}

const struct mgx_pass mgx_pass_auto_contiguous = {
    .name = "auto_contiguous",
    .meaning = "copies into row-major order where an operator needs it",
    .module = run,
};
