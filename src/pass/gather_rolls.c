// SPDX-License-Identifier: MIT
// An image that is pushed around its edges is one gather of its rows.
//
//     roll[axis, by](x) = concat(x[by ..], x[.. by])            => gather[axis](x, places#)
//     roll[axis + 1, by](roll[axis, by](x)), or the other way   => the same of both axes as one
//
// Windows that are shifted (Swin) are rolled images, by both axes, there and back: four copies of
// pieces each time. What a gather picks are rows behind the axes, which must be long enough to be
// moved as runs.
//
// Holds: shapes are static; nobody else reads what lies between. Cost: O(places) for a roll.
#include "base/size.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { MOST_PLACES = 1 << 20, RUN_BYTES = 64 };

struct roll {
    struct mgx_ins *x;
    int axis;
    int64_t by;
};

// x[from .. to] along one axis alone, used once.
static bool is_piece(const struct mgx_ins *ins, int axis, int64_t from, int64_t to)
{
    if (ins->op != &mgx_op_slice || ins->in_count != 1 || !mgx_used_once(ins))
        return false;
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    const int rank = ins->shape.rank;
    return axes.count == 1 && mgx_wrap_axis(axes.v[0], rank) == axis &&
           mgx_ins_ints(ins, "starts").v[0] == from && ins->shape.lens[axis] == to - from;
}

static bool read_roll(const struct mgx_ins *ins, struct roll *r)
{
    if (ins->op != &mgx_op_concat || ins->in_count != 2 || !mgx_shape_is_static(&ins->shape) ||
        ins->in[0]->in_count != 1 || ins->in[1]->in_count != 1 ||
        ins->in[0]->in[0] != ins->in[1]->in[0])
        return false;
    r->x = ins->in[0]->in[0];
    r->axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), ins->shape.rank);
    const int64_t length = ins->shape.lens[r->axis];
    if (!mgx_shape_is_static(&r->x->shape) || !mgx_shape_same_lens(&r->x->shape, &ins->shape))
        return false;
    r->by = length - ins->in[0]->shape.lens[r->axis];
    return is_piece(ins->in[0], r->axis, r->by, length) && is_piece(ins->in[1], r->axis, 0, r->by);
}

// Do two pieces of it, and nobody else, make the next roll, by an axis beside its own?
static bool is_rolled_on(const struct mgx_ins *ins, int axis)
{
    struct roll next;
    if (mgx_use_count(ins) != 2 || ins->uses->user->op != &mgx_op_slice || !ins->uses->user->uses)
        return false;
    return read_roll(ins->uses->user->uses->user, &next) && next.x == ins &&
           (next.axis == axis - 1 || next.axis == axis + 1);
}

static struct mgx_ins *add_places(struct mgx_ins *at, const struct roll *outer,
                                  const struct roll *inner, int64_t outer_length,
                                  int64_t inner_length)
{
    struct mgx_tensor places;
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT32, outer_length * inner_length);
    if (mgx_tensor_create(&places, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    int32_t *to = places.data;
    for (int64_t i = 0; i < outer_length; i++)
        for (int64_t k = 0; k < inner_length; k++)
            *to++ = (int32_t)((i + outer->by) % outer_length * inner_length +
                              (k + inner->by) % inner_length);
    struct mgx_ins *literal = mgx_add_literal(at->owner, &places);
    mgx_tensor_release(&places);
    return literal;
}

// Of two neighbouring axes, which become one.
static struct mgx_ins *gather(struct mgx_ins *at, struct mgx_ins *x, const struct roll *outer,
                              const struct roll *inner)
{
    const struct mgx_shape *s = &at->shape;
    int64_t lens[MGX_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (i == inner->axis && i != outer->axis)
            lens[rank - 1] *= s->lens[i];
        else
            lens[rank++] = s->lens[i];
    const bool both = outer->axis != inner->axis;
    struct mgx_ins *places =
        add_places(at, outer, inner, both ? s->lens[outer->axis] : 1, s->lens[inner->axis]);
    x = mgx_emit_reshape(at, x, lens, rank);
    if (!x || !places)
        return NULL;
    x = mgx_emit_before(at, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", outer->axis)),
                        MGX_IN(x, places));
    return mgx_emit_reshape(at, x, s->lens, s->rank);
}

static bool has_runs(const struct mgx_shape *s, int axis)
{
    const int64_t behind = mgx_product(s->lens + axis + 1, s->rank - axis - 1);
    return axis + 1 < s->rank && mgx_shape_elements(s) > 0 &&
           behind * (int64_t)mgx_type_size(s->type) >= RUN_BYTES;
}

static struct mgx_ins *rewrite(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    struct roll last, first;
    const struct mgx_shape *s = &ins->shape;
    (void)r, (void)m;
    if (!read_roll(ins, &last) || is_rolled_on(ins, last.axis))
        return NULL;
    const bool two = read_roll(last.x, &first) && is_rolled_on(last.x, first.axis);
    const struct roll *outer = two && first.axis < last.axis ? &first : &last;
    const struct roll *inner = two && first.axis > last.axis ? &first : &last;
    const int64_t places = s->lens[inner->axis] * (two ? s->lens[outer->axis] : 1);
    if (!has_runs(s, inner->axis) || places > MOST_PLACES)
        return NULL;
    return gather(ins, two ? first.x : last.x, outer, inner);
}

static const struct mgx_rule rules[] = {
    {"concat(x, y) ~> gather", MGX_IF_STATIC, .rewrite = rewrite},
};

const struct mgx_pass mgx_pass_gather_rolls = {
    .name = "gather_rolls",
    .meaning = "images that are pushed around their edges are one gather of rows",
    .rules = {rules, MGX_COUNT(rules)},
};
