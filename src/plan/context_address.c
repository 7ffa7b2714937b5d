// SPDX-License-Identifier: MIT
// Where an operand lies in a run: the addresses that a plan left open; see context.h.
#include <assert.h>

#include "base/size.h"
#include "plan/context.h"

void *mgx_context_address(const struct mgx_context *x, const struct mgx_plan_ref *ref)
{
    assert(ref->offset >= 0);
    switch (ref->place) {
    case MGX_PLAN_SCRATCH:
        assert((size_t)ref->offset <= x->plan->block[ref->side].bytes);
        return mgx_behind(x->scratch[ref->side], ref->offset);
    case MGX_PLAN_CONST:
        return mgx_behind(ref->data, ref->offset);
    case MGX_PLAN_PARAM:
        assert(ref->index >= 0 && ref->index < x->plan->param_count);
        return mgx_behind(x->params[ref->index].tensor.data, ref->offset);
    case MGX_PLAN_RESULT:
        assert(ref->index >= 0 && ref->index < x->plan->result_count);
        return mgx_behind(x->out[ref->index], ref->offset);
    default:
        return NULL; // dynamic: the kernel takes the tensor
    }
}

const struct mgx_tensor *mgx_context_dynamic(const struct mgx_context *x,
                                             const struct mgx_plan_value *v)
{
    assert(v->dynamic);
    return v->place == MGX_PLAN_PARAM   ? &x->params[v->index].tensor
           : v->place == MGX_PLAN_CONST ? v->ins->literal
                                        : &x->dynamic[v->index];
}
