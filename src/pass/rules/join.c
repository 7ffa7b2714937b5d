// SPDX-License-Identifier: MIT
// slice and concat cancel.
//
//     slice[all](x)                     =>  x
//     slice(slice(x))                   =>  slice(x)
//     slice(broadcast(x))               =>  broadcast(x)           along repeated axes
//     reshape(slice(x))                 =>  slice(reshape(x))      where the slice is no piece
//     slice(concat(x, y))               =>  slice(x)               where it lies within x
//     concat(x)                         =>  x
//     concat(concat(x, y), z)           =>  concat(x, y, z)
//     concat(slice[a:b](x), slice[b:c]) =>  slice[a:c](x)
//     concat(x, x, x)                   =>  multibroadcast(x)      where x has length 1
//     op(concat(a, x), c)               =>  concat(op(a, c), op(x, c))   element-wise, a and c known
//     inputs of concat without elements are left out
//
// slice(concat) is no row of the table: a concat's slices are looked at together and find their
// input by bisection, so that n slices of n inputs cost n log n.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/engine/walk.h"
#include "pass/rules/rules.h"

enum {
    MAX_FLAT = 256, // inputs: nested concats must not become quadratic
    MAX_OPERANDS = 8,
};

static bool same_lens(const struct mgx_shape *a, const struct mgx_shape *b)
{
    assert(a->rank <= MGX_MAX_RANK && b->rank <= MGX_MAX_RANK);
    return a->rank == b->rank && mgx_shape_same_lens(a, b);
}

// --- slice ---

// Start and length of every axis; false where they are not known.
struct region {
    int64_t start[MGX_MAX_RANK], end[MGX_MAX_RANK];
};

static int64_t clip(int64_t at, int64_t length)
{
    assert(length >= 0);
    if (at < 0)
        at = mgx_max_i64(at + length, 0);
    return mgx_min_i64(at, length);
}

static bool read_region(const struct mgx_ins *slice, struct region *out)
{
    const struct mgx_shape *x = &slice->in[0]->shape;
    const struct mgx_ints axes = mgx_ins_ints(slice, "axes"),
                          starts = mgx_ins_ints(slice, "starts"),
                          ends = mgx_ins_ints(slice, "ends");
    if (slice->in_count != 1 || !mgx_shape_is_static(x) || axes.count != starts.count ||
        axes.count != ends.count)
        return false;
    for (int d = 0; d < x->rank; d++) {
        out->start[d] = 0;
        out->end[d] = x->lens[d];
    }
    for (int i = 0; i < axes.count; i++) {
        const int d = mgx_wrap_axis(axes.v[i], x->rank);
        if (d < 0 || d >= x->rank)
            return false;
        out->start[d] = clip(starts.v[i], x->lens[d]);
        out->end[d] = mgx_max_i64(clip(ends.v[i], x->lens[d]), out->start[d]);
    }
    return true;
}

static struct mgx_ins *emit_region(struct mgx_ins *at, struct mgx_ins *x, const struct region *g)
{
    int64_t axes[MGX_MAX_RANK], starts[MGX_MAX_RANK], ends[MGX_MAX_RANK];
    int count = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        if (g->start[d] == 0 && g->end[d] == x->shape.lens[d])
            continue;
        axes[count] = d;
        starts[count] = g->start[d];
        ends[count++] = g->end[d];
    }
    if (!count)
        return x;
    return mgx_emit_before(at, &mgx_op_slice,
                           MGX_ATTRS(mgx_ints("axes", axes, count),
                                     mgx_ints("starts", starts, count),
                                     mgx_ints("ends", ends, count)),
                           MGX_IN(x));
}

static bool is_whole(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    return mgx_shape_is_static(&mgx_var(m, 'x')->shape) &&
           same_lens(&ins->shape, &mgx_var(m, 'x')->shape);
}

static struct mgx_ins *slice_slice(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *inner = mgx_var(m, 's');
    struct region a, b;
    if (!read_region(ins, &a) || !read_region(inner, &b))
        return NULL;
    for (int d = 0; d < ins->shape.rank; d++) {
        a.start[d] += b.start[d];
        a.end[d] += b.start[d];
    }
    return emit_region(ins, inner->in[0], &a);
}

