// SPDX-License-Identifier: MIT
// Attention to a cache that was joined with the new rows looks at the cache that they are appended
// to, which the next run needs anyway.
//
//     concat(past, k), heads repeated, dot, f, softmax, dot         engine/held.h
//         =>  cache_attention[bias](q, cache_append(k, ends, room, past), cache_append(v, ..), ends, b)
//
// b is what f adds, its columns in the order of the cache: those of the new rows stand where the
// rows go.
//
//     column j of entry e    j < ends[e] - tokens:  j       else: room + j - (ends[e] - tokens)
//
// Few queries look at many keys without a cache likewise, all of them, as a decoder's at an
// encoder's at every token:
//
//     dot(softmax(f(dot(q, k'))), v)  =>  cache_attention[whole, bias](q, k, v, number of keys, b)
//
// Holds: rows of the past that nobody has are masked, as the cache_append says. A token sees none
// behind itself: what it left in its cache could not be the same for texts given in pieces
// otherwise. Runs only where it is named, for a target whose kernels take the attention.
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/held.h"
#include "pass/engine/region.h"
#include "pass/engine/view.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"

enum { NOW, ENDS, ROOM, PAST }; // of cache_append
enum { COLUMNS = 3 };           // the axis of keys, of a bias of four

// --- what is added, as {batch or 1, heads or 1, tokens or 1, columns} ---

// Which of the four axes repeat one value.
static void narrow(struct mgx_ins *value, const int64_t *lens, int64_t *out)
{
    const struct mgx_ins *core = value;
    while (mgx_is_reshaper(core))
        core = core->in[0];
    struct mgx_view v;
    const struct mgx_ins *step[8];
    int count = 0;
    for (const struct mgx_ins *i = value; i != core && count < MGX_COUNT(step); i = i->in[0])
        step[count++] = i;
    memcpy(out, lens, 4 * sizeof *lens);
    bool known = mgx_view_start(&v, &core->shape) && (count == 0 || step[count - 1]->in[0] == core);
    for (int i = count - 1; i >= 0 && known; i--)
        known = mgx_view_apply(&v, step[i]);
    known = known && mgx_view_reshape(&v, lens, 4);
    for (int d = 0; d < COLUMNS && known; d++) {
        bool repeats = true;
        for (int f = v.begin[d]; f < v.begin[d + 1]; f++)
            repeats = repeats && v.factor[f].stride == 0;
        out[d] = repeats ? 1 : lens[d];
    }
}

// A value of the scores' lengths as one of four axes, without what repeats.
static struct mgx_ins *emit_four(struct mgx_ins *at, struct mgx_ins *value, const int64_t *lens)
{
    int64_t own[4];
    narrow(value, lens, own);
    struct mgx_ins *x = mgx_emit_reshape(at, value, lens, 4);
    for (int d = 0; d < COLUMNS && x; d++)
        if (own[d] < lens[d])
            x = mgx_emit_slice(at, x, d, 0, 1);
    return x;
}

static struct mgx_ins *emit_term(struct mgx_ins *at, const struct mgx_held_term *t,
                                 const int64_t *lens)
{
    struct mgx_ins *x = emit_four(at, t->value, lens);
    double low;
    if (!x || !t->low)
        return x;
    if (!mgx_splat_value(t->low, &low))
        return NULL;
    const struct mgx_shape like = mgx_shape_make(t->low->shape.type, 4, x->shape.lens);
    struct mgx_ins *none = mgx_emit_splat(at, &like, 0), *hidden = mgx_emit_splat(at, &like, low);
    if (!none || !hidden)
        return NULL;
    return mgx_emit_before(at, &mgx_op_where, NULL,
                           t->hides ? MGX_IN(x, hidden, none) : MGX_IN(x, none, hidden));
}

static struct mgx_ins *emit_sum(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *y)
{
    int64_t lens[4];
    if (!x || !y)
        return NULL;
    for (int d = 0; d < 4; d++)
        lens[d] = mgx_max_i64(x->shape.lens[d], y->shape.lens[d]);
    return mgx_emit_binary(at, &mgx_op_add, mgx_emit_multibroadcast(at, x, lens, 4),
                           mgx_emit_multibroadcast(at, y, lens, 4));
}

