// SPDX-License-Identifier: MIT
// Several products of one input become one product and slices of it: Q, K and V of attention, the
// branches of an inception block.
//
//     dot(x, u), dot(x, v)                =>  slices of dot(x, concat(u, v))          along columns
//     conv(x, u), conv(x, v)              =>  slices of conv(x, concat(u, v))         along outputs
//     op(slice1(y), a), op(slice2(y), b)  =>  slices of op(y, concat(a, b))           pointwise op
//
// Convolutions are joined only if what follows them can be, too: an activation of some of the
// slices would be a pass over memory of its own, and is free in a convolution.
//
// Holds: u, v, a, b are constants that stand before the first product; slices of y cover an axis
// without gap, each read by one such op only. The joined constants must be small enough for folding
// to take them. Instructions are numbered once, and groups are bounded, so the cost is linear.
#include "pass/engine/emit.h"

#include <assert.h>

#include "pass/engine/walk.h"
#include "pass/rules/rules.h"

enum { MAX_GROUP = 64 };

struct group {
    struct mgx_ins *member[MAX_GROUP];
    int count;
};

// --- products ---

static bool is_product(const struct mgx_ins *ins)
{
    if (ins->in_count != 2 || !mgx_shape_is_static(&ins->shape) || !ins->uses)
        return false;
    return mgx_is(ins, &mgx_op_dot) ||
           (mgx_is(ins, &mgx_op_convolution) && mgx_ins_int(ins, "group") == 1);
}

// Along which axis of the weights and of the result products of this kind are joined.
static int weights_axis(const struct mgx_ins *p)
{
    return mgx_is(p, &mgx_op_dot) ? p->shape.rank - 1 : 0;
}

static int result_axis(const struct mgx_ins *p)
{
    return mgx_is(p, &mgx_op_dot) ? p->shape.rank - 1 : 1;
}

// The weights before they were repeated for each batch of a dot.
static struct mgx_ins *core_of(const struct mgx_ins *p)
{
    struct mgx_ins *w = p->in[1];
    const bool repeated = mgx_is(w, &mgx_op_multibroadcast) && w->in_count == 1 &&
                          w->in[0]->shape.rank >= 2 && mgx_shape_is_static(&w->in[0]->shape);
    if (!repeated)
        return w;
    const struct mgx_shape *in = &w->in[0]->shape;
    const bool dot = mgx_is(p, &mgx_op_dot);
    const int axis = dot ? in->rank - 1 : weights_axis(p);
    const int whole = dot ? w->shape.rank - 1 : axis;
    return (dot || in->rank == w->shape.rank) && in->lens[axis] == w->shape.lens[whole] ? w->in[0]
                                                                                        : w;
}

// The axis of the core that is joined.
static int core_axis(const struct mgx_ins *p, const struct mgx_ins *core)
{
    assert(core);
    return mgx_is(p, &mgx_op_dot) ? core->shape.rank - 1 : weights_axis(p);
}

static bool same_but(const struct mgx_shape *a, const struct mgx_shape *b, int axis)
{
    assert(axis >= 0 && axis < a->rank);
    if (a->type != b->type || a->rank != b->rank || !mgx_shape_is_static(b))
        return false;
    for (int d = 0; d < a->rank; d++)
        if (d != axis && a->lens[d] != b->lens[d])
            return false;
    return true;
}

static bool have_equal_cores(const struct mgx_ins *a, const struct mgx_ins *b)
{
    const struct mgx_ins *u = core_of(a), *v = core_of(b);
    return same_but(&u->shape, &v->shape, core_axis(a, u));
}

static bool fits_first(const struct mgx_ins *first, struct mgx_ins *p)
{
    return is_product(p) && p->op == first->op && p->owner == first->owner &&
           p->in[0] == first->in[0] && p->in[1] != first->in[1] &&
           mgx_attr_equal(p->op, p->attr, first->attr) &&
           same_but(&first->in[1]->shape, &p->in[1]->shape, weights_axis(first)) &&
           have_equal_cores(first, p) && mgx_is_constant(first->owner, p->in[1]) &&
           core_of(p)->index < first->index && p->index > first->index;
}

static void find_products(struct mgx_ins *first, struct group *g)
{
    g->count = 0;
    g->member[g->count++] = first;
    int looked_at = 0;
    for (struct mgx_use *use = first->in[0]->uses; use && looked_at < MAX_GROUP; use = use->next) {
        looked_at++;
        if (use->slot == 0 && fits_first(first, use->user) && g->count < MAX_GROUP)
            g->member[g->count++] = use->user;
    }
    // Uses are listed newest first; results read better in the order of the program.
    for (int i = 1; i < g->count; i++)
        for (int j = i; j > 1 && g->member[j]->index < g->member[j - 1]->index; j--) {
            struct mgx_ins *later = g->member[j - 1];
            g->member[j - 1] = g->member[j];
            g->member[j] = later;
        }
}

