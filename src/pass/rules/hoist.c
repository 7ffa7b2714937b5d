// SPDX-License-Identifier: MIT
// Pointwise work before a broadcast instead of after it.
//
//     op(broadcast(x), broadcast(y))  =>  broadcast(op(x, y))
//
// Holds: every input is a broadcast (literals of one value count), and together they vary along
// fewer places than the result has. The narrow operands get the result's rank with length 1 where
// nothing varies, so the result is a multibroadcast; where all inputs are broadcast in the same
// way, that way is kept.
#include <assert.h>
#include <string.h>

#include "pass/engine/emit.h"
#include "pass/rules/rules.h"

enum { MAX_INPUTS = 8 };

struct hoist {
    struct mgx_ins *ins;
    struct mgx_spread spread[MAX_INPUTS]; // core NULL: one value, in `value`
    double value[MAX_INPUTS];
    struct mgx_shape narrow; // lengths of the hoisted operator
    bool constants;          // single numbers are hoisted too, where they are broadcast
};

static bool read_inputs(struct hoist *h)
{
    struct mgx_ins *ins = h->ins;
    if (ins->in_count > MAX_INPUTS || !mgx_shape_is_static(&ins->shape) || ins->mod_count ||
        mgx_is(ins, &mgx_op_contiguous) || mgx_is(ins, &mgx_op_layout)) // they are about memory
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        h->spread[i].core = NULL;
        if (!mgx_splat_value(ins->in[i], &h->value[i]) && !mgx_spread_of(ins->in[i], &h->spread[i]))
            return false;
    }
    return true;
}

// Lengths of the places where any input varies; false if nothing is saved.
static bool find_narrow(struct hoist *h)
{
    const struct mgx_shape *s = &h->ins->shape;
    bool saves = false, any = false;
    h->narrow = *s;
    for (int d = 0; d < s->rank; d++) {
        bool varies = false;
        for (int i = 0; i < h->ins->in_count; i++)
            varies |= h->spread[i].core && h->spread[i].axis[d] >= 0;
        saves |= !varies && s->lens[d] > 1;
        h->narrow.lens[d] = varies ? s->lens[d] : 1;
    }
    for (int i = 0; i < h->ins->in_count; i++)
        any |= h->spread[i].core || (h->constants && !h->ins->in[i]->literal);
    return saves && any; // of literals alone folding takes care
}

// The broadcast that all inputs share, apart from single numbers; NULL if they differ.
static struct mgx_ins *shared_broadcast(const struct hoist *h)
{
    struct mgx_ins *first = NULL;
    for (int i = 0; i < h->ins->in_count; i++) {
        struct mgx_ins *in = h->ins->in[i];
        if (!h->spread[i].core)
            continue;
        if (!first)
            first = in;
        if (in->op != first->op || !mgx_shape_same_lens(&in->in[0]->shape, &first->in[0]->shape) ||
            in->in[0]->shape.rank != first->in[0]->shape.rank ||
            !mgx_attr_equal(in->op, in->attr, first->attr))
            return NULL;
    }
    return first;
}

// The value as it was before its broadcast.
static struct mgx_ins *core_input(const struct hoist *h, int i, const struct mgx_ins *broadcast)
{
    assert(i >= 0);
    if (h->spread[i].core)
        return h->spread[i].core;
    const struct mgx_shape like =
        mgx_shape_retype(&broadcast->in[0]->shape, h->ins->in[i]->shape.type);
    return mgx_emit_splat(h->ins, &like, h->value[i]);
}

static struct mgx_ins *narrow_input(const struct hoist *h, int i)
{
    assert(i >= 0);
    const struct mgx_spread *s = &h->spread[i];
    const struct mgx_shape like =
        mgx_shape_make(h->ins->in[i]->shape.type, h->narrow.rank, h->narrow.lens);
    if (!s->core)
        return mgx_emit_splat(h->ins, &like, h->value[i]);
    int64_t lens[MGX_MAX_RANK];
    for (int d = 0; d < like.rank; d++)
        lens[d] = s->axis[d] >= 0 ? h->ins->shape.lens[d] : 1;
    struct mgx_ins *x = mgx_emit_reshape(h->ins, s->core, lens, like.rank);
    return mgx_emit_multibroadcast(h->ins, x, like.lens, like.rank);
}

static struct mgx_ins *hoist_from(struct mgx_ins *ins, bool constants)
{
    struct hoist h = {.ins = ins, .constants = constants};
    struct mgx_ins *in[MAX_INPUTS];
    if (!read_inputs(&h) || !find_narrow(&h))
        return NULL;
    const struct mgx_ins *broadcast = shared_broadcast(&h);
    for (int i = 0; i < ins->in_count; i++)
        in[i] = broadcast ? core_input(&h, i, broadcast) : narrow_input(&h, i);
    struct mgx_ins *y = mgx_emit_again(ins, ins, in, ins->in_count);
    return broadcast ? mgx_emit_again(ins, broadcast, &y, 1)
                     : mgx_emit_multibroadcast(ins, y, ins->shape.lens, ins->shape.rank);
}

static struct mgx_ins *hoist(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return hoist_from(ins, false);
}

static struct mgx_ins *hoist_constant(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)r, (void)m;
    return hoist_from(ins, true);
}

static bool is_constant(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    return mgx_is_constant(r->module, ins);
}

static const struct mgx_rule rules[] = {
    {"%pointwise ~> broadcast(op(x, ...)) for op(broadcast(x), ...)", .rewrite = hoist},
};

// Of constants alone: what folding does first, so that no literal repeats itself.
static const struct mgx_rule constant_rules[] = {
    {"%pointwise ~> broadcast(op(x, ...)) for constants", .guard = is_constant,
     .rewrite = hoist_constant},
};

const struct mgx_rules mgx_rules_hoist = {rules, MGX_COUNT(rules)};
const struct mgx_rules mgx_rules_hoist_constants = {constant_rules, MGX_COUNT(constant_rules)};
