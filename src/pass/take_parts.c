// SPDX-License-Identifier: MIT
// Work of which only some rows are read is done for those rows alone.
//
//     slice(f(x, y))                =>  f(slice(x), slice(y))     element-wise
//     slice(dot(a, b))              =>  dot(slice(a), b)
//     slice(reduce(x))              =>  reduce(slice(x))          along the last axis; softmax too
//     slice(reshape(f(x, y)))       =>  f(slice(reshape(x)), slice(reshape(y)))
//
// A classifier that reads the first token of a transformer needs that token's row of the last
// layer's sums, normalisations and products, and of the attention one query; all rows are computed
// otherwise, and as many are thrown away.
//
// The slice keeps the last axis whole; the reshape, if there is one, regroups the axes before it.
// From the slice backwards a region grows: an instruction joins when all its readers are in the
// region, or take the same part of it, and it works row by row. Nothing is done twice, therefore.
// What feeds the region is cut where it enters.
//
// Holds: a region changes only if a product in it gets narrower, and the part is at most half of
// the rows; element-wise work alone is better left where it is, fused with what makes its input.
// Cost: O(REGION^2) for a slice whose reader is alone; O(1) for others.
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

#include <string.h>

enum { REGION = 96, MAX_INPUTS = 16, BEHIND = 6 };

struct part {
    struct mgx_ins *slice, *whole; // whole is what the slice, or the reshape before it, reads
    bool regroup;                  // there is a reshape: rows have other axes behind it
    struct mgx_ins *ins[REGION];   // the region: all readers of an instruction come before it
    struct mgx_ins *by[REGION];    // ... and what takes its place, once emitted
    int count, products;
};

static bool same_lens(const struct mgx_shape *a, const struct mgx_shape *b, int rank)
{
    return a->rank == b->rank && mgx_shape_is_static(a) && mgx_shape_is_static(b) &&
           memcmp(a->lens, b->lens, (size_t)rank * sizeof a->lens[0]) == 0;
}

// --- the part ---

static bool is_regrouping(const struct mgx_ins *ins)
{
    return (mgx_is(ins, &mgx_op_reshape) || mgx_is(ins, &mgx_op_unsqueeze) ||
            mgx_is(ins, &mgx_op_squeeze) || mgx_is(ins, &mgx_op_flatten)) &&
           ins->in_count == 1;
}

// At most half of the rows, and whole ones whatever their length.
static bool takes_few_rows(const struct mgx_ins *slice)
{
    const struct mgx_shape *x = &slice->in[0]->shape, *y = &slice->shape;
    const struct mgx_ints axes = mgx_ins_ints(slice, "axes");
    for (int i = 0; i < axes.count; i++)
        if (mgx_wrap_axis(axes.v[i], x->rank) >= x->rank - 1)
            return false;
    return slice->in_count == 1 && x->rank > 1 && mgx_shape_is_static(x) &&
           mgx_shape_is_static(y) && mgx_shape_elements(y) > 0 &&
           mgx_shape_elements(y) <= mgx_shape_elements(x) / 2;
}

static bool is_like(const struct mgx_ins *ins, const struct mgx_ins *slice)
{
    return mgx_is(ins, &mgx_op_slice) && ins->owner == slice->owner &&
           mgx_attr_equal(ins->op, ins->attr, slice->attr);
}

static bool all_are_like(const struct mgx_ins *x, const struct mgx_ins *slice)
{
    for (const struct mgx_use *use = x->uses; use; use = use->next)
        if (!is_like(use->user, slice))
            return false;
    return true;
}

// Does this reader of an instruction with the whole's rows take the same rows of it?
static bool takes_part(const struct part *p, const struct mgx_ins *reader)
{
    const struct mgx_shape *rows = &p->slice->in[0]->shape;
    if (!p->regroup)
        return is_like(reader, p->slice);
    return is_regrouping(reader) && reader->owner == p->slice->owner &&
           same_lens(&reader->shape, rows, rows->rank - 1) && all_are_like(reader, p->slice);
}

static bool begin(struct part *p, struct mgx_ins *slice)
{
    struct mgx_ins *x = slice->in[0];
    p->count = p->products = 0;
    p->slice = slice;
    p->regroup = is_regrouping(x);
    p->whole = p->regroup ? x->in[0] : x;
    const struct mgx_shape *w = &p->whole->shape;
    return p->whole->owner == slice->owner && w->rank > 1 && mgx_shape_is_static(w) &&
           w->lens[w->rank - 1] == x->shape.lens[x->shape.rank - 1];
}