// Folding takes the joined weights if they replace theirs, or are small.
static bool will_fold(const struct mgx_pass_call *c, const struct group *g)
{
    size_t shared = 0;
    for (int i = 0; i < g->count; i++)
        if (!mgx_used_once(core_of(g->member[i])))
            shared += mgx_shape_bytes(&core_of(g->member[i])->shape);
    return shared <= c->options->fold_limit_bytes / 4;
}

static bool is_plain_pointwise(const struct mgx_ins *op)
{
    return (op->op->flags & MGX_OP_POINTWISE) && !op->mod_count &&
           !mgx_is(op, &mgx_op_contiguous) && !mgx_is(op, &mgx_op_layout);
}

static bool has_pointwise_reader(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (is_plain_pointwise(use->user))
            return true;
    return false;
}

static bool is_alike(const struct mgx_ins *a, const struct mgx_ins *b)
{
    return a->op == b->op && a->in_count == b->in_count &&
           mgx_attr_equal(a->op, a->attr, b->attr) && a->shape.type == b->shape.type;
}

// What alone reads it, if that is a pointwise operation of at most two operands; else NULL.
static struct mgx_ins *only_reader(const struct mgx_ins *ins)
{
    struct mgx_ins *op = mgx_used_once(ins) ? ins->uses->user : NULL;
    return op && op->owner == ins->owner && is_plain_pointwise(op) && op->in_count <= 2 ? op : NULL;
}

// Moves the group on to the members' only readers, if those are alike and read nothing else that is
// computed.
static bool step_to_readers(struct group *g)
{
    for (int i = 0; i < g->count; i++) {
        const struct mgx_ins *was = g->member[i];
        struct mgx_ins *op = only_reader(was);
        if (!op || (op->in_count == 2 && !mgx_is_constant(op->owner, op->in[op->in[0] == was])))
            return false;
        g->member[i] = op;
        if (!is_alike(g->member[0], op))
            return false;
    }
    return true;
}

// Are the pointwise operations behind all of them the same?
static bool end_alike(struct group g)
{
    for (;;) {
        bool more = false;
        for (int i = 0; i < g.count; i++)
            more |= has_pointwise_reader(g.member[i]);
        if (!more)
            return true;
        if (!step_to_readers(&g))
            return false;
    }
}

// Slices of `whole` take the members' places; dead code elimination takes the members.
static void hand_out(struct mgx_ins *at, struct mgx_ins *whole, const struct group *g, int axis)
{
    int64_t start = 0;
    for (int i = 0; i < g->count; i++) {
        const int64_t length = g->member[i]->shape.lens[axis];
        struct mgx_ins *part = mgx_emit_slice(at, whole, axis, start, start + length);
        if (!part)
            return;
        part->index = at->index;
        start += length;
        mgx_copy_origin(whole, g->member[i]);
        mgx_replace_uses(g->member[i], part);
        if (g->member[i] == at->owner->last) // the result of a module without @return
            mgx_add_return(at->owner, &part, 1);
    }
}

// The joined product, NULL if there is nothing to join.
static struct mgx_ins *join_products(struct mgx_pass_call *c, struct mgx_ins *first)
{
    struct group g;
    struct mgx_ins *in[MAX_GROUP];
    if (!is_product(first) || !mgx_is_constant(first->owner, first->in[1]) ||
        mgx_strip_views(first->in[1])->op == &mgx_op_dequantize_blocks ||
        mgx_is_constant(first->owner, first->in[0]))
        return NULL;
    find_products(first, &g);
    if (g.count < 2 || !will_fold(c, &g) || (mgx_is(first, &mgx_op_convolution) && !end_alike(g)))
        return NULL;
    struct mgx_shape wide = mgx_shape_retype(&first->in[1]->shape, first->in[1]->shape.type);
    wide.lens[weights_axis(first)] = 0;
    for (int i = 0; i < g.count; i++) {
        in[i] = core_of(g.member[i]);
        wide.lens[weights_axis(first)] += g.member[i]->in[1]->shape.lens[weights_axis(first)];
    }
    struct mgx_ins *w = mgx_emit_concat(first, in, g.count, core_axis(first, in[0]));
    w = mgx_emit_multibroadcast(first, w, wide.lens, wide.rank);
    struct mgx_ins *y = mgx_emit_again(first, first, (struct mgx_ins *const[]){first->in[0], w}, 2);
    if (!y)
        return NULL;
    w->index = y->index = first->index;
    hand_out(first, y, &g, result_axis(first));
    return y;
}

// --- what is done to all slices alike ---

// The one axis a slice cuts, and where; -1 if it cuts several or none.
static int cut_axis(const struct mgx_ins *slice, int64_t *start)
{
    const struct mgx_ints axes = mgx_ins_ints(slice, "axes"),
                          starts = mgx_ins_ints(slice, "starts");
    if (slice->in_count != 1 || axes.count != 1 || starts.count != 1 || axes.v[0] < 0 ||
        starts.v[0] < 0 || !mgx_shape_is_static(&slice->shape))
        return -1;
    *start = starts.v[0];
    return (int)axes.v[0];
}