static struct mgx_ins *slice_spread(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *spread = mgx_var(m, 's');
    struct mgx_spread s;
    if (!mgx_spread_of(spread, &s))
        return NULL;
    for (int d = 0; d < ins->shape.rank; d++)
        if (s.axis[d] >= 0 && ins->shape.lens[d] != spread->shape.lens[d])
            return NULL;
    if (mgx_is(spread, &mgx_op_multibroadcast))
        return mgx_emit_multibroadcast(ins, s.core, ins->shape.lens, ins->shape.rank);
    return mgx_emit_before(ins, &mgx_op_broadcast,
                           MGX_ATTRS(mgx_int("axis", mgx_ins_int(spread, "axis")),
                                     mgx_ints("out_lens", ins->shape.lens, ins->shape.rank)),
                           MGX_IN(s.core));
}

// The one axis that is cut; -1 if there are none or several.
static int cut_axis(const struct mgx_ins *slice, const struct region *g)
{
    assert(g);
    int axis = -1;
    for (int d = 0; d < slice->shape.rank; d++) {
        if (g->start[d] == 0 && g->end[d] == slice->in[0]->shape.lens[d])
            continue;
        if (axis >= 0)
            return -1;
        axis = d;
    }
    return axis;
}

// The axis of `s` that starts where axis `cut` of `from` does and is not 1 long; -1 if none does.
static int axis_at(const struct mgx_shape *s, const struct mgx_shape *from, int cut)
{
    const int64_t outer = mgx_product(from->lens, cut);
    int64_t product = 1;
    for (int d = 0; d < s->rank; d++) {
        if (product == outer && s->lens[d] != 1)
            return d;
        product *= s->lens[d];
    }
    return -1;
}

static bool same_but_ones(const struct mgx_shape *a, const struct mgx_shape *b)
{
    int i, k;
    mgx_shapes_agree(a, b, &i, &k);
    return i == a->rank && k == b->rank;
}

// A slice that is not outermost is no contiguous piece, so reshaping it copies; cutting after the
// reshape does not. This is how joined queries, keys and values come apart into heads. An outermost
// slice along an axis that the reshape leaves whole stays in front: sink.c puts it there.
//     x {.., n, ..}, slice [a:b], reshape {.., (b-a)/q, q, ..}  =>  reshape {.., n/q, q, ..},
//                                                                  slice [a/q:b/q]
static struct mgx_ins *cut_later(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *slice = mgx_var(m, 's'), *x = slice->in[0];
    struct region g;
    if (ins->in_count != 1 || !read_region(slice, &g) || !mgx_shape_is_standard(&x->shape))
        return NULL;
    const int cut = cut_axis(slice, &g);
    const int axis = cut > 0 ? axis_at(&ins->shape, &slice->shape, cut) : -1;
    // Taking out or putting in lengths of 1 copies nothing.
    if (axis < 1 || same_but_ones(&ins->shape, &slice->shape))
        return NULL;
    // elements per position of the cut axis, and per position of the new one
    const int64_t inner = mgx_product(slice->shape.lens + cut + 1, slice->shape.rank - cut - 1);
    const int64_t piece = slice->shape.lens[cut] * inner, step = piece / ins->shape.lens[axis];
    if (step == inner && mgx_product(x->shape.lens, cut) == 1)
        return NULL;
    if (piece % ins->shape.lens[axis] != 0 || g.start[cut] * inner % step != 0 ||
        x->shape.lens[cut] * inner % step != 0)
        return NULL;
    struct mgx_shape whole = mgx_shape_retype(&ins->shape, ins->shape.type);
    whole.lens[axis] = x->shape.lens[cut] * inner / step;
    const int64_t start = g.start[cut] * inner / step;
    x = mgx_emit_reshape(ins, x, whole.lens, whole.rank);
    return mgx_emit_slice(ins, x, axis, start, start + ins->shape.lens[axis]);
}

// --- concat ---

static int concat_axis(const struct mgx_ins *ins)
{
    const int64_t axis = mgx_ins_int(ins, "axis");
    return mgx_wrap_axis(axis, ins->shape.rank);
}

static bool is_single(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return ins->in_count == 1;
}

static bool is_empty(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) == 0;
}

static bool is_inner(const struct mgx_ins *in, const struct mgx_ins *outer)
{
    return mgx_is(in, &mgx_op_concat) && in->owner == outer->owner && mgx_used_once(in) &&
           in->in_count + outer->in_count <= MAX_FLAT && concat_axis(in) == concat_axis(outer);
}

