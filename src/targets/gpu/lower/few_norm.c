// SPDX-License-Identifier: MIT
// Reads a normalisation by the root mean square from the body of a fused_reduce:
//
//     y = x * rsqrt(reduce_mean(x * x) + eps) * gain
//
// in any order of factors, with conversions between them. few.h says what for.
#include "op/op.h"
#include "targets/gpu/lower/few.h"
#include "targets/gpu/lower/tail.h"

enum { MOST_FACTORS = 4 };

struct factors {
    const struct mgx_ins *list[MOST_FACTORS];
    int count;
};

static const struct mgx_ins *strip(const struct mgx_ins *ins)
{
    while (ins->op == &mgx_op_convert || ins->op == &mgx_op_multibroadcast ||
           ins->op == &mgx_op_broadcast)
        ins = ins->in[0];
    return ins;
}

// False when there are too many.
static bool collect(const struct mgx_ins *ins, struct factors *f)
{
    ins = strip(ins);
    if (ins->op == &mgx_op_mul)
        return collect(ins->in[0], f) && collect(ins->in[1], f);
    if (f->count == MOST_FACTORS)
        return false;
    f->list[f->count++] = ins;
    return true;
}

static bool is_one_number(const struct mgx_ins *ins)
{
    return ins->literal && mgx_shape_elements(&ins->shape) == 1;
}

// The parameter whose mean square this is, with the last axis alone gone; NULL.
static const struct mgx_ins *squared(const struct mgx_ins *mean)
{
    if (mean->op != &mgx_op_reduce_mean)
        return NULL;
    const struct mgx_ints axes = mgx_ins_ints(mean, "axes");
    const struct mgx_ins *square = strip(mean->in[0]);
    if (axes.count != 1 || axes.v[0] != mean->shape.rank - 1 || square->op != &mgx_op_mul)
        return NULL;
    const struct mgx_ins *x = strip(square->in[0]);
    return x == strip(square->in[1]) && x->op == &mgx_op_param ? x : NULL;
}

// rsqrt(mean of x^2 + eps): x.
static const struct mgx_ins *read_factor(const struct mgx_ins *ins, double *eps)
{
    const struct mgx_ins *sum = ins->op == &mgx_op_rsqrt ? strip(ins->in[0]) : NULL;
    if (!sum || sum->op != &mgx_op_add)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *number = strip(sum->in[i]);
        if (!is_one_number(number))
            continue;
        *eps = mgx_load_double(number->shape.type, number->literal->data, 0);
        return squared(strip(sum->in[1 - i]));
    }
    return NULL;
}

bool gpu_few_norm_read(const struct mgx_ins *ins, struct gpu_few_norm *norm)
{
    const struct mgx_ins *x = NULL, *gain = NULL;
    struct factors f = {.count = 0};
    if (ins->op != &mgx_op_fused_reduce || mgx_module_result_count(ins->mod[0]) != 1 ||
        !collect(mgx_module_result(ins->mod[0], 0), &f) || f.count != 3)
        return false;
    for (int i = 0; i < f.count && !x; i++)
        x = read_factor(f.list[i], &norm->eps);
    int own = 0;
    for (int i = 0; i < f.count; i++) {
        own += f.list[i] == x;
        if (f.list[i]->op == &mgx_op_param && f.list[i] != x)
            gain = f.list[i];
    }
    if (!x || !gain || own != 1)
        return false;
    norm->x = mgx_parameter_index(x);
    norm->gain = mgx_parameter_index(gain);
    return norm->x >= 0 && norm->gain >= 0;
}
