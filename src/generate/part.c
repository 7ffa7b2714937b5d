// SPDX-License-Identifier: MIT
// Pairs of products, and what becomes of both and of the region between them.
#include "generate/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "generate/part_region.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

enum { ADDED = 2 }; // a bias and the residual

// --- the rewrite ---

static void set_weights(struct mgx_part_region *r, struct mgx_ins *product,
                        const struct mgx_cut *cut)
{
    struct mgx_ins *w = mgx_part_weights(product), *at = product;
    for (int i = 0; i < 2; i++)
        if (mgx_is(product->in[i], &mgx_op_broadcast_for_dot) && product->in[i]->index < at->index)
            at = product->in[i];
    struct mgx_ins *part = mgx_part_of_constant(at, w, cut);
    (void)r;
    for (int i = 0; i < 2 && part; i++) {
        struct mgx_ins *in = product->in[i];
        for (int k = 0; mgx_is(in, &mgx_op_broadcast_for_dot) && k < 2; k++)
            if (in->in[k] == w)
                mgx_set_input(in, k, part);
        if (in == w)
            mgx_set_input(product, i, part);
    }
}

// Where a place of the whole axis lies among what is kept.
static int64_t place_of(const struct mgx_cut *cut, int64_t at)
{
    int64_t before = 0;
    for (int i = 0; i < cut->count && cut->range[i].from < at; i++)
        before += mgx_min_i64(cut->range[i].to, at) - cut->range[i].from;
    return before;
}

static void edit_list(struct mgx_ins *ins, const char *name, int at, int64_t value)
{
    int64_t list[MGX_MAX_RANK];
    const struct mgx_ints old = mgx_ins_ints(ins, name);
    struct mgx_program *p = ins->owner->program;
    void *attr = mgx_edit_attr(p, ins);
    assert(at < old.count && old.count <= MGX_MAX_RANK);
    memcpy(list, old.v, (size_t)old.count * sizeof *list);
    list[at] = value;
    if (attr && mgx_edit_ints(p, ins->op, attr, name, list, old.count))
        ins->attr = attr;
}

static void keep_slice(struct mgx_part_region *r, struct mgx_ins *ins, const struct mgx_cut *cut)
{
    const struct mgx_part_member *from = mgx_part_find(r, ins->in[0]);
    int64_t length = 0;
    int at;
    if (!from || !mgx_part_lists(mgx_ins_ints(ins, "axes"), ins->shape.rank, cut->axis, &at))
        return;
    (void)mgx_part_length(ins->in[0], cut->axis, &length);
    int64_t start = mgx_ins_ints(ins, "starts").v[at];
    start += start < 0 ? length : 0;
    const int64_t first = place_of(&from->cut, start);
    edit_list(ins, "starts", at, first);
    edit_list(ins, "ends", at, first + mgx_cut_length(cut));
}

static void keep_parameter(struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_dim dims[MGX_MAX_RANK];
    const struct mgx_shape *s = &ins->shape;
    struct mgx_program *p = ins->owner->program;
    for (int i = 0; i < s->rank; i++)
        dims[i] = mgx_shape_dim(s, i);
    dims[cut->axis] = (struct mgx_dim){.min = mgx_cut_length(cut), .max = mgx_cut_length(cut)};
    const struct mgx_dim *kept = mgx_arena_memdup(&p->arena, dims, (size_t)s->rank * sizeof *dims);
    if (kept && !mgx_shape_is_static(s)) {
        ins->shape = mgx_shape_dynamic(s->type, s->rank, kept);
        return;
    }
    int64_t lens[MGX_MAX_RANK];
    for (int i = 0; i < s->rank; i++)
        lens[i] = dims[i].min;
    ins->shape = mgx_shape_make(s->type, s->rank, lens);
}

// Constants that an element-wise instruction reads, or that are repeated.
static void keep_constants(struct mgx_part_region *r, struct mgx_ins *ins,
                           const struct mgx_cut *cut)
{
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_ins *in = ins->in[i];
        struct mgx_cut part = *cut;
        int64_t length = 1;
        part.axis -= ins->shape.rank - in->shape.rank;
        if (part.axis < 0 || !mgx_is_constant(r->m, in) ||
            !mgx_part_length(in, part.axis, &length) || length == 1)
            continue;
        struct mgx_ins *by = mgx_part_of_constant(ins, in, &part);
        if (by)
            mgx_set_input(ins, i, by);
    }
}

