// SPDX-License-Identifier: MIT
// Computes in another type what is of a type that the target lacks.
//
//     op(x, ...) of type t   =>  convert[t](op(convert[u](x), ...))      t goes, u is used instead
//
// Every instruction keeps its result's type, so its readers need not know; conversions that meet
// are for eliminate_convert. Untouched: what only moves bytes (views, gather, concat ...),
// conversions themselves, control flow, operators whose shape rule refuses the other type, and
// operators that are not the engine's (a caller's own, a model's node that waits for its inputs):
// those were written for the types they read, and may say one result and give another.
//
// With `saturate`, what may be beyond the narrower type is clamped on its way in: a mask of -3e38
// stays a number that softmax can subtract. What comes back from that type needs no clamp. And what
// keeps values from zero by less than half has stays more than zero. As a pass: fp8, bf16 and half
// become float; targets say their own types. O(instructions).
//
// A target that lacks types calls mgx_eliminate_data_type with its own; as a pass no pipeline runs
// it.
#include "pass/data_type.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/size.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

static bool is_listed(const struct mgx_op *const *list, const struct mgx_op *op)
{
    for (; list && *list; list++)
        if (*list == op)
            return true;
    return false;
}

// Operators that do not look at values.
static bool only_moves(const struct mgx_op *op)
{
    static const struct mgx_op *const others[] = {&mgx_op_convert,
                                                  &mgx_op_allocate,
                                                  &mgx_op_get_tuple_elem,
                                                  &mgx_op_where,
                                                  &mgx_op_quantizelinear,
                                                  &mgx_op_dequantizelinear,
                                                  NULL};
    const unsigned moves = MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_BUILTIN | MGX_OP_BLIND;
    return (op->flags & moves) || is_listed(others, op);
}

static bool is_listed_type(const struct mgx_data_types *d, enum mgx_type type)
{
    return type < 64 && (d->types & MGX_TYPE_BIT(type));
}

static bool concerns(const struct mgx_data_types *d, const struct mgx_ins *ins)
{
    const bool own = mgx_op_find(ins->op->name) == ins->op;
    if (!own || only_moves(ins->op) || ins->mod_count || is_listed(d->keep, ins->op) ||
        (d->spared && mgx_map_find_pointer(d->spared, ins)) ||
        (d->only && !mgx_map_find_pointer(d->only, ins)))
        return false;
    bool any = is_listed_type(d, ins->shape.type);
    for (int i = 0; i < ins->in_count; i++)
        any |= is_listed_type(d, ins->in[i]->shape.type);
    return any && ins->in_count;
}

// Inputs of the other type, and the values of those that keep theirs.
static void change_inputs(const struct mgx_data_types *d, const struct mgx_ins *ins,
                          struct mgx_shape *shapes, const struct mgx_shape **in,
                          const struct mgx_tensor **values)
{
    for (int i = 0; i < ins->in_count; i++) {
        const bool changes = is_listed_type(d, ins->in[i]->shape.type);
        shapes[i] = ins->in[i]->shape;
        if (changes)
            shapes[i].type = d->target;
        in[i] = &shapes[i];
        values[i] = changes ? NULL : ins->in[i]->literal;
    }
}

// Would the operator work on the other type, and how would its result be typed?
static bool result_type(const struct mgx_data_types *d, const struct mgx_ins *ins,
                        struct mgx_arena *scratch, enum mgx_type *out)
{
    struct mgx_shape *shapes = MGX_NEW_ARRAY(scratch, struct mgx_shape, ins->in_count);
    const struct mgx_shape **in = MGX_NEW_ARRAY(scratch, const struct mgx_shape *, ins->in_count);
    const struct mgx_tensor **values =
        MGX_NEW_ARRAY(scratch, const struct mgx_tensor *, ins->in_count);
    if (!shapes || !in || !values)
        return false;
    change_inputs(d, ins, shapes, in, values);
    struct mgx_diag why = {0};
    struct mgx_shape_call call = {.op = ins->op,
                                  .attr = ins->attr,
                                  .in = in,
                                  .in_count = ins->in_count,
                                  .values = values,
                                  .arena = scratch,
                                  .diag = &why};
    struct mgx_shape shape;
    if (mgx_op_shape(&call, &shape) != MGX_OK)
        return false;
    *out = shape.type;
    return true;
}

// --- saturating ---

static bool any_exceeds(const float *x, int64_t count, float highest)
{
    int beyond = 0;
    for (int64_t i = 0; i < count; i++)
        beyond |= (fabsf(x[i]) > highest) & (fabsf(x[i]) <= FLT_MAX);
    return beyond;
}

static bool literal_exceeds(const struct mgx_tensor *t, double highest)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    if (t->shape.type == MGX_FLOAT && mgx_shape_is_standard(&t->shape))
        return any_exceeds(t->data, count, (float)highest);
    for (int64_t i = 0; i < count; i++) {
        const double v = mgx_load_double(t->shape.type, t->data, mgx_shape_index(&t->shape, i));
        if (isfinite(v) && fabs(v) > highest)
            return true;
    }
    return false;
}

// Which values are known to stay within the other type: what moves such alone, however far it goes.
struct bounded {
    const struct mgx_data_types *types;
    struct mgx_map known; // by address
};