// All terms together, in the type of the keys; NULL with *bad where that failed.
static struct mgx_ins *emit_terms(struct mgx_ins *at, const struct mgx_held *h, enum mgx_type type,
                                  bool *bad)
{
    const int64_t lens[4] = {h->batch, h->heads, h->tokens, h->keys};
    struct mgx_ins *sum = NULL;
    for (int i = 0; i < h->term_count && !*bad; i++) {
        struct mgx_ins *x = mgx_emit_convert(at, emit_term(at, &h->term[i], lens), type);
        sum = sum ? emit_sum(at, sum, x) : x;
        *bad = !sum;
    }
    return sum;
}

// --- its columns in the cache's order ---

// The column of every row of every entry, {batch, room}.
static struct mgx_ins *emit_columns(struct mgx_ins *at, const struct mgx_held *h)
{
    const int64_t lens[2] = {h->batch, h->room};
    struct mgx_arena *arena = &at->owner->program->arena;
    int64_t *list = mgx_arena_array(arena, (size_t)h->room, sizeof *list);
    for (int64_t i = 0; list && i < h->room; i++)
        list[i] = i;
    if (!list || h->room > INT32_MAX)
        return NULL;
    struct mgx_ins *row =
        mgx_emit_multibroadcast(at, mgx_literal_ints(at->owner, list, (int)h->room), lens, 2);
    struct mgx_ins *before = mgx_emit_convert(at, h->append[0]->in[ENDS], MGX_INT64);
    before = mgx_emit_with(at, &mgx_op_sub, before, (double)h->tokens);
    before = mgx_emit_reshape(at, before, (int64_t[]){h->batch, 1}, 2);
    before = mgx_emit_multibroadcast(at, before, lens, 2);
    struct mgx_ins *moved = mgx_emit_with(
        at, &mgx_op_add, mgx_emit_binary(at, &mgx_op_sub, row, before), (double)h->room);
    moved = mgx_emit_with(at, &mgx_op_min, moved, (double)(h->room + h->tokens - 1));
    struct mgx_ins *old =
        mgx_emit_convert(at, mgx_emit_binary(at, &mgx_op_less, row, before), MGX_BOOL);
    return old && moved ? mgx_emit_before(at, &mgx_op_where, NULL, MGX_IN(old, row, moved)) : NULL;
}

static struct mgx_ins *emit_in_order(struct mgx_ins *at, const struct mgx_held *h,
                                     struct mgx_ins *bias)
{
    struct mgx_ins *columns = emit_columns(at, h);
    if (!bias || !columns)
        return NULL;
    if (h->batch == 1)
        return mgx_emit_before(at, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", COLUMNS)),
                               MGX_IN(bias, mgx_emit_reshape(at, columns, &h->room, 1)));
    const int64_t *l = bias->shape.lens, whole[4] = {h->batch, l[1], l[2], l[3]};
    bias = mgx_emit_multibroadcast(at, bias, whole, 4);
    bias = mgx_emit_transpose(at, bias, (const int[]){0, COLUMNS, 1, 2}, 4);
    columns = mgx_emit_reshape(at, columns, (int64_t[]){h->batch, h->room, 1}, 3);
    if (!bias || !columns)
        return NULL;
    bias = mgx_emit_before(at, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", 1)),
                           MGX_IN(bias, columns));
    return mgx_emit_transpose(at, bias, (const int[]){0, 2, COLUMNS, 1}, 4);
}

// --- the attention ---

static struct mgx_ins *emit_append(struct mgx_ins *at, struct mgx_ins *old)
{
    struct mgx_ins *room = mgx_literal_ints(at->owner, &old->shape.lens[2], 1);
    struct mgx_ins *in[] = {old->in[NOW], old->in[ENDS], room, old->in[PAST]};
    return room ? mgx_emit_again(at, old, in, MGX_COUNT(in)) : NULL;
}

static struct mgx_ins *emit_attention(const struct mgx_held *h, struct mgx_ins *const *append)
{
    struct mgx_ins *at = h->weigh;
    const int64_t size = append[0] ? append[0]->shape.lens[3] : 0,
                  lens[4] = {h->batch, h->heads, h->tokens, size};
    bool bad = !append[0] || !append[1];
    struct mgx_ins *q = mgx_emit_reshape(at, h->q, lens, 4),
                   *bias = emit_terms(at, h, h->append[0]->shape.type, &bad);
    const bool biased = bias != NULL;
    if (biased)
        bias = emit_in_order(at, h, bias);
    if (bad || !q || (biased && !bias))
        return NULL;
    q = mgx_emit_convert(at, q, append[0]->shape.type);
    struct mgx_ins *in[5] = {q, append[0], append[1], append[0]->in[ENDS], bias};
    return mgx_emit_before(at, &mgx_op_cache_attention,
                           MGX_ATTRS(mgx_real("scale", h->scale), mgx_int("bias", biased)),
                           (struct mgx_ins_list){in, 4 + biased});
}