// Keeps the group in order of position.
static void insert_slice(struct group *g, int64_t *begins, struct mgx_ins *slice, int64_t start)
{
    int at = g->count++;
    for (; at > 0 && begins[at - 1] > start; at--) {
        begins[at] = begins[at - 1];
        g->member[at] = g->member[at - 1];
    }
    begins[at] = start;
    g->member[at] = slice;
}

static bool tile_axis(const struct group *g, const int64_t *begins, int axis, int64_t length)
{
    int64_t end = 0;
    for (int i = 0; i < g->count; i++) {
        if (begins[i] != end)
            return false;
        end += g->member[i]->shape.lens[axis];
    }
    return g->count > 1 && end == length;
}

// All readers of `y` are slices that tile one axis: fills the group in order of position.
static int find_slices(const struct mgx_ins *y, struct group *g)
{
    int64_t start, begins[MAX_GROUP];
    int axis = -1;
    g->count = 0;
    for (struct mgx_use *use = y->uses; use; use = use->next) {
        struct mgx_ins *s = use->user;
        if (!mgx_is(s, &mgx_op_slice) || s->owner != y->owner || g->count == MAX_GROUP)
            return -1;
        const int a = cut_axis(s, &start);
        if (a < 0 || (axis >= 0 && a != axis))
            return -1;
        axis = a;
        insert_slice(g, begins, s, start);
    }
    return axis >= 0 && tile_axis(g, begins, axis, y->shape.lens[axis]) ? axis : -1;
}

// The constant operand of a binary reader of a slice: the slot it is in, -1 if there is none.
static int constant_slot(const struct mgx_ins *op, const struct mgx_ins *slice, int axis,
                         int before)
{
    assert(axis >= 0);
    for (int i = 0; i < 2; i++) {
        struct mgx_ins *x = op->in[i];
        struct mgx_spread s;
        if (op->in[1 - i] != slice || x->owner != op->owner || !mgx_is_constant(op->owner, x))
            continue;
        double value;
        const bool ready = x->literal || mgx_splat_value(x, &value) ||
                           (mgx_spread_of(x, &s) && s.core->literal) || x->index < before;
        if (ready && mgx_is_along(x, axis))
            return i;
    }
    return -1;
}

// The readers of the slices, if they all do the same.
static bool find_readers(const struct group *slices, struct group *readers)
{
    readers->count = slices->count;
    for (int i = 0; i < slices->count; i++) {
        struct mgx_ins *op = only_reader(slices->member[i]);
        if (!op || op->op == &mgx_op_dequantizelinear) // whose reader wants one scale
            return false;
        readers->member[i] = op;
        if (i && !is_alike(readers->member[0], op))
            return false;
    }
    return true;
}

static struct mgx_ins *emit_joined(struct mgx_ins *at, struct mgx_ins *y, const struct group *g,
                                   int axis, int slot)
{
    struct mgx_ins *const first = g->member[0];
    if (first->in_count == 1)
        return mgx_emit_again(at, first, &y, 1);
    struct mgx_ins *in[MAX_GROUP];
    for (int i = 0; i < g->count; i++)
        in[i] = mgx_emit_along(at, g->member[i]->in[slot], axis);
    struct mgx_ins *vector = mgx_emit_concat(at, in, g->count, 0);
    vector = mgx_emit_spread(at, vector, axis, &y->shape);
    return mgx_emit_again(at, first,
                          (struct mgx_ins *const[]){slot ? y : vector, slot ? vector : y}, 2);
}

// What takes the place of the readers, of which slices remain; NULL if they differ.
static struct mgx_ins *join_readers(struct mgx_ins *y)
{
    struct group slices, readers;
    if (!y->uses || !y->uses->next || !mgx_is(y->uses->user, &mgx_op_slice) ||
        !mgx_shape_is_static(&y->shape))
        return NULL;
    const int axis = find_slices(y, &slices);
    if (axis < 0 || !find_readers(&slices, &readers))
        return NULL;
    struct mgx_ins *at = slices.member[0]; // the earliest of them, so that all readers come later
    for (int i = 1; i < slices.count; i++)
        if (slices.member[i]->index < at->index)
            at = slices.member[i];
    int slot = -1;
    for (int i = 0; readers.member[0]->in_count == 2 && i < readers.count; i++) {
        const int s = constant_slot(readers.member[i], slices.member[i], axis, at->index);
        if (s < 0 || (i && s != slot))
            return NULL;
        slot = s;
    }
    struct mgx_ins *z = emit_joined(at, y, &readers, axis, slot);
    if (!z)
        return NULL;
    z->index = at->index;
    hand_out(at, z, &readers, axis);
    return z;
}

enum mgx_status mgx_join_products(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_module_number(m);
    mgx_mark_constants(m);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        struct mgx_ins *joined = join_products(c, ins);
        for (struct mgx_ins *y = joined ? joined : ins; y; y = join_readers(y))
            c->changed |= y != ins;
    }
    return mgx_program_status(c->program, c->diag);
}