// --- the region ---

static int find_in_part(const struct part *p, const struct mgx_ins *ins)
{
    for (int i = 0; i < p->count; i++)
        if (p->ins[i] == ins)
            return i;
    return -1;
}

static bool is_read_inside(const struct part *p, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (find_in_part(p, use->user) < 0 && !takes_part(p, use->user))
            return false;
    return true;
}

static bool is_along_rows(const struct mgx_ins *ins, int rank)
{
    if (mgx_is(ins, &mgx_op_softmax) || mgx_is(ins, &mgx_op_logsoftmax))
        return mgx_wrap_axis(mgx_ins_int(ins, "axis"), rank) == rank - 1;
    return (ins->op->flags & MGX_OP_REDUCE) && ins->in_count == 1 &&
           mgx_first_reduced(ins) == rank - 1;
}

static bool is_element_wise(const struct mgx_ins *ins)
{
    if (!(ins->op->flags & MGX_OP_POINTWISE) || ins->in_count > MAX_INPUTS)
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!same_lens(&ins->in[i]->shape, &ins->shape, ins->shape.rank))
            return false;
    return ins->in_count > 0 && !mgx_field_find(ins->op, "axis");
}

static bool works_by_rows(const struct part *p, const struct mgx_ins *ins)
{
    const int rank = p->whole->shape.rank;
    if (ins->owner != p->slice->owner || ins->mod_count || !mgx_is_pure(ins) ||
        !same_lens(&ins->shape, &p->whole->shape, rank - 1))
        return false;
    if (mgx_is_of_matrices(ins))
        return ins->in_count == 2 && (rank == 2 || !p->regroup);
    const bool spreads = mgx_is(ins, &mgx_op_multibroadcast) && ins->in_count == 1 &&
                         same_lens(&ins->in[0]->shape, &ins->shape, rank - 1);
    return spreads || is_along_rows(ins, rank) || is_element_wise(ins);
}

static bool add(struct part *p, struct mgx_ins *ins)
{
    if (p->count == REGION || !works_by_rows(p, ins))
        return false;
    p->products += mgx_is_of_matrices(ins);
    p->ins[p->count] = ins;
    p->by[p->count++] = NULL;
    return true;
}

// Is there a product behind views and element-wise work that nobody else reads? The slice gets
// there by other rules.
static bool hides_product(const struct mgx_ins *x, int depth)
{
    if (mgx_is_of_matrices(x) || !depth || !mgx_used_once(x))
        return mgx_is_of_matrices(x);
    if (!(x->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_POINTWISE)))
        return false;
    for (int i = 0; i < x->in_count; i++)
        if (hides_product(x->in[i], depth - 1))
            return true;
    return false;
}

// An input that several read is tried again after each of them.
static void reach(struct part *p, struct mgx_ins *x)
{
    if (find_in_part(p, x) < 0 && is_read_inside(p, x) && !add(p, x))
        p->products += hides_product(x, BEHIND);
}

static bool grow(struct part *p)
{
    if (!is_read_inside(p, p->whole) || !add(p, p->whole))
        return false;
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < (mgx_is_of_matrices(p->ins[i]) ? 1 : p->ins[i]->in_count); k++)
            reach(p, p->ins[i]->in[k]);
    return p->products > 0;
}

// --- what takes its place ---

// What the slice takes of a right operand: its cuts of batch axes, not those of rows.
static struct mgx_ins *cut_batches(struct mgx_ins *at, struct mgx_ins *x,
                                   const struct mgx_ins *slice)
{
    const struct mgx_ints axes = mgx_ins_ints(slice, "axes"),
                          starts = mgx_ins_ints(slice, "starts");
    const int batches = x->shape.rank - 2;
    for (int i = 0; i < axes.count && x; i++) {
        const int d = mgx_wrap_axis(axes.v[i], x->shape.rank);
        const int64_t length = x->shape.lens[d];
        const int64_t start = starts.v[i] < 0 ? mgx_max_i64(starts.v[i] + length, 0) : starts.v[i];
        if (d < batches)
            x = mgx_emit_slice(at, x, d, start, start + slice->shape.lens[d]);
    }
    return x;
}

