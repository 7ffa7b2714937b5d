// SPDX-License-Identifier: MIT
// The guard as an element-wise chain of its own.
#include "pass/engine/guard.h"

#include "op/op.h"
#include "pass/engine/constant.h"

bool mgx_is_nan_guard(const struct mgx_ins *ins)
{
    double other;
    if (!mgx_is(ins, &mgx_op_pointwise) || ins->in_count != 1 || ins->mod_count != 1)
        return false;
    const struct mgx_ins *y = mgx_module_result(ins->mod[0], 0);
    if (!mgx_is(y, &mgx_op_where) || !mgx_is(y->in[0], &mgx_op_isnan))
        return false;
    const struct mgx_ins *x = y->in[2];
    return x->op == &mgx_op_param && y->in[0]->in[0] == x && mgx_splat_value(y->in[1], &other) &&
           other == 0;
}