static void keep_sink(struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_cut part;
    const int last = ins->in_count - 1;
    if (mgx_ins_int(ins, "sink") && ins->in[last]->literal && mgx_cut_scale(cut, 0, 1, 1, &part))
        mgx_set_input(ins, last, mgx_part_of_constant(ins, ins->in[last], &part));
}

static void keep(struct mgx_part_region *r, struct mgx_ins *ins, const struct mgx_cut *cut)
{
    struct mgx_cut columns;
    if (mgx_is(ins, &mgx_op_param))
        keep_parameter(ins, cut);
    else if (mgx_is(ins, &mgx_op_slice))
        keep_slice(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_reshape))
        edit_list(ins, "dims", cut->axis, mgx_cut_length(cut));
    else if (mgx_is(ins, &mgx_op_dot) &&
             mgx_cut_scale(cut, mgx_part_last_axis(mgx_part_weights(ins)), 1, 1, &columns))
        set_weights(r, ins, &columns);
    else if (mgx_is(ins, &mgx_op_cache_attention))
        keep_sink(ins, cut);
    else if (mgx_part_is_elementwise(ins))
        keep_constants(r, ins, cut);
    else if (mgx_is(ins, &mgx_op_multibroadcast)) {
        if (mgx_ins_ints(ins, "out_lens").count)
            edit_list(ins, "out_lens", cut->axis, mgx_cut_length(cut));
        keep_constants(r, ins, cut);
    }
}

// --- the sum ---

// What one instruction reads of it, but for its lengths.
static struct mgx_ins *only_reader(const struct mgx_ins *ins)
{
    struct mgx_ins *reader = NULL;
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        if (mgx_is(use->user, &mgx_op_multibroadcast) && use->slot > 0)
            continue;
        if (reader)
            return NULL;
        reader = use->user;
    }
    return reader;
}

static struct mgx_ins *emit_sum(struct mgx_part_region *r, struct mgx_ins *at, struct mgx_ins *x)
{
    struct mgx_ins *const both[2] = {x, r->sum};
    const struct mgx_attr *attrs = MGX_ATTRS(mgx_int("cards", r->cards), mgx_int("card", r->card));
    return mgx_emit_before(at, &mgx_op_sum_over_cards, attrs,
                           (struct mgx_ins_list){both, r->sum ? 2 : 1});
}

// Is it whole on every card? What comes before the product is, for all products there have their
// sums; and so are constants.
static bool is_whole(const struct mgx_part_region *r, struct mgx_ins *ins)
{
    return mgx_is_constant(r->m, ins) || ins->index < r->product->index ||
           (mgx_is(ins, &mgx_op_multibroadcast) && mgx_is_constant(r->m, ins->in[0]));
}

// What adds something whole to `ins`, which nobody else reads; or NULL.
static struct mgx_ins *added(const struct mgx_part_region *r, const struct mgx_ins *ins)
{
    struct mgx_ins *add = only_reader(ins);
    if (!add || !mgx_is(add, &mgx_op_add) || add->in[0] == add->in[1])
        return NULL;
    return is_whole(r, add->in[add->in[0] == ins]) ? add : NULL;
}

// The first card adds what is added to the product; others go without.
static void put_sum(struct mgx_part_region *r, struct mgx_ins *product)
{
    struct mgx_ins *last = product, *add = added(r, last);
    for (int i = 0; i < ADDED && add; i++) {
        last = add;
        add = added(r, last);
    }
    struct mgx_ins *sum = emit_sum(r, last->next, r->card ? product : last);
    if (!sum)
        return;
    mgx_copy_origin(sum, product);
    mgx_replace_uses(last, sum);
    mgx_set_input(sum, 0, r->card ? product : last);
    r->sum = sum;
}

static void rewrite(struct mgx_part_region *r)
{
    struct mgx_ins *product = r->product, *w = mgx_part_weights(product);
    const struct mgx_cut *kept = &mgx_part_find(r, product->in[0])->cut;
    struct mgx_cut rows;
    for (int i = r->count - 1; i >= 0; i--) // in the order of the program
        keep(r, r->member[i].ins, &r->member[i].cut);
    if (mgx_cut_scale(kept, mgx_part_last_axis(w) - 1, 1, 1, &rows))
        set_weights(r, product, &rows);
    put_sum(r, product);
}

// --- the program ---

// Other cards' parts go, and what leads to nothing any more.
static enum mgx_status drop_rest(struct mgx_program *p, struct mgx_diag *diag)
{
    for (struct mgx_ins *ins = mgx_program_main(p)->last, *before; ins; ins = before) {
        before = ins->prev;
        if (mgx_is_removable(ins))
            mgx_remove(ins);
    }
    return mgx_program_drop_literals(p, diag);
}