// What the region reads: regrouped and cut as the whole is.
static struct mgx_ins *take_part(const struct part *p, struct mgx_ins *at, struct mgx_ins *x)
{
    if (p->regroup) {
        struct mgx_shape rows = p->slice->in[0]->shape;
        rows.lens[rows.rank - 1] = x->shape.lens[x->shape.rank - 1];
        x = mgx_emit_reshape(at, x, rows.lens, rows.rank);
    }
    return mgx_emit_again(at, p->slice, &x, 1);
}

static struct mgx_ins *part_of(const struct part *p, struct mgx_ins *at, struct mgx_ins *x)
{
    const int i = find_in_part(p, x);
    return i >= 0 ? p->by[i] : take_part(p, at, x);
}

static struct mgx_ins *emit_product(const struct part *p, struct mgx_ins *at,
                                    const struct mgx_ins *ins)
{
    struct mgx_ins *in[] = {part_of(p, at, ins->in[0]), ins->in[1]};
    struct mgx_shape rows = p->slice->shape;
    rows.lens[rows.rank - 1] = ins->shape.lens[ins->shape.rank - 1];
    if (!p->regroup) {
        in[1] = cut_batches(at, in[1], p->slice);
        return mgx_emit_again(at, ins, in, 2);
    }
    const int64_t flat[] = {mgx_product(rows.lens, rows.rank - 1), ins->in[0]->shape.lens[1]};
    in[0] = mgx_emit_reshape(at, in[0], flat, 2);
    return mgx_emit_reshape(at, mgx_emit_again(at, ins, in, 2), rows.lens, rows.rank);
}

static struct mgx_ins *emit_along(const struct part *p, struct mgx_ins *at,
                                  const struct mgx_ins *ins, struct mgx_ins *x)
{
    void *attr = mgx_edit_attr(at->owner->program, ins);
    const int64_t axis = p->slice->shape.rank - 1;
    if (!attr)
        return NULL;
    if (!(ins->op->flags & MGX_OP_REDUCE))
        mgx_edit_int(ins->op, attr, "axis", axis);
    else if (!mgx_edit_ints(at->owner->program, ins->op, attr, "axes", &axis, 1))
        return NULL;
    return mgx_emit_edited(at, ins->op, attr, &x, 1);
}

static struct mgx_ins *emit(const struct part *p, struct mgx_ins *at, const struct mgx_ins *ins)
{
    struct mgx_ins *in[MAX_INPUTS];
    if (mgx_is_of_matrices(ins))
        return emit_product(p, at, ins);
    for (int i = 0; i < ins->in_count; i++)
        in[i] = part_of(p, at, ins->in[i]);
    if (mgx_is(ins, &mgx_op_multibroadcast)) {
        struct mgx_shape wide = p->slice->shape;
        wide.lens[wide.rank - 1] = ins->shape.lens[ins->shape.rank - 1];
        return mgx_emit_multibroadcast(at, in[0], wide.lens, wide.rank);
    }
    if (is_along_rows(ins, p->whole->shape.rank))
        return emit_along(p, at, ins, in[0]);
    return mgx_emit_again(at, ins, in, ins->in_count);
}

static void replace_readers(const struct part *p, struct mgx_ins *x, struct mgx_ins *by)
{
    for (const struct mgx_use *use = x->uses; use; use = use->next) {
        if (!takes_part(p, use->user))
            continue;
        if (!p->regroup)
            mgx_replace_uses(use->user, by);
        for (const struct mgx_use *cut = p->regroup ? use->user->uses : NULL; cut; cut = cut->next)
            mgx_replace_uses(cut->user, by);
    }
}

// What reads comes before what it reads in the region: emitted from its end, every input is there.
// Each stands where the instruction stood that it replaces, before all that may read it.
static enum mgx_status narrow(struct mgx_pass_call *c, struct part *p)
{
    for (int i = p->count - 1; i >= 0; i--) {
        p->by[i] = emit(p, p->ins[i], p->ins[i]);
        if (!p->by[i])
            return mgx_program_status(c->program, c->diag);
        mgx_copy_origin(p->by[i], p->ins[i]);
    }
    for (int i = 0; i < p->count; i++)
        replace_readers(p, p->ins[i], p->by[i]);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct part *p = MGX_NEW(c->scratch, struct part);
    if (!p)
        return mgx_fail_memory(c->diag);
    MGX_EACH (ins, m)
        if (mgx_is(ins, &mgx_op_slice) && ins->uses && takes_few_rows(ins) && begin(p, ins) &&
            grow(p))
            TRY(narrow(c, p));
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_take_parts = {
    .name = "take_parts",
    .meaning = "computes the rows alone that are read, where those are few",
    .module = run,
};