// What the second product made, in its lengths and its type. False: the target takes no such thing.
static bool replace(struct mgx_pass_call *c, struct mgx_ins *at, struct mgx_ins *y)
{
    if (!mgx_region_keeps(c, y, "cache"))
        return false;
    y = mgx_emit_reshape(at, y, at->shape.lens, at->shape.rank);
    y = mgx_emit_convert(at, y, at->shape.type);
    if (y)
        mgx_replace_uses(at, y);
    c->changed |= y != NULL;
    return y != NULL;
}

static enum mgx_status attend(struct mgx_pass_call *c, const struct mgx_held *h)
{
    struct mgx_ins *at = h->weigh, *append[2];
    for (int i = 0; i < 2; i++)
        append[i] = emit_append(at, h->append[i]);
    struct mgx_ins *y = emit_attention(h, append);
    TRY(mgx_program_status(c->program, c->diag));
    if (replace(c, at, y))
        for (int i = 0; i < 2; i++)
            mgx_replace_uses(h->append[i], append[i]);
    return mgx_program_status(c->program, c->diag);
}

// --- without a cache ---

// One that is a product of so few rows leaves most of a card idle, and its keys are many.
static bool is_few(const struct mgx_held *h)
{
    enum { MOST_TOKENS = 4, LEAST_KEYS = 256 };
    return h->tokens <= MOST_TOKENS && h->keys >= LEAST_KEYS;
}

// Keys or values as {batch, heads, keys, size}.
static struct mgx_ins *emit_heads(const struct mgx_held *h, int i)
{
    struct mgx_ins *at = h->weigh, *x = h->still[i];
    const int rank = x->shape.rank, turn3[3] = {0, 2, 1}, turn4[4] = {0, 1, 3, 2};
    x = i == 0 ? mgx_emit_transpose(at, x, rank == 3 ? turn3 : turn4, rank) : x;
    const int64_t size = x ? x->shape.lens[rank - 1] : 0,
                  lens[4] = {h->batch, h->heads, h->keys, size};
    return mgx_emit_reshape(at, x, lens, 4);
}

static struct mgx_ins *emit_still(const struct mgx_held *h)
{
    struct mgx_ins *at = h->weigh, *k = emit_heads(h, 0), *v = emit_heads(h, 1);
    bool bad = !k || !v;
    if (bad)
        return NULL;
    const int64_t lens[4] = {h->batch, h->heads, h->tokens, k->shape.lens[3]};
    struct mgx_ins *bias = emit_terms(at, h, k->shape.type, &bad);
    struct mgx_ins *q = mgx_emit_convert(at, mgx_emit_reshape(at, h->q, lens, 4), k->shape.type);
    struct mgx_ins *ends =
        mgx_emit_multibroadcast(at, mgx_literal_ints(at->owner, &h->keys, 1), &h->batch, 1);
    struct mgx_ins *in[5] = {q, k, v, ends, bias};
    const bool biased = bias != NULL;
    if (bad || !q || !ends)
        return NULL;
    return mgx_emit_before(
        at, &mgx_op_cache_attention,
        MGX_ATTRS(mgx_real("scale", h->scale), mgx_int("bias", biased), mgx_int("whole", 1)),
        (struct mgx_ins_list){in, 4 + biased});
}

static enum mgx_status attend_still(struct mgx_pass_call *c, const struct mgx_held *h)
{
    struct mgx_ins *y = emit_still(h);
    TRY(mgx_program_status(c->program, c->diag));
    if (y)
        (void)replace(c, h->weigh, y);
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status run(struct mgx_pass_call *c)
{
    MGX_EACH (ins, mgx_program_main(c->program)) {
        struct mgx_held held;
        if (mgx_held_find(ins, &held))
            TRY(attend(c, &held));
        else if (mgx_still_find(ins, &held) && is_few(&held))
            TRY(attend_still(c, &held));
    }
    return c->changed ? mgx_pass_apply(c, &mgx_pass_optimize_module) : MGX_OK;
}

const struct mgx_pass mgx_pass_attend_in_place = {
    .name = "attend_in_place",
    .meaning = "attention to a cache joined with new rows looks at the cache they are appended to",
    .program = run,
    .by_size = true,
};