static enum mgx_status infer_all(struct mgx_program *p, struct mgx_diag *diag)
{
    TRY(mgx_program_status(p, diag));
    TRY(drop_rest(p, diag));
    MGX_EACH (ins, mgx_program_main(p))
        if (!(ins->op->flags & MGX_OP_BUILTIN) && mgx_update_shape(ins, diag) != MGX_OK) {
            mgx_where(diag, "%s of a card's part", ins->op->name);
            return diag->status;
        }
    return MGX_OK;
}

// --- scores ---

// The product behind a result, when nobody else reads anything of it.
static struct mgx_ins *scores_of(struct mgx_module *m, int result)
{
    struct mgx_ins *ins = mgx_module_result(m, result);
    while (mgx_is(ins, &mgx_op_convert) || mgx_is(ins, &mgx_op_identity)) {
        if (!mgx_used_once(ins))
            return NULL;
        ins = ins->in[0];
    }
    return mgx_is(ins, &mgx_op_dot) && mgx_used_once(ins) ? ins : NULL;
}

static struct mgx_ins *emit_pad(struct mgx_ins *at, struct mgx_ins *x, int64_t before,
                                int64_t after)
{
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    const int rank = x->shape.rank;
    pads[rank - 1] = before;
    pads[2 * rank - 1] = after;
    return mgx_emit_before(at, &mgx_op_pad, MGX_ATTRS(mgx_ints("pads", pads, 2 * rank)), MGX_IN(x));
}

static bool split_scores(struct mgx_part_region *r, struct mgx_ins *product)
{
    struct mgx_ins *w = mgx_part_weights(product);
    int64_t words;
    if (!mgx_is_constant(r->m, w) || !mgx_part_length(w, mgx_part_last_axis(w), &words) ||
        words % r->cards)
        return false;
    const int64_t each = words / r->cards, before = r->card * each;
    const struct mgx_cut cut = {
        .axis = mgx_part_last_axis(w), .count = 1, .range = {{before, before + each}}};
    if (!mgx_part_of_constant_can(w, &cut))
        return false;
    set_weights(r, product, &cut);
    if (mgx_update_shape(product->in[1], NULL) != MGX_OK ||
        mgx_update_shape(product, NULL) != MGX_OK)
        return false;
    struct mgx_ins *pad = emit_pad(product->next, product, before, words - before - each);
    struct mgx_ins *sum = pad ? emit_sum(r, pad->next, pad) : NULL;
    if (!sum)
        return false;
    mgx_copy_origin(sum, product);
    mgx_replace_uses(product, sum);
    mgx_set_input(pad, 0, product);
    return true;
}

enum mgx_status mgx_part_take_scores(struct mgx_program *p, int result, int card, int cards,
                                     int *sums, struct mgx_diag *diag)
{
    struct mgx_part_region *r = calloc(1, sizeof *r);
    if (!r)
        return mgx_fail_memory(diag);
    *r = (struct mgx_part_region){.m = mgx_program_main(p), .card = card, .cards = cards};
    mgx_mark_constants(r->m);
    mgx_module_number(r->m);
    MGX_EACH (ins, r->m)
        if (mgx_is(ins, &mgx_op_sum_over_cards))
            r->sum = ins;
    struct mgx_ins *product = scores_of(r->m, result);
    *sums = product && split_scores(r, product);
    free(r);
    return *sums ? infer_all(p, diag) : mgx_program_status(p, diag);
}

enum mgx_status mgx_part_take(struct mgx_program *p, int card, int cards, int *sums,
                              struct mgx_diag *diag)
{
    struct mgx_part_region *r = calloc(1, sizeof *r);
    assert(!p->executable && card >= 0 && card < cards);
    *sums = 0;
    if (!r)
        return mgx_fail_memory(diag);
    *r = (struct mgx_part_region){.m = mgx_program_main(p), .card = card, .cards = cards};
    mgx_mark_constants(r->m);
    for (struct mgx_ins *ins = r->m->first; ins; ins = ins->next) {
        if (!mgx_is(ins, &mgx_op_dot))
            continue;
        mgx_module_number(r->m);
        if (!mgx_part_grow(r, ins))
            continue;
        rewrite(r);
        ++*sums;
    }
    free(r);
    return *sums ? infer_all(p, diag) : mgx_program_status(p, diag);
}