// May x hold a number beyond the other type? Looks through what only moves values.
static bool may_exceed(const struct bounded *b, const struct mgx_ins *x, int depth)
{
    assert(depth >= 0);
    const struct mgx_data_types *d = b->types;
    const double highest = mgx_type_highest(d->target);
    if (x->literal)
        return literal_exceeds(x->literal, highest);
    if (x->op == &mgx_op_convert && mgx_type_is_number(x->in[0]->shape.type) &&
        mgx_type_highest(x->in[0]->shape.type) <= highest)
        return false;
    if (mgx_map_find_pointer(&b->known, x))
        return false;
    if (depth == 0 || x->in_count == 0 || !only_moves(x->op) || x->op == &mgx_op_get_tuple_elem)
        return true;
    bool any = false;
    for (int i = 0; i < x->in_count && !any; i++)
        any = is_listed_type(d, x->in[i]->shape.type) && may_exceed(b, x->in[i], depth - 1);
    return any;
}

// Its inputs were seen before, so one step back tells.
static enum mgx_status note_bounded(struct mgx_pass_call *c, struct bounded *b, struct mgx_ins *ins)
{
    const bool noted = !b->types->saturate || ins->literal || !only_moves(ins->op) ||
                       !is_listed_type(b->types, ins->shape.type) || may_exceed(b, ins, 1) ||
                       mgx_map_put_pointer(&b->known, ins, ins);
    return noted ? MGX_OK : mgx_fail_memory(c->diag);
}

static struct mgx_ins *bound_like(struct mgx_ins *at, struct mgx_ins *x, double value)
{
    if (mgx_shape_is_static(&x->shape))
        return mgx_emit_splat(at, &x->shape, value);
    struct mgx_ins *one = mgx_literal_double(at->owner, x->shape.type, value);
    return mgx_emit_before(at, &mgx_op_multibroadcast, NULL, MGX_IN(one, x));
}

// x within the finite values of the other type, where it may be beyond and its rank is known.
static struct mgx_ins *clamp(const struct bounded *b, struct mgx_ins *at, struct mgx_ins *x)
{
    enum { DEPTH = 8 };
    if (!b->types->saturate || x->shape.unranked || !may_exceed(b, x, DEPTH))
        return x;
    const double highest = mgx_type_highest(b->types->target);
    struct mgx_ins *low = bound_like(at, x, -highest), *high = bound_like(at, x, highest);
    return mgx_emit_before(at, &mgx_op_clip, NULL, MGX_IN(x, low, high));
}

// What keeps a value from zero, below half's smallest number, and would let it be zero there: the
// 1e-12 beside a norm that something is divided by. The smallest number takes its place.
static struct mgx_ins *keep_floor(const struct bounded *b, struct mgx_ins *at, int input)
{
    static const double smallest = 0x1p-24;
    struct mgx_ins *x = at->in[input];
    double value;
    const bool keeps =
        at->op == &mgx_op_max || at->op == &mgx_op_add || (at->op == &mgx_op_clip && input == 1);
    if (!b->types->saturate || b->types->target != MGX_HALF || !keeps ||
        !mgx_splat_value(x, &value) || value <= 0 || value > smallest / 2)
        return x;
    return bound_like(at, x, smallest);
}

// --- the rewrite ---

static enum mgx_status wrap(struct mgx_pass_call *c, const struct bounded *b, struct mgx_ins *ins)
{
    const struct mgx_data_types *d = b->types;
    struct mgx_ins **in = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, ins->in_count);
    if (!in)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < ins->in_count; i++) {
        const bool changes = is_listed_type(d, ins->in[i]->shape.type);
        struct mgx_ins *x = changes ? clamp(b, ins, keep_floor(b, ins, i)) : ins->in[i];
        in[i] = changes ? mgx_emit_convert(ins, x, d->target) : x;
    }
    struct mgx_ins *y = mgx_insert(ins->owner, ins, ins->op, ins->attr, in, ins->in_count, NULL, 0);
    y = mgx_emit_convert(ins, y, ins->shape.type);
    if (!y)
        return mgx_program_status(c->program, c->diag);
    mgx_replace(ins, y);
    c->changed = true;
    return MGX_OK;
}

enum mgx_status mgx_eliminate_data_type(struct mgx_pass_call *c, struct mgx_module *m,
                                        const struct mgx_data_types *d)
{
    struct bounded b = {.types = d};
    enum mgx_status status = MGX_OK;
    for (struct mgx_ins *ins = m->first, *next; ins && status == MGX_OK; ins = next) {
        enum mgx_type type;
        next = ins->next;
        if (!concerns(d, ins))
            status = note_bounded(c, &b, ins);
        // A tuple's members would each need converting back.
        else if (result_type(d, ins, c->scratch, &type) && type != MGX_TUPLE &&
                 type != MGX_SEQUENCE)
            status = wrap(c, &b, ins);
    }
    mgx_map_fini(&b.known);
    return status;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    static const struct mgx_data_types narrow = {
        .types = MGX_TYPE_BIT(MGX_HALF) | MGX_TYPE_BIT(MGX_BF16) | MGX_TYPE_BIT(MGX_FP8E4M3FNUZ) |
                 MGX_TYPE_BIT(MGX_FP8E4M3FN) | MGX_TYPE_BIT(MGX_FP8E5M2) |
                 MGX_TYPE_BIT(MGX_FP8E5M2FNUZ),
        .target = MGX_FLOAT};
    return mgx_eliminate_data_type(c, m, &narrow);
}

const struct mgx_pass mgx_pass_eliminate_data_type = {
    .name = "eliminate_data_type",
    .meaning = "computes fp8, bf16 and half in float",
    .module = run,
};