// The inputs of nested concats in one list, without empty ones.
static struct mgx_ins *flatten(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)m;
    int total = 0, dropped = 0;
    for (int i = 0; i < ins->in_count; i++) {
        total += is_inner(ins->in[i], ins) ? ins->in[i]->in_count : 1;
        dropped += is_empty(ins->in[i]);
    }
    if (is_empty(ins) || (total == ins->in_count && !dropped))
        return NULL;
    struct mgx_ins **in = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, total);
    int count = 0;
    for (int i = 0; in && i < ins->in_count; i++) {
        struct mgx_ins *x = ins->in[i];
        if (is_inner(x, ins))
            for (int j = 0; j < x->in_count; j++)
                in[count++] = x->in[j];
        else if (!is_empty(x))
            in[count++] = x;
    }
    return in ? mgx_emit_concat(ins, in, count, concat_axis(ins)) : NULL;
}

static struct mgx_ins *repeat(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)r, (void)m;
    struct mgx_ins *x = ins->in[0];
    if (x->shape.lens[concat_axis(ins)] != 1 || !mgx_shape_is_static(&x->shape))
        return NULL;
    for (int i = 1; i < ins->in_count; i++)
        if (ins->in[i] != x)
            return NULL;
    return mgx_emit_multibroadcast(ins, x, ins->shape.lens, ins->shape.rank);
}

// Does slice b continue slice a along the axis? Then a grows by it.
static bool continues(const struct mgx_ins *a, struct region *a_region, const struct mgx_ins *b,
                      int axis)
{
    struct region g;
    if (!mgx_is(b, &mgx_op_slice) || b->in[0] != a->in[0] || !read_region(b, &g))
        return false;
    for (int d = 0; d < b->shape.rank; d++)
        if (d != axis && (g.start[d] != a_region->start[d] || g.end[d] != a_region->end[d]))
            return false;
    if (g.start[axis] != a_region->end[axis])
        return false;
    a_region->end[axis] = g.end[axis];
    return true;
}

static bool has_neighbours(const struct mgx_ins *ins, int axis)
{
    struct region g;
    for (int i = 0; i + 1 < ins->in_count; i++)
        if (mgx_is(ins->in[i], &mgx_op_slice) && mgx_is(ins->in[i + 1], &mgx_op_slice) &&
            read_region(ins->in[i], &g) && continues(ins->in[i], &g, ins->in[i + 1], axis))
            return true;
    return false;
}

static struct mgx_ins *rejoin(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)m;
    const int axis = concat_axis(ins);
    if (!has_neighbours(ins, axis))
        return NULL;
    struct mgx_ins **in = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, ins->in_count);
    int count = 0;
    for (int i = 0; in && i < ins->in_count;) {
        struct mgx_ins *x = ins->in[i++];
        struct region g;
        if (mgx_is(x, &mgx_op_slice) && read_region(x, &g)) {
            const struct mgx_ins *first = x;
            while (i < ins->in_count && continues(first, &g, ins->in[i], axis))
                i++;
            if (first != ins->in[i - 1])
                x = emit_region(ins, x->in[0], &g);
        }
        in[count++] = x;
    }
    return in ? mgx_emit_concat(ins, in, count, axis) : NULL;
}

// The concat that an element-wise operator reads beside constants, when all of it but one input is
// constant too: a class token before the patches of an image, and their positions added to both.
static int find_partly_known(struct mgx_rewriter *r, const struct mgx_ins *ins)
{
    int at = -1, unknown = 0;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_is_constant(r->module, ins->in[i]))
            at = at < 0 ? i : MAX_OPERANDS;
    const struct mgx_ins *concat = at >= 0 && at < MAX_OPERANDS ? ins->in[at] : NULL;
    if (!concat || !mgx_is(concat, &mgx_op_concat) || concat->owner != ins->owner ||
        !mgx_used_once(concat) || !same_lens(&concat->shape, &ins->shape))
        return -1;
    for (int i = 0; i < concat->in_count; i++)
        unknown += !mgx_is_constant(r->module, concat->in[i]);
    return unknown == 1 && concat->in_count > 1 ? at : -1;
}

