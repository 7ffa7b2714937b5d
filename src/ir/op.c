// SPDX-License-Identifier: MIT
// The checked way to a result's shape: what holds for the inputs and the result of every operator
// is checked here, so that a shape rule need not.
#include "ir/op.h"

#include <assert.h>

static enum mgx_status check_count(const struct mgx_shape_call *c)
{
    const struct mgx_op *op = c->op;
    if (c->in_count >= op->in_min && (op->in_max < 0 || c->in_count <= op->in_max))
        return MGX_OK;
    if (op->in_max < 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected at least %d but given %d",
                        op->name, op->in_min, c->in_count);
    if (op->in_max != op->in_min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected %d to %d but given %d", op->name,
                        op->in_min, op->in_max, c->in_count);
    return mgx_fail(c->diag, MGX_INVALID, "%s: Wrong number of arguments: expected %d but given %d",
                    op->name, op->in_min, c->in_count);
}

static enum mgx_status check_kinds(const struct mgx_shape_call *c)
{
    if (c->op->flags & MGX_OP_AGGREGATE)
        return MGX_OK;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i]->type == MGX_TUPLE || c->in[i]->type == MGX_SEQUENCE)
            return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is a %s, not a tensor", c->op->name,
                            i, mgx_type_name(c->in[i]->type));
    return MGX_OK;
}

// Unranked inputs end inference here, unless the operator handles them itself: a rule that takes
// sequences or passes its input through has in its hands what it needs.
static bool gives_up(const struct mgx_shape_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i]->unranked)
            return true;
    return false;
}

// Has every value that is known the shape it is known for?
__attribute__((unused)) static bool values_agree(const struct mgx_shape_call *c)
{
    for (int i = 0; c->values && i < c->in_count; i++)
        if (c->values[i] && !mgx_shape_may_match(&c->values[i]->shape, c->in[i]))
            return false;
    return true;
}

// An end beyond any length is no end: sums and products of ranges without one stay such.
static bool has_far_end(const struct mgx_dim *d)
{
    return d->max > MGX_DIM_ANY && d->min < MGX_DIM_ANY;
}

static bool limit_ranges(struct mgx_arena *arena, struct mgx_shape *s)
{
    struct mgx_dim *dims = NULL;
    for (int i = 0; s->dims && i < s->rank; i++) {
        if (!has_far_end(&s->dims[i]))
            continue;
        if (!dims && !(dims = mgx_arena_memdup(arena, s->dims, (size_t)s->rank * sizeof *dims)))
            return false;
        dims[i].max = s->lens[i] = MGX_DIM_ANY;
    }
    if (dims)
        s->dims = dims;
    return true;
}

static bool needs_limits(const struct mgx_shape *s)
{
    for (int i = 0; s->dims && i < s->rank; i++)
        if (has_far_end(&s->dims[i]))
            return true;
    for (int i = 0; i < s->sub_count; i++)
        if (needs_limits(&s->sub[i]))
            return true;
    return false;
}

// Nesting is bounded: the shape was checked.
static enum mgx_status limit(struct mgx_arena *arena, struct mgx_shape *s, struct mgx_diag *diag)
{
    if (!needs_limits(s))
        return MGX_OK;
    struct mgx_shape *sub = NULL;
    const size_t bytes = (size_t)s->sub_count * sizeof *sub;
    if (!limit_ranges(arena, s) || (bytes && !(sub = mgx_arena_memdup(arena, s->sub, bytes))))
        return mgx_fail_memory(diag);
    for (int i = 0; i < s->sub_count; i++)
        TRY(limit(arena, &sub[i], diag));
    if (sub)
        s->sub = sub;
    return MGX_OK;
}

enum mgx_status mgx_op_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    assert(c->op);
    assert(c->arena && c->in_count >= 0 && (c->in || !c->in_count));
    assert(c->op->in_max < 0 || c->op->in_min <= c->op->in_max);
    assert(values_agree(c));
    TRY(check_count(c));
    TRY(check_kinds(c));
    if (!c->op->shape)
        return mgx_fail(c->diag, MGX_INVALID, "%s: cannot be inserted by hand", c->op->name);
    if (gives_up(c) && !(c->op->flags & MGX_OP_UNRANKED)) {
        *out = mgx_shape_unranked(c->op->unranked_type ? c->op->unranked_type(c) : c->in[0]->type);
        return MGX_OK;
    }
    TRY(c->op->shape(c, out));
    if (c->arena->failed)
        return mgx_fail_memory(c->diag);
    enum mgx_status status = mgx_shape_check(out, c->diag);
    if (status != MGX_OK)
        mgx_where(c->diag, "the result of %s", c->op->name);
    return status == MGX_OK ? limit(c->arena, out, c->diag) : status;
}
