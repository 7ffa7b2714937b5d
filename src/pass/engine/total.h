// SPDX-License-Identifier: MIT
// Totals: reductions of a whole tensor of floats to one value.
#pragma once

#include "op/op.h"
#include "pass/engine/region.h"

static inline bool mgx_is_total(const struct mgx_ins *ins)
{
    return (ins->op == &mgx_op_reduce_min || ins->op == &mgx_op_reduce_max) && ins->in_count == 1 &&
           ins->shape.type == MGX_FLOAT && mgx_shape_is_static(&ins->shape) &&
           mgx_shape_is_static(&ins->in[0]->shape) && mgx_shape_elements(&ins->shape) == 1 &&
           mgx_shape_elements(&ins->in[0]->shape) > 1;
}
