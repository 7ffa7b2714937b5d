// SPDX-License-Identifier: MIT
// The roles of attention's instructions; see attention.h.
#include "pass/engine/attention.h"

#include "op/op.h"
#include "pass/engine/guard.h"

static bool is_rounding(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convert && ins->shape.type == MGX_BF16;
}

// A product by the operator of the other one.
static struct mgx_ins *product_of(struct mgx_ins *in, const struct mgx_op *op)
{
    if (in->op == op)
        return in;
    for (int i = 0; i < in->in_count; i++)
        if (in->in[i]->op == op)
            return in->in[i];
    return NULL;
}

bool mgx_read_attention(const struct mgx_ins *weigh, struct mgx_attention_roles *out)
{
    *out = (struct mgx_attention_roles){.weigh = weigh};
    if (!mgx_is_of_matrices(weigh))
        return false;
    struct mgx_ins *x = weigh->in[0];
    for (bool known = true; known;) {
        if (!out->guard && mgx_is_nan_guard(x))
            x = (out->guard = x)->in[0];
        else if (!out->rounded && weigh->op == &mgx_op_quant_dot && is_rounding(x))
            x = (out->rounded = x)->in[0];
        else
            known = false;
    }
    if (x->op != &mgx_op_softmax)
        return false;
    out->softmax = x;
    out->scores = product_of(x->in[0], weigh->op);
    out->between = out->scores == x->in[0] ? NULL : x->in[0];
    return out->scores != NULL;
}
