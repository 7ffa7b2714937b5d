// SPDX-License-Identifier: MIT
// Attention between bytes; byte_attention.h says more.
#include "pass/engine/byte_attention.h"

#include "pass/engine/constant.h"
#include "pass/engine/region.h"

enum { LONGEST = 24 }; // instructions of f, or of g

static bool is_byte(const struct mgx_ins *ins)
{
    return ins->shape.type == MGX_INT8 || ins->shape.type == MGX_UINT8;
}

static bool is_fp8(const struct mgx_ins *ins)
{
    return mgx_type_is_fp8(ins->shape.type);
}

static bool multiplies_bytes(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quant_dot && is_byte(ins->in[0]) && is_byte(ins->in[1]);
}

static bool multiplies_fp8(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quant_dot && is_fp8(ins->in[0]) && is_fp8(ins->in[1]) &&
           ins->in_count == 2;
}

// The first reader with this operator behind element-wise instructions that are read once.
static struct mgx_ins *ahead(struct mgx_ins *ins, const struct mgx_op *op)
{
    for (int i = 0; i < LONGEST && mgx_used_once(ins); i++) {
        struct mgx_ins *user = ins->uses->user;
        if (user->owner != ins->owner)
            return NULL;
        if (user->op == op)
            return user->in[0] == ins ? user : NULL;
        if (!mgx_is_elementwise(user))
            return NULL;
        ins = user;
    }
    return NULL;
}

// The other way.
static struct mgx_ins *behind(struct mgx_ins *ins, const struct mgx_op *op, int most)
{
    struct mgx_ins *found = NULL;
    if (ins->op == op || !mgx_is_elementwise(ins) || !mgx_used_once(ins) || most == 0)
        return ins->op == op ? ins : NULL;
    for (int i = 0; i < ins->in_count && !found; i++)
        found = behind(ins->in[i], op, most - 1);
    return found;
}

// Weights are bytes above their zero point: the lowest, or 0, as calibration has it. What is
// quantized of a softmax never falls below either.
static bool has_low_zero(const struct mgx_ins *weigh)
{
    const double low = mgx_type_lowest(weigh->in[0]->shape.type);
    return weigh->in_count <= 2 || mgx_is_splat(weigh->in[2], low) || mgx_is_splat(weigh->in[2], 0);
}

// Of bytes the softmax is one of floats.
static bool products_fit(const struct mgx_byte_attention *a)
{
    const enum mgx_type type = a->softmax->shape.type;
    if (multiplies_fp8(a->scores))
        return multiplies_fp8(a->weigh) && (type == MGX_FLOAT || mgx_type_is_half_or_bf16(type));
    return multiplies_bytes(a->scores) && multiplies_bytes(a->weigh) &&
           mgx_has_splats(a->scores, 2) && mgx_has_splats(a->weigh, 2) && has_low_zero(a->weigh) &&
           type == MGX_FLOAT;
}

static bool byte_attention_fits(const struct mgx_byte_attention *a)
{
    const struct mgx_shape *s = &a->scores->shape, *w = &a->weigh->shape;
    const int64_t axis = mgx_ins_int(a->softmax, "axis");
    return products_fit(a) && a->weigh->in[1] != a->weigh->in[0] && mgx_shape_is_static(s) &&
           mgx_shape_is_static(w) && mgx_shape_elements(s) > 0 &&
           (axis == -1 || axis == s->rank - 1) && mgx_shape_same_lens(s, &a->softmax->shape) &&
           mgx_shape_same_lens(s, &a->weigh->in[0]->shape);
}

bool mgx_find_byte_attention(const struct mgx_pass_options *options, struct mgx_ins *ins,
                             struct mgx_byte_attention *out)
{
    const struct mgx_pass_target *target = &options->target;
    if (!(target->multiplies_bytes || target->multiplies_fp8) || !target->supports)
        return false;
    struct mgx_ins *softmax = ins->op == &mgx_op_softmax ? ins : NULL;
    if (ins->op == &mgx_op_quant_dot && !(softmax = ahead(ins, &mgx_op_softmax)))
        softmax = behind(ins->in[0], &mgx_op_softmax, LONGEST);
    if (!softmax)
        return false;
    *out = (struct mgx_byte_attention){.scores = behind(softmax->in[0], &mgx_op_quant_dot, LONGEST),
                                       .softmax = softmax,
                                       .weigh = ahead(softmax, &mgx_op_quant_dot)};
    if (!out->scores || !out->weigh || ahead(out->scores, &mgx_op_softmax) != softmax ||
        !byte_attention_fits(out))
        return false;
    const struct mgx_region both = {.ins = {out->scores, out->weigh}, .count = 2};
    return (ins == softmax || ins == out->scores || ins == out->weigh) &&
           options->target.supports(options->target.user, "byte_attention", &both);
}

bool mgx_in_byte_attention(const struct mgx_pass_options *options, struct mgx_ins *ins)
{
    struct mgx_byte_attention a;
    return mgx_find_byte_attention(options, ins, &a);
}
