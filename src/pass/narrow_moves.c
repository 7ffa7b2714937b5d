// SPDX-License-Identifier: MIT
// Operators that only move elements move those of 16 bits, before they are widened to float.
//
//     move(convert[float](x))              =>  convert[float](move(x))        x half or bf16
//     move(convert[int32](x))              =>  convert[int32](move(x))        x of 8 bits
//     concat(convert[float](x), ...)       =>  convert[float](concat(x, ...))  of one narrow type
//     convert[half](concat(convert[float](x), c, ...))
//                                          =>  concat(x, convert[half](c), ...)
//     convert[half](move(c))               =>  move(convert[half](c))          c a literal of float;
//     convert[half](gather(c, i))          =>  gather(convert[half](c), i)     bf16 likewise
//
// A table that rows are gathered from, and a product reads the other way round, then becomes one
// narrow literal instead of two.
//
// Quantization leaves moves in their own type, between conversions. Behind the moves a conversion
// meets the one that takes it back, and both go (eliminate_convert); until then half the bytes
// move. A reshape that gives a result moves none, and no conversion comes behind it: there it
// stays. Weights that whoever packs them takes in pieces (mgx_is_joined_weights) stay as they are
// on a target that multiplies bfloat16 itself. Broadcasts stay: behind one there is more to
// convert. O(instructions).
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"

#include <assert.h>

#include "pass/engine/walk.h"

static bool is_widening(const struct mgx_ins *ins)
{
    const enum mgx_type from = ins->op == &mgx_op_convert ? ins->in[0]->shape.type : MGX_FLOAT;
    return (ins->shape.type == MGX_FLOAT && mgx_type_is_half_or_bf16(from)) ||
           (ins->shape.type == MGX_INT32 && mgx_type_is_byte(from));
}

static bool only_moves(const struct mgx_op *op)
{
    return op == &mgx_op_concat || op == &mgx_op_contiguous ||
           ((op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)) && op != &mgx_op_broadcast &&
            op != &mgx_op_multibroadcast && op != &mgx_op_identity && op != &mgx_op_scalar);
}

// Only seen otherwise by those who called: nothing moves, and the conversion stays with what it
// reads, whose last line it can be.
static bool is_a_result(const struct mgx_ins *ins)
{
    const bool moves = ins->op == &mgx_op_concat || ins->op == &mgx_op_contiguous ||
                       ins->op == &mgx_op_transpose || !(ins->op->flags & MGX_OP_RESHAPE);
    return !moves && mgx_used_once(ins) && ins->uses->user->op == &mgx_op_return;
}

static bool moves_widened(const struct mgx_ins *ins)
{
    if (!only_moves(ins->op) || !ins->in_count || is_a_result(ins))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!is_widening(ins->in[i]) ||
            ins->in[i]->in[0]->shape.type != ins->in[0]->in[0]->shape.type)
            return false;
    return ins->op == &mgx_op_concat || ins->in_count == 1;
}

static enum mgx_status sink(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    struct mgx_ins **in = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, ins->in_count);
    if (!in)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < ins->in_count; i++)
        in[i] = ins->in[i]->in[0];
    struct mgx_ins *moved = mgx_emit_again(ins, ins, in, ins->in_count);
    if (moved)
        mgx_replace(ins,
                    mgx_emit_before(ins, &mgx_op_convert,
                                    MGX_ATTRS(mgx_int("target_type", (int64_t)ins->shape.type)),
                                    MGX_IN(moved)));
    return mgx_program_status(c->program, c->diag);
}

// What a narrowing conversion reads, when that moves a literal and does nothing else for anyone.
static struct mgx_ins *moved_literal(const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_convert || ins->in[0]->shape.type != MGX_FLOAT ||
        !mgx_type_is_half_or_bf16(ins->shape.type))
        return NULL;
    struct mgx_ins *move = ins->in[0];
    const bool moves = (only_moves(move->op) && move->in_count == 1) || move->op == &mgx_op_gather;
    return moves && mgx_used_once(move) && move->in[0]->literal ? move : NULL;
}

// What a narrowing conversion reads, when that only joins literals and values that were of its
// type.
static struct mgx_ins *joined_narrow(const struct mgx_ins *ins)
{
    if (ins->op != &mgx_op_convert || ins->in[0]->op != &mgx_op_concat ||
        ins->in[0]->shape.type != MGX_FLOAT || !mgx_used_once(ins->in[0]))
        return NULL;
    bool any = false;
    for (int i = 0; i < ins->in[0]->in_count; i++) {
        const struct mgx_ins *in = ins->in[0]->in[i];
        const bool widened = is_widening(in) && in->op == &mgx_op_convert &&
                             in->in[0]->shape.type == ins->shape.type;
        any = any || widened;
        if (!widened && !in->literal)
            return NULL;
    }
    return any ? ins->in[0] : NULL;
}

static enum mgx_status narrow_parts(struct mgx_pass_call *c, struct mgx_ins *ins,
                                    struct mgx_ins *concat)
{
    struct mgx_ins **in = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, concat->in_count);
    if (!in)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < concat->in_count; i++) {
        struct mgx_ins *part = concat->in[i];
        in[i] = !part->literal
                    ? part->in[0]
                    : mgx_emit_before(ins, &mgx_op_convert,
                                      MGX_ATTRS(mgx_int("target_type", (int64_t)ins->shape.type)),
                                      MGX_IN(part));
        if (!in[i])
            return mgx_program_status(c->program, c->diag);
    }
    mgx_replace(ins, mgx_emit_again(ins, concat, in, concat->in_count));
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status narrow_literal(struct mgx_pass_call *c, struct mgx_ins *ins,
                                      struct mgx_ins *move)
{
    struct mgx_ins **in = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, move->in_count);
    if (!in)
        return mgx_fail_memory(c->diag);
    for (int i = 1; i < move->in_count; i++)
        in[i] = move->in[i];
    in[0] = mgx_emit_before(ins, &mgx_op_convert,
                            MGX_ATTRS(mgx_int("target_type", (int64_t)ins->shape.type)),
                            MGX_IN(move->in[0]));
    if (in[0])
        mgx_replace(ins, mgx_emit_again(ins, move, in, move->in_count));
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        struct mgx_ins *move = moved_literal(ins), *concat = joined_narrow(ins);
        const bool packs = c->options->target.multiplies_bf16 && mgx_is_joined_weights(ins);
        if (moves_widened(ins) && !packs)
            TRY(sink(c, ins));
        else if (concat)
            TRY(narrow_parts(c, ins, concat));
        else if (move)
            TRY(narrow_literal(c, ins, move));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_narrow_moves = {
    .name = "narrow_moves",
    .meaning = "moves values before they are widened to float and not after",
    .module = run,
};