static struct mgx_ins *work_apart(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *in[MAX_OPERANDS];
    const bool plain = ins->in_count <= MAX_OPERANDS && !ins->mod_count && mgx_is_pure(ins) &&
                       !mgx_field_find(ins->op, "axis");
    const int at = plain ? find_partly_known(r, ins) : -1;
    if (at < 0)
        return NULL;
    const struct mgx_ins *concat = ins->in[at];
    const int axis = concat_axis(concat);
    struct mgx_ins **piece = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, concat->in_count);
    int64_t begin = 0;
    for (int i = 0; piece && i < concat->in_count; i++) {
        const int64_t end = begin + concat->in[i]->shape.lens[axis];
        for (int k = 0; k < ins->in_count; k++)
            in[k] = k == at ? concat->in[i] : mgx_emit_slice(ins, ins->in[k], axis, begin, end);
        piece[i] = mgx_emit_again(ins, ins, in, ins->in_count);
        begin = end;
    }
    return piece ? mgx_emit_concat(ins, piece, concat->in_count, axis) : NULL;
}

static const struct mgx_rule rules[] = {
    {"slice(x) => x", MGX_IF_STATIC, .guard = is_whole},
    {"slice(s:slice) ~> slice(x)", MGX_IF_STATIC, .rewrite = slice_slice},
    {"slice(s:multibroadcast|broadcast) ~> broadcast(x)", MGX_IF_STATIC, .rewrite = slice_spread},
    {"reshape|unsqueeze|squeeze|flatten(s:slice) ~> slice(reshape(x))", MGX_IF_STATIC,
     .rewrite = cut_later},
    {"concat(x) => x", .guard = is_single},
    {"%pointwise ~> concat(op(a, c), op(x, c)) for op(concat(a, x), c)", MGX_IF_STATIC,
     .rewrite = work_apart},
    {"concat ~> concat(x, y, z) for concat(concat(x, y), z)", .rewrite = flatten},
    {"concat ~> multibroadcast(x) for concat(x, x)", MGX_IF_STATIC, .rewrite = repeat},
    {"concat ~> slice[a:c](x) for concat(slice[a:b](x), slice[b:c](x))", .rewrite = rejoin},
};

const struct mgx_rules mgx_rules_join = {rules, MGX_COUNT(rules)};

// --- slices of one concat ---

// ends[i] is where input i ends along the axis.
static int find_input(const int64_t *ends, int count, int64_t at)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (ends[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool cut(struct mgx_ins *concat, struct mgx_ins *slice, const int64_t *ends, int axis)
{
    struct region g;
    if (!read_region(slice, &g) || g.end[axis] <= g.start[axis])
        return false;
    const int i = find_input(ends, concat->in_count, g.start[axis]);
    const int64_t begin = i ? ends[i - 1] : 0;
    if (i == concat->in_count || g.end[axis] > ends[i])
        return false;
    g.start[axis] -= begin;
    g.end[axis] -= begin;
    struct mgx_ins *by = emit_region(slice, concat->in[i], &g);
    if (!by)
        return false;
    mgx_replace(slice, by);
    return true;
}

static enum mgx_status cut_concat(struct mgx_pass_call *c, struct mgx_ins *concat)
{
    const int axis = concat_axis(concat);
    int64_t *ends = MGX_NEW_ARRAY(c->scratch, int64_t, concat->in_count), at = 0;
    if (!ends)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < concat->in_count; i++)
        ends[i] = at += concat->in[i]->shape.lens[axis];
    for (struct mgx_use *use = concat->uses, *next; use; use = next) {
        next = use->next;
        struct mgx_ins *user = use->user;
        // A user that reads the concat twice would leave `next` dangling; slices never do.
        if (mgx_is(user, &mgx_op_slice) && user->owner == concat->owner && user->in_count == 1)
            c->changed |= cut(concat, user, ends, axis);
        if (concat->index == MGX_REMOVED)
            break;
    }
    return MGX_OK;
}

enum mgx_status mgx_cut_concats(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_ins **concats = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, m->count);
    int count = 0;
    if (!concats)
        return mgx_fail_memory(c->diag);
    MGX_EACH (ins, m) {
        ins->index = 0;
        if (mgx_is(ins, &mgx_op_concat) && mgx_shape_is_static(&ins->shape))
            concats[count++] = ins;
    }
    for (int i = 0; i < count; i++)
        if (concats[i]->index != MGX_REMOVED)
            TRY(cut_concat(c, concats[i]));
    return mgx_program_status(c->program, c->diag);
}
