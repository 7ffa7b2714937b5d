// SPDX-License-Identifier: MIT
// See member.h.
#include "targets/gpu/lower/member.h"

#include "op/op.h"

bool gpu_member_read(const struct mgx_plan_offer *c, const struct mgx_op *op, struct gpu_member *m)
{
    if (c->copy_only || c->dynamic || !mgx_is_group(c->ins, "member"))
        return false;
    const struct mgx_ins *taken = mgx_module_result(c->ins->mod[0], 0);
    *m = (struct gpu_member){.ins = taken->in[0], .which = (int)mgx_ins_int(taken, "index")};
    if (m->ins->op != op || m->ins->in_count > GPU_CALL_INPUTS)
        return false;
    for (int i = 0; i < m->ins->in_count; i++) {
        m->in[i] = mgx_parameter_index(m->ins->in[i]);
        if (m->in[i] < 0)
            return false;
    }
    m->in_count = m->ins->in_count;
    return true;
}
