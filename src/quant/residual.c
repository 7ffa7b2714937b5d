// SPDX-License-Identifier: MIT
// Residual sums read what is quantized anyway; see apply.h.
#include <assert.h>

#include "pass/engine/constant.h"
#include "quant/apply.h"

enum {
    MOST_LINES = 6,   // operators between a convolution and the sum: bias, activation
    MOST_STEPS = 4096 // instructions between the pair and the sum
};

// Is this made of a narrow convolution by element-wise operators and constants alone?
static bool ends_convolution(struct mgx_ins *ins, int lines)
{
    bool ends = false;
    if (ins->op == &mgx_op_convolution)
        return ins->in[0]->op == &mgx_op_dequantizelinear;
    if (!(ins->op->flags & MGX_OP_POINTWISE) || lines == 0)
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        if (mgx_is_constant(ins->owner, ins->in[i]))
            continue;
        if (!ends_convolution(ins->in[i], lines - 1))
            return false;
        ends = true;
    }
    return ends;
}

static bool is_behind(const struct mgx_ins *ins, const struct mgx_ins *first)
{
    for (int steps = 0; first && steps < MOST_STEPS; steps++, first = first->next)
        if (first == ins)
            return true;
    return false;
}

// The next sum that reads x and may read `narrow`; *input is which of its inputs.
static struct mgx_ins *find_sum(const struct mgx_ins *x, const struct mgx_ins *narrow, int *input)
{
    for (const struct mgx_use *use = x->uses; use; use = use->next) {
        struct mgx_ins *sum = use->user;
        if (sum->op != &mgx_op_add || sum->owner != narrow->owner || sum->in[0] == sum->in[1])
            continue;
        *input = sum->in[0] == x ? 0 : 1;
        if (ends_convolution(sum->in[1 - *input], MOST_LINES) && is_behind(sum, narrow))
            return sum;
    }
    return NULL;
}

void mgx_quant_share(struct mgx_ins *x, struct mgx_ins *narrow)
{
    assert(narrow->op == &mgx_op_dequantizelinear && narrow != x);
    int input = 0;
    for (struct mgx_ins *sum; (sum = find_sum(x, narrow, &input));)
        mgx_set_input(sum, input, narrow);
}
