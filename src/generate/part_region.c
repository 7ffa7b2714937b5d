// SPDX-License-Identifier: MIT
// See part_region.h: operator by operator, what is kept of an operand when this is kept of the
// result.
#include "generate/part_region.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"
#include "pass/engine/constant.h"

int mgx_part_last_axis(const struct mgx_ins *ins)
{
    return ins->shape.rank - 1;
}

bool mgx_part_length(const struct mgx_ins *ins, int axis, int64_t *length)
{
    if (ins->shape.unranked || axis < 0 || axis >= ins->shape.rank)
        return false;
    const struct mgx_dim d = mgx_shape_dim(&ins->shape, axis);
    *length = d.min;
    return mgx_dim_is_fixed(&d);
}

struct mgx_part_member *mgx_part_find(struct mgx_part_region *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < r->count; i++)
        if (r->member[i].ins == ins)
            return &r->member[i];
    return NULL;
}

// --- what is kept of what ---

static bool insert_range(struct mgx_cut *cut, struct mgx_cut_range range)
{
    int at = 0;
    while (at < cut->count && cut->range[at].from < range.from)
        at++;
    if (at < cut->count && cut->range[at].from == range.from)
        return cut->range[at].to == range.to;
    if (cut->count == MGX_CUT_RANGES || (at < cut->count && cut->range[at].from < range.to) ||
        (at && cut->range[at - 1].to > range.from))
        return false;
    memmove(cut->range + at + 1, cut->range + at, (size_t)(cut->count - at) * sizeof range);
    cut->range[at] = range;
    cut->count++;
    return true;
}

// Somebody keeps these ranges of `ins`. A length of 1 is for all; constants are cut by their
// readers.
static void demand(struct mgx_part_region *r, struct mgx_ins *ins, struct mgx_cut cut)
{
    int64_t length;
    struct mgx_part_member *known = mgx_part_find(r, ins);
    if (!mgx_part_length(ins, cut.axis, &length) || (known && known->cut.axis != cut.axis))
        r->fails = true;
    else if (mgx_is_constant(r->m, ins))
        r->fails = r->fails || (length != 1 && !mgx_part_of_constant_can(ins, &cut));
    else if (known)
        for (int i = 0; i < cut.count; i++)
            r->fails = r->fails || !insert_range(&known->cut, cut.range[i]);
    else if (r->count == MGX_PART_REGION)
        r->fails = true;
    else
        r->member[r->count++] = (struct mgx_part_member){ins, cut};
}

// An operand that is repeated along axes of the result: from its last axis backwards they agree.
static void demand_repeated(struct mgx_part_region *r, const struct mgx_ins *ins, int slot,
                            const struct mgx_cut *cut)
{
    struct mgx_cut in = *cut;
    int64_t length;
    in.axis -= ins->shape.rank - ins->in[slot]->shape.rank;
    if (in.axis < 0 || (mgx_part_length(ins->in[slot], in.axis, &length) && length == 1))
        return;
    demand(r, ins->in[slot], in);
}

// --- operators ---

bool mgx_part_lists(struct mgx_ints axes, int rank, int axis, int *at)
{
    for (*at = 0; *at < axes.count; ++*at)
        if (mgx_wrap_axis(axes.v[*at], rank) == axis)
            return true;
    return false;
}

static void through_slice(struct mgx_part_region *r, const struct mgx_ins *ins,
                          const struct mgx_cut *cut)
{
    struct mgx_cut in = *cut;
    int64_t length;
    int at;
    if (ins->in_count != 1) {
        r->fails = true;
        return;
    }
    if (mgx_part_lists(mgx_ins_ints(ins, "axes"), ins->shape.rank, cut->axis, &at)) {
        int64_t start = mgx_ins_ints(ins, "starts").v[at];
        if (!mgx_part_length(ins->in[0], cut->axis, &length) || start < -length || start > length) {
            r->fails = true;
            return;
        }
        start += start < 0 ? length : 0;
        for (int i = 0; i < in.count; i++)
            in.range[i] = (struct mgx_cut_range){in.range[i].from + start, in.range[i].to + start};
    }
    demand(r, ins->in[0], in);
}

// The last axis becomes two, or the last two become one; the others stay.
static void through_reshape(struct mgx_part_region *r, const struct mgx_ins *ins,
                            const struct mgx_cut *cut)
{
    const struct mgx_ints dims = mgx_ins_ints(ins, "dims");
    const int rank = ins->shape.rank, from = ins->in[0]->shape.rank;
    const int same = (rank < from ? rank : from) - 1;
    int64_t size;
    struct mgx_cut in;
    bool good = ins->in_count == 1 && dims.count == rank && (rank == from + 1 || rank + 1 == from);
    for (int i = 0; i < same && good; i++)
        good = dims.v[i] == 0;
    if (good && rank > from)
        good = cut->axis == rank - 2 && mgx_part_length(ins, rank - 1, &size) &&
               mgx_cut_scale(cut, from - 1, size, 1, &in);
    else if (good)
        good = cut->axis == rank - 1 && mgx_part_length(ins->in[0], from - 1, &size) &&
               mgx_cut_scale(cut, from - 2, 1, size, &in);
    if (good)
        demand(r, ins->in[0], in);
    else
        r->fails = true;
}

