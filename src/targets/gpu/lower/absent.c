// SPDX-License-Identifier: MIT
// undefined: an operand that is not there. It has no elements, so there is nothing to run; taken
// here, it is no step of the host's between two of the card's.
#include "op/op.h"
#include "targets/gpu/lower/lower.h"

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const bool absent = !c->copy_only && !c->dynamic && c->ins->op == &mgx_op_undefined;
    return absent && mgx_shape_elements(c->out) == 0 ? MGX_PLAN_TAKEN
                                                     : gpu_decline(c, "not an absent operand");
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)step, (void)args, (void)diag;
    return MGX_OK;
}

const struct mgx_plan_kernel gpu_kernel_absent = {
    .name = "gpu::absent", .prepare = prepare, .run = run};
