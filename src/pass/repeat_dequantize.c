// SPDX-License-Identifier: MIT
// Every reader gets a dequantization of its own, so that what lies between two instructions is the
// narrow value: a reader's kernel widens it on the way in.
//
//     y = dq(x); a = f(y); b = g(y)   =>   a = f(dq(x)); b = g(dq'(x))
//     y = dq(x) * c#, likewise        =>   a = f(dq(x) * c); b = g(dq'(x) * c)     f, g element-wise
//     a = move(dq(x))                 =>   a = dq(move(x))      where the target multiplies bytes
//     a = move(dq(x) + c#)            =>   a = dq(move(x)) + c  likewise, of c that is one number
//
// move: a view, or a gather, of what has one scale. Runs last before fusing: what merges equal
// instructions would undo it. The work is repeated, the memory is a quarter. Bytes alone: nothing
// multiplies other narrow values, and a pair of quantize and dequantize that stays together never
// leaves registers.
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

static bool is_narrow(const struct mgx_ins *ins)
{
    const enum mgx_type type = ins->in_count ? ins->in[0]->shape.type : MGX_FLOAT;
    return ins->op == &mgx_op_dequantizelinear && mgx_shape_is_static(&ins->shape) &&
           mgx_type_size(type) == 1 && mgx_type_is_integral(type);
}

// A dequantization, scaled or shifted by a constant, as a normalisation leaves it.
static bool is_scaled(const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_mul && ins->op != &mgx_op_add && ins->op != &mgx_op_sub)
        return false;
    const bool first = is_narrow(ins->in[0]);
    return is_narrow(ins->in[!first]) && mgx_is_spread_literal(ins->in[first]);
}

static bool is_read_in_place(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!mgx_is_elementwise(use->user) || !mgx_shape_same_lens(&use->user->shape, &ins->shape))
            return false;
    return true;
}

static bool is_move(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_reshape || ins->op == &mgx_op_transpose ||
           ins->op == &mgx_op_squeeze || ins->op == &mgx_op_unsqueeze || ins->op == &mgx_op_slice ||
           ins->op == &mgx_op_step || ins->op == &mgx_op_gather;
}

// The one value that is spread over all places; NULL: there are several.
static struct mgx_ins *single(struct mgx_ins *ins)
{
    struct mgx_spread s;
    while (mgx_shape_elements(&ins->shape) != 1) {
        if (!mgx_spread_of(ins, &s))
            return NULL;
        ins = s.core;
    }
    return ins;
}

// That value, whatever its rank, over all places of what moves. One that is known stays a literal
// that is spread, for the next move to see.
static struct mgx_ins *over(struct mgx_ins *at, struct mgx_ins *spread)
{
    const int64_t one = 1;
    const struct mgx_shape like = mgx_shape_retype(&at->shape, spread->shape.type);
    double known;
    if (mgx_splat_value(spread, &known))
        return mgx_emit_splat(at, &like, known);
    struct mgx_ins *value = single(spread);
    if (value && value->shape.rank > 1)
        value = mgx_emit_reshape(at, value, &one, 1);
    return value ? mgx_emit_multibroadcast(at, value, at->shape.lens, at->shape.rank) : NULL;
}

// What moves values, of the bytes that dq reads instead; NULL: it has several scales.
static struct mgx_ins *move_bytes(struct mgx_ins *ins, const struct mgx_ins *dq)
{
    enum { INPUTS = 3 };
    struct mgx_ins *in[INPUTS];
    if (!is_narrow(dq) || ins->in_count > INPUTS || !mgx_shape_is_static(&ins->shape) ||
        !mgx_shape_elements(&ins->shape) || dq->in[0]->literal || !single(dq->in[1]) ||
        (dq->in_count == 3 && !single(dq->in[2])))
        return NULL;
    for (int i = 0; i < ins->in_count; i++)
        in[i] = i == 0 ? dq->in[0] : ins->in[i];
    struct mgx_ins *moved[INPUTS] = {mgx_emit_again(ins, ins, in, ins->in_count)};
    for (int i = 1; i < dq->in_count && moved[0]; i++)
        moved[i] = over(ins, dq->in[i]);
    return moved[0] ? mgx_emit_again(ins, dq, moved, dq->in_count) : NULL;
}

// The same of what is dequantized, or scaled or shifted by one number then; NULL: it reads neither.
static struct mgx_ins *move_narrow(struct mgx_ins *ins)
{
    struct mgx_ins *x = is_move(ins) ? ins->in[0] : NULL;
    if (!x || !is_scaled(x))
        return x ? move_bytes(ins, x) : NULL;
    const bool first = is_narrow(x->in[0]);
    struct mgx_ins *in[2];
    if (!single(x->in[first]) || !(in[!first] = move_bytes(ins, x->in[!first])) ||
        !(in[first] = over(ins, x->in[first])))
        return NULL;
    return mgx_emit_again(ins, x, in, 2);
}

// The readers but one read copies.
static enum mgx_status repeat(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    while (!mgx_used_once(ins) && ins->uses) {
        struct mgx_ins *user = ins->uses->user;
        struct mgx_ins *copy = mgx_emit_again(ins, ins, ins->in, ins->in_count);
        if (!copy)
            return mgx_program_status(c->program, c->diag);
        for (int i = 0; i < user->in_count; i++)
            if (user->in[i] == ins)
                mgx_set_input(user, i, copy);
        c->changed = true;
    }
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct mgx_ins *moved = c->options->target.multiplies_bytes ? move_narrow(ins) : NULL;
        if (moved) {
            mgx_replace_uses(ins, moved);
            c->changed = true;
        }
    }
    MGX_EACH (ins, m)
        if (is_scaled(ins) && is_read_in_place(ins))
            TRY(repeat(c, ins));
    MGX_EACH (ins, m)
        if (is_narrow(ins))
            TRY(repeat(c, ins));
    return MGX_OK;
}

const struct mgx_pass mgx_pass_repeat_dequantize = {
    .name = "repeat_dequantize",
    .meaning = "gives every reader a dequantization of its own",
    .module = run,
};
