// SPDX-License-Identifier: MIT
// Computes in double what the program computes in float, half or bf16; for judging other targets.
//
//     x: float parameter of main      =>  convert[double](x) for all readers
//     float literal                   =>  double literal
//     convert[float](y)               =>  convert[double](y)
//     @return(z), z was float         =>  @return(convert[float](z))   in main
//     op that refuses doubles         =>  convert[double](op(convert[float](x)))
//
// Parameters of bodies take the types of what is handed to them. In execution order, so each shape
// rule sees its new inputs; bodies when their user is reached. Values that others define stay with
// their types: what is not one of our own operators, and reinterpreted bits. O(instructions + bytes
// of literals).
//
// The ref target runs it when a program is compiled to compute in doubles; no pipeline does.
#include "op/eval/eval.h"

#include <assert.h>

#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

static bool is_widened(enum mgx_type type)
{
    return type == MGX_FLOAT || mgx_type_is_half_or_bf16(type);
}

static enum mgx_status status_of(const struct mgx_pass_call *c)
{
    return mgx_program_status(c->program, c->diag);
}

// The readers of `ins` get it as double, from right behind it.
static enum mgx_status widen_result(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    struct mgx_ins *wide =
        ins->next ? mgx_emit_convert(ins->next, ins, MGX_DOUBLE)
                  : mgx_emit(ins->owner, &mgx_op_convert,
                             MGX_ATTRS(mgx_int("target_type", MGX_DOUBLE)), MGX_IN(ins));
    if (!wide)
        return status_of(c);
    mgx_replace_uses(ins, wide);
    wide->mark = ins->mark;
    return MGX_OK;
}

static enum mgx_status widen_literal(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    assert(ins->literal);
    const struct mgx_shape shape = mgx_shape_retype(&ins->shape, MGX_DOUBLE);
    struct mgx_tensor t = {0};
    TRY(mgx_tensor_create(&t, &shape, c->diag));
    mgx_tensor_to_doubles(ins->literal, t.data);
    struct mgx_ins *wide = mgx_add_literal(ins->owner, &t);
    mgx_tensor_release(&t);
    if (!wide)
        return status_of(c);
    wide->mark = ins->mark;
    if (ins == ins->owner->last)
        mgx_add_return(ins->owner, &wide, 1);
    mgx_replace_uses(ins, wide);
    return MGX_OK;
}

static enum mgx_status widen_parameter(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    assert(ins->op == &mgx_op_param);
    if (ins->owner == mgx_program_main(c->program))
        return widen_result(c, ins);
    ins->shape.type = MGX_DOUBLE;
    return MGX_OK;
}

// --- operators ---

// Inputs go back to what they were before, the result to double.
static enum mgx_status keep_types(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++) {
        const enum mgx_type was = (enum mgx_type)ins->in[i]->mark;
        if (ins->in[i]->shape.type == was)
            continue;
        struct mgx_ins *narrow = mgx_emit_convert(ins, ins->in[i], was);
        if (!narrow)
            return status_of(c);
        mgx_set_input(ins, i, narrow);
    }
    return mgx_update_shape(ins, c->diag);
}

static enum mgx_status widen_convert(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    void *attr = NULL;
    TRY(mgx_attr_make(ins->op, MGX_ATTRS(mgx_int("target_type", MGX_DOUBLE)), &c->program->arena,
                      &attr, c->diag));
    ins->attr = attr;
    return mgx_update_shape(ins, c->diag);
}

static enum mgx_status widen_operator(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_convert && is_widened(ins->shape.type))
        return widen_convert(c, ins);
    const struct mgx_shape before = ins->shape;
    struct mgx_diag why = {0};
    const bool own = mgx_op_find(ins->op->name) == ins->op && ins->op != &mgx_op_bit_cast;
    if (own && mgx_update_shape(ins, &why) == MGX_OK && mgx_shape_may_match(&before, &ins->shape))
        return MGX_OK;
    ins->shape = before;
    return keep_types(c, ins);
}

static enum mgx_status widen(struct mgx_pass_call *c, struct mgx_ins *ins)
{
    const enum mgx_type was = ins->shape.type;
    enum mgx_status status = MGX_OK;
    if (ins->op == &mgx_op_return || ins->op == &mgx_op_comment)
        return MGX_OK;
    if (ins->literal && is_widened(was))
        return widen_literal(c, ins);
    if (ins->op == &mgx_op_param && is_widened(was))
        status = widen_parameter(c, ins);
    else if (!(ins->op->flags & MGX_OP_BUILTIN))
        status = widen_operator(c, ins);
    if (status == MGX_OK && is_widened(ins->shape.type) && ins->op != &mgx_op_param)
        status = widen_result(c, ins);
    return status;
}

// --- modules ---

struct widening {
    struct mgx_pass_call *call;
    struct mgx_map done; // modules
    int depth;
};

// `mark` holds the type every value had.
static void remember_types(struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++)
        for (struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            ins->mark = (int64_t)ins->shape.type;
}

static enum mgx_status widen_module(struct widening *w, struct mgx_module *m)
{
    if (mgx_map_find_pointer(&w->done, m))
        return MGX_OK;
    if (w->depth == MGX_EVAL_MAX_DEPTH)
        return mgx_fail(w->call->diag, MGX_LIMIT, "modules are nested deeper than %d",
                        MGX_EVAL_MAX_DEPTH);
    if (!mgx_map_put_pointer(&w->done, m, m))
        return mgx_fail_memory(w->call->diag);
    w->depth++;
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        for (int i = 0; i < ins->mod_count; i++)
            TRY(widen_module(w, ins->mod[i]));
        TRY(widen(w->call, ins));
    }
    w->depth--;
    return MGX_OK;
}

// Results of main leave with the types they had.
static enum mgx_status narrow_results(struct mgx_pass_call *c, struct mgx_module *main)
{
    struct mgx_ins *ret = mgx_module_return(main);
    if (!ret && main->last)
        ret = mgx_add_return(main, &main->last, 1);
    for (int i = 0; ret && i < ret->in_count; i++) {
        struct mgx_ins *x = ret->in[i];
        if (!is_widened((enum mgx_type)x->mark) || x->shape.type != MGX_DOUBLE)
            continue;
        struct mgx_ins *narrow = mgx_emit_convert(ret, x, (enum mgx_type)x->mark);
        if (!narrow)
            return status_of(c);
        mgx_set_input(ret, i, narrow);
    }
    return status_of(c);
}

static enum mgx_status run(struct mgx_pass_call *c)
{
    struct widening w = {.call = c};
    remember_types(c->program);
    enum mgx_status status = widen_module(&w, mgx_program_main(c->program));
    mgx_map_fini(&w.done);
    TRY(status);
    c->changed = true;
    return narrow_results(c, mgx_program_main(c->program));
}

const struct mgx_pass mgx_pass_fp_to_double = {
    .name = "fp_to_double",
    .meaning = "computes in double what is float, half or bf16",
    .program = run,
};