// Heads of queries, and those of keys and values that they share.
static void through_attention(struct mgx_part_region *r, const struct mgx_ins *ins,
                              const struct mgx_cut *cut)
{
    enum { Q, K, V, ENDS };
    const bool bias = mgx_ins_int(ins, "bias"), sink = mgx_ins_int(ins, "sink");
    int64_t heads, shared;
    struct mgx_cut in;
    if (cut->axis != 1 || !mgx_part_length(ins->in[Q], 1, &heads) ||
        !mgx_part_length(ins->in[K], 1, &shared) || !mgx_cut_scale(cut, 1, shared, heads, &in)) {
        r->fails = true;
        return;
    }
    demand(r, ins->in[Q], *cut);
    demand(r, ins->in[K], in);
    demand(r, ins->in[V], in);
    if (bias)
        demand_repeated(r, ins, ENDS + 1, cut);
    if (sink && mgx_cut_scale(cut, 0, 1, 1, &in))
        demand(r, ins->in[ins->in_count - 1], in);
}

static void through_transpose(struct mgx_part_region *r, const struct mgx_ins *ins,
                              const struct mgx_cut *cut)
{
    struct mgx_cut in = *cut;
    in.axis = (int)mgx_ins_ints(ins, "permutation").v[cut->axis];
    demand(r, ins->in[0], in);
}

struct mgx_ins *mgx_part_weights(const struct mgx_ins *product)
{
    struct mgx_ins *w = product->in[1];
    return mgx_is(w, &mgx_op_broadcast_for_dot) ? w->in[0] : w;
}

// A first product: columns of its weights.
static void begin_at(struct mgx_part_region *r, const struct mgx_ins *ins,
                     const struct mgx_cut *cut)
{
    struct mgx_ins *w = mgx_part_weights(ins);
    struct mgx_cut in;
    if (cut->axis == mgx_part_last_axis(ins) && mgx_is_constant(r->m, w) &&
        mgx_cut_scale(cut, mgx_part_last_axis(w), 1, 1, &in) && mgx_part_of_constant_can(w, &in))
        r->products++;
    else
        r->fails = true;
}

bool mgx_part_is_elementwise(const struct mgx_ins *ins)
{
    return mgx_pointwise_find(ins->op) || mgx_is(ins, &mgx_op_convert);
}

static void through(struct mgx_part_region *r, const struct mgx_ins *ins, const struct mgx_cut *cut)
{
    int at;
    if (mgx_part_is_elementwise(ins))
        for (int i = 0; i < ins->in_count; i++)
            demand(r, ins->in[i], *cut);
    else if (mgx_is(ins, &mgx_op_multibroadcast))
        for (int i = 0; i < ins->in_count; i++)
            demand_repeated(r, ins, i, cut);
    else if (mgx_is(ins, &mgx_op_broadcast_for_dot))
        demand_repeated(r, ins, 0, cut);
    else if (mgx_is(ins, &mgx_op_dot))
        begin_at(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_slice))
        through_slice(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_transpose))
        through_transpose(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_reshape))
        through_reshape(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_cache_attention))
        through_attention(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_rotary_embedding) && cut->axis == 1)
        demand(r, ins->in[0], *cut);
    else if (mgx_is(ins, &mgx_op_cache_append) && cut->axis == 1 && ins->in_count == 4) {
        demand(r, ins->in[0], *cut);
        demand(r, ins->in[3], *cut);
    } else if ((ins->op->flags & MGX_OP_REDUCE) &&
               !mgx_part_lists(mgx_ins_ints(ins, "axes"), ins->shape.rank, cut->axis, &at))
        demand(r, ins->in[0], *cut);
    else
        r->fails = !(mgx_is(ins, &mgx_op_param) && ins->shape.rank == 4 && cut->axis == 1);
}

// --- the region ---

static int later(const void *a, const void *b)
{
    const int i = ((const struct mgx_part_member *)a)->ins->index,
              k = ((const struct mgx_part_member *)b)->ins->index;
    return (k > i) - (k < i);
}

// The latest instruction that nobody went through yet: members are in order up to `done`.
static struct mgx_part_member *next_member(struct mgx_part_region *r, int done)
{
    int latest = done;
    for (int i = done + 1; i < r->count; i++)
        if (later(&r->member[latest], &r->member[i]) > 0)
            latest = i;
    const struct mgx_part_member swapped = r->member[done];
    r->member[done] = r->member[latest];
    r->member[latest] = swapped;
    return &r->member[done];
}

// Does nobody outside of the region read it, but for its lengths, or to hand a cache on?
static bool is_apart(struct mgx_part_region *r, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        const bool lengths = mgx_is(user, &mgx_op_broadcast_for_dot) && use->slot == 1;
        const bool handed = mgx_is(ins, &mgx_op_cache_append) && user->op == &mgx_op_return;
        if (user != r->product && !lengths && !handed && !mgx_part_find(r, user))
            return false;
    }
    return true;
}

// An equal share of the rows of the second product's weights, and all that it takes.
bool mgx_part_grow(struct mgx_part_region *r, struct mgx_ins *product)
{
    struct mgx_ins *w = mgx_part_weights(product);
    int64_t rows;
    r->product = product;
    r->count = r->products = 0;
    r->fails = false;
    if (!mgx_is_constant(r->m, w) || !mgx_part_length(w, mgx_part_last_axis(w) - 1, &rows) ||
        rows % r->cards || mgx_is_constant(r->m, product->in[0]))
        return false;
    const int64_t each = rows / r->cards;
    struct mgx_cut cut = {.axis = mgx_part_last_axis(w) - 1,
                          .count = 1,
                          .range = {{r->card * each, (r->card + 1) * each}}};
    if (!mgx_part_of_constant_can(w, &cut))
        return false;
    cut.axis = mgx_part_last_axis(product->in[0]);
    demand(r, product->in[0], cut);
    for (int i = 0; i < r->count && !r->fails; i++) {
        const struct mgx_part_member *m = next_member(r, i);
        const struct mgx_cut kept = m->cut; // the list may move
        through(r, m->ins, &kept);
    }
    for (int i = 0; i < r->count && !r->fails; i++)
        r->fails = !is_apart(r, r->member[i].ins);
    return !r->fails && r->products > 0;
}
