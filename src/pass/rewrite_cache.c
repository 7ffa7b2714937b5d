// SPDX-License-Identifier: MIT
// The operators of caches that decoders keep, in operators that every target has:
//
//     rotary_embedding  =>  x cos - y sin, y cos + x sin      of halves, cos and sin gathered
//     cache_append      =>  rows of past and now, gathered by place; 0 where no token is
//     cache_attention   =>  softmax(f(q k') + hidden) v       hidden: -inf behind a token
//     paged_attention   =>  cache_attention[whole, bias] of blocks that are gathered, and widened
//
// For targets without kernels of their own: one that has some is asked (tag "cache"). Holds: sizes
// are static; rows that see nothing, which a bias alone can make, stay 0. Cost: a cache is copied.
// Of pages few tokens gather the blocks of their own text each; many look at the blocks of every
// text, hidden but for their own, and the results are summed.
#include "op/op.h"
#include "op/rule/cache.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/rewrite.h"

#include <math.h>
#include <string.h>

// --- small forms ---

static struct mgx_ins *emit_where(struct mgx_ins *at, struct mgx_ins *c, struct mgx_ins *x,
                                  struct mgx_ins *y)
{
    return c && x && y ? mgx_emit_before(at, &mgx_op_where, NULL, MGX_IN(c, x, y)) : NULL;
}

static struct mgx_ins *emit_below(struct mgx_ins *at, struct mgx_ins *x, double limit)
{
    return mgx_emit_convert(at, mgx_emit_with(at, &mgx_op_less, x, limit), MGX_BOOL);
}

static struct mgx_ins *emit_not_below(struct mgx_ins *at, struct mgx_ins *x, double limit)
{
    return mgx_emit_unary(at, &mgx_op_not, emit_below(at, x, limit));
}

// 0, 1, 2, ... along the last axis of these lengths.
static struct mgx_ins *emit_places(struct mgx_ins *at, const int64_t *lens, int rank)
{
    const int64_t count = lens[rank - 1];
    struct mgx_arena *arena = &at->owner->program->arena;
    int64_t *v = mgx_arena_array(arena, (size_t)count + 1, sizeof *v);
    for (int64_t i = 0; v && i < count; i++)
        v[i] = i;
    if (!v || count > INT32_MAX)
        return NULL;
    return mgx_emit_multibroadcast(at, mgx_literal_ints(at->owner, v, (int)count), lens, rank);
}

// max(ends - tokens, 0), spread over {batch, count}.
static struct mgx_ins *emit_before_new(struct mgx_ins *at, struct mgx_ins *ends, int64_t tokens,
                                       int64_t count)
{
    ends = mgx_emit_convert(at, ends, MGX_INT64);
    struct mgx_ins *x =
        mgx_emit_with(at, &mgx_op_max, mgx_emit_with(at, &mgx_op_sub, ends, (double)tokens), 0);
    const int64_t batch = ends ? ends->shape.lens[0] : 0;
    x = mgx_emit_reshape(at, x, (int64_t[]){batch, 1}, 2);
    return mgx_emit_multibroadcast(at, x, (int64_t[]){batch, count}, 2);
}

// {batch, n} as {batch, 1, n, 1} or {batch, 1, 1, n}, spread over `lens`.
static struct mgx_ins *emit_spread(struct mgx_ins *at, struct mgx_ins *x, int axis,
                                   const int64_t *lens)
{
    int64_t four[4] = {lens[0], 1, 1, 1};
    four[axis] = lens[axis];
    return mgx_emit_multibroadcast(at, mgx_emit_reshape(at, x, four, 4), lens, 4);
}

// --- rotary_embedding ---

// Rows of a table at every token's position, spread over the heads.
static struct mgx_ins *emit_rows(struct mgx_ins *ins, struct mgx_ins *table, struct mgx_ins *at)
{
    const int64_t *lens = ins->shape.lens, half = table->shape.lens[1];
    struct mgx_ins *x =
        at ? mgx_emit_before(ins, &mgx_op_gather, MGX_ATTRS(mgx_int("axis", 0)), MGX_IN(table, at))
           : NULL;
    x = mgx_emit_reshape(ins, x, (int64_t[]){lens[0], 1, lens[2], half}, 4);
    return mgx_emit_multibroadcast(ins, x, (int64_t[]){lens[0], lens[1], lens[2], half}, 4);
}

static struct mgx_ins *positions(struct mgx_ins *ins)
{
    struct mgx_ins *at = ins->in[3];
    const int64_t lens[2] = {ins->shape.lens[0], ins->shape.lens[2]};
    if (at->shape.rank == 2)
        return mgx_emit_with(ins, &mgx_op_max, at, 0);
    return mgx_emit_binary(ins, &mgx_op_add, emit_before_new(ins, at, lens[1], lens[1]),
                           emit_places(ins, lens, 2));
}

// Member i of the pairs, {batch, heads, tokens, half}.
static struct mgx_ins *member(struct mgx_ins *ins, int64_t half, bool interleaved, int i)
{
    const int64_t *lens = ins->shape.lens;
    struct mgx_ins *x = ins->in[0];
    if (!interleaved)
        return mgx_emit_slice(ins, x, 3, i * half, (i + 1) * half);
    x = mgx_emit_slice(ins, x, 3, 0, 2 * half);
    x = mgx_emit_reshape(ins, x, (int64_t[]){lens[0], lens[1], lens[2], half, 2}, 5);
    x = mgx_emit_slice(ins, x, 4, i, i + 1);
    return mgx_emit_reshape(ins, x, (int64_t[]){lens[0], lens[1], lens[2], half}, 4);
}

static struct mgx_ins *join(struct mgx_ins *ins, struct mgx_ins **part, int64_t half,
                            bool interleaved)
{
    const int64_t *lens = ins->shape.lens, five[5] = {lens[0], lens[1], lens[2], half, 1};
    if (!interleaved)
        return mgx_emit_concat(ins, part, 2, 3);
    for (int i = 0; i < 2; i++)
        part[i] = mgx_emit_reshape(ins, part[i], five, 5);
    return mgx_emit_reshape(ins, mgx_emit_concat(ins, part, 2, 4),
                            (int64_t[]){lens[0], lens[1], lens[2], 2 * half}, 4);
}

static struct mgx_ins *spell_rotation(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)r, (void)m;
    const bool interleaved = mgx_ins_int(ins, "interleaved") != 0;
    const int64_t half = ins->in[1]->shape.lens[1], size = ins->shape.lens[3];
    if (!half || !mgx_shape_elements(&ins->shape))
        return NULL;
    struct mgx_ins *at = positions(ins), *x = member(ins, half, interleaved, 0),
                   *y = member(ins, half, interleaved, 1);
    struct mgx_ins *c = emit_rows(ins, ins->in[1], at), *s = emit_rows(ins, ins->in[2], at);
    const struct mgx_op *mul = &mgx_op_mul;
    struct mgx_ins *part[2] = {mgx_emit_binary(ins, &mgx_op_sub, mgx_emit_binary(ins, mul, x, c),
                                               mgx_emit_binary(ins, mul, y, s)),
                               mgx_emit_binary(ins, &mgx_op_add, mgx_emit_binary(ins, mul, y, c),
                                               mgx_emit_binary(ins, mul, x, s))};
    struct mgx_ins *turned = join(ins, part, half, interleaved);
    if (2 * half == size)
        return turned;
    struct mgx_ins *const both[] = {turned, mgx_emit_slice(ins, ins->in[0], 3, 2 * half, size)};
    return mgx_emit_concat(ins, both, 2, 3);
}

// --- cache_append ---

static struct mgx_ins *spell_append(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r, (void)m;
    const int swap[4] = {0, 2, 1, 3};
    struct mgx_ins *now = ins->in[0], *past = ins->in_count > 3 ? ins->in[3] : NULL;
    const int64_t *lens = ins->shape.lens, tokens = now->shape.lens[2],
                  room = past ? past->shape.lens[2] : 0, two[2] = {lens[0], lens[2]};
    if (!mgx_shape_elements(&ins->shape) || !tokens)
        return NULL;
    struct mgx_ins *const both[] = {past, now};
    struct mgx_ins *rows = room ? mgx_emit_concat(ins, both, 2, 2) : now;
    struct mgx_ins *place = emit_places(ins, two, 2);
    // Counted from the first new token; what is before it is past's, as far as that goes.
    struct mgx_ins *fresh =
        mgx_emit_binary(ins, &mgx_op_sub, place, emit_before_new(ins, ins->in[1], tokens, lens[2]));
    struct mgx_ins *is_old = emit_below(ins, fresh, 0);
    struct mgx_ins *from =
        emit_where(ins, is_old, place, mgx_emit_with(ins, &mgx_op_add, fresh, (double)room));
    from = mgx_emit_with(ins, &mgx_op_min, mgx_emit_with(ins, &mgx_op_max, from, 0),
                         (double)(room + tokens - 1));
    from = mgx_emit_reshape(ins, from, (int64_t[]){lens[0], lens[2], 1}, 3);
    rows = mgx_emit_transpose(ins, rows, swap, 4);
    struct mgx_ins *y =
        rows && from ? mgx_emit_before(ins, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", 1)),
                                       MGX_IN(rows, from))
                     : NULL;
    y = mgx_emit_transpose(ins, y, swap, 4);
    struct mgx_ins *holds = emit_where(ins, is_old, emit_below(ins, place, (double)room),
                                       emit_below(ins, fresh, (double)tokens));
    return emit_where(ins, emit_spread(ins, holds, 2, lens), y,
                      mgx_emit_splat(ins, &ins->shape, 0));
}

// --- cache_attention ---

// Every head of keys or values as often as queries share it.
static struct mgx_ins *repeat_heads(struct mgx_ins *ins, struct mgx_ins *x, int64_t heads)
{
    const int64_t *lens = x->shape.lens, group = heads / lens[1];
    if (group == 1)
        return x;
    x = mgx_emit_reshape(ins, x, (int64_t[]){lens[0], lens[1], 1, lens[2], lens[3]}, 5);
    const int64_t *one = x ? x->shape.lens : lens;
    x = mgx_emit_multibroadcast(ins, x, (int64_t[]){one[0], one[1], group, one[3], one[4]}, 5);
    return mgx_emit_reshape(ins, x, (int64_t[]){one[0], heads, one[3], one[4]}, 4);
}

// Which keys a token sees, {batch, heads, tokens, keys}.
static struct mgx_ins *emit_seen(struct mgx_ins *ins, const int64_t *lens)
{
    const struct mgx_cache_attention *a = ins->attr;
    const int64_t two[2] = {lens[0], lens[2]};
    struct mgx_ins *i = a->whole ? NULL : emit_places(ins, two, 2);
    struct mgx_ins *at = emit_before_new(ins, ins->in[3], a->whole ? 1 : lens[2], lens[2]);
    at = a->whole ? at : mgx_emit_binary(ins, &mgx_op_add, at, i);
    at = emit_spread(ins, at, 2, lens);
    struct mgx_ins *behind =
        mgx_emit_binary(ins, &mgx_op_sub, at, emit_places(ins, lens, 4)); // keys so far back
    struct mgx_ins *seen = emit_not_below(ins, behind, 0);
    if (a->window <= 0)
        return seen;
    return mgx_emit_binary(ins, &mgx_op_logical_and, seen,
                           emit_below(ins, behind, (double)a->window));
}

static struct mgx_ins *emit_scores(struct mgx_ins *ins, struct mgx_ins *k)
{
    const struct mgx_cache_attention *a = ins->attr;
    const int swap[4] = {0, 1, 3, 2};
    struct mgx_ins *x =
        mgx_emit_binary(ins, &mgx_op_dot, ins->in[0], mgx_emit_transpose(ins, k, swap, 4));
    if (a->cap <= 0)
        return mgx_emit_with(ins, &mgx_op_mul, x, a->scale);
    x = mgx_emit_unary(ins, &mgx_op_tanh, mgx_emit_with(ins, &mgx_op_mul, x, a->scale / a->cap));
    return mgx_emit_with(ins, &mgx_op_mul, x, a->cap);
}

// The softmax, where there is a sink with its score as one key more, which is dropped.
static struct mgx_ins *emit_powers(struct mgx_ins *ins, struct mgx_ins *x)
{
    const struct mgx_cache_attention *a = ins->attr;
    if (!x)
        return NULL;
    int64_t lens[4] = {x->shape.lens[0], x->shape.lens[1], x->shape.lens[2], 1};
    const int64_t keys = x->shape.lens[3];
    if (a->sink) {
        struct mgx_ins *sink =
            mgx_emit_reshape(ins, ins->in[ins->in_count - 1], (int64_t[]){1, lens[1], 1, 1}, 4);
        struct mgx_ins *const both[] = {x, mgx_emit_multibroadcast(ins, sink, lens, 4)};
        x = mgx_emit_concat(ins, both, 2, 3);
    }
    x = x ? mgx_emit_before(ins, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", 3)), MGX_IN(x)) : NULL;
    return a->sink ? mgx_emit_slice(ins, x, 3, 0, keys) : x;
}

// 0 where a bias hides everything from a token.
static struct mgx_ins *zero_hidden(struct mgx_ins *ins, struct mgx_ins *scores, struct mgx_ins *y)
{
    struct mgx_ins *high =
        scores ? mgx_emit_before(ins, &mgx_op_reduce_max,
                                 MGX_ATTRS(mgx_ints("axes", (int64_t[]){3}, 1)), MGX_IN(scores))
               : NULL;
    struct mgx_ins *sees =
        high
            ? mgx_emit_binary(ins, &mgx_op_less, mgx_emit_splat(ins, &high->shape, -INFINITY), high)
            : NULL;
    sees = mgx_emit_convert(ins, sees, MGX_BOOL);
    return emit_where(ins, mgx_emit_multibroadcast(ins, sees, ins->shape.lens, 4), y,
                      mgx_emit_splat(ins, &ins->shape, 0));
}

static struct mgx_ins *spell_attention(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_cache_attention *a = ins->attr;
    const int64_t heads = ins->shape.lens[1], keys = ins->in[1]->shape.lens[2];
    if (!mgx_shape_elements(&ins->shape) || !keys)
        return NULL;
    struct mgx_ins *k = repeat_heads(ins, ins->in[1], heads),
                   *v = repeat_heads(ins, ins->in[2], heads);
    struct mgx_ins *x = k ? emit_scores(ins, k) : NULL;
    if (!x)
        return NULL;
    if (a->bias) {
        struct mgx_ins *bias = mgx_emit_slice(ins, ins->in[4], 3, 0, keys);
        x = mgx_emit_binary(ins, &mgx_op_add, x,
                            mgx_emit_multibroadcast(ins, bias, x->shape.lens, 4));
    }
    struct mgx_ins *seen = x ? emit_seen(ins, x->shape.lens) : NULL;
    struct mgx_ins *hidden = x ? emit_where(ins, seen, mgx_emit_splat(ins, &x->shape, 0),
                                            mgx_emit_splat(ins, &x->shape, -INFINITY))
                               : NULL;
    x = mgx_emit_binary(ins, &mgx_op_add, x, hidden);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dot, emit_powers(ins, x), v);
    return a->bias && !a->sink ? zero_hidden(ins, x, y) : y;
}

// --- paged_attention ---

struct paged {
    struct mgx_ins *at;
    int64_t texts, tokens, blocks, block, pages, keys;
    int64_t entries;              // of the attention: the tokens, or the texts
    int64_t bias[4];              // {entries, 1, queries of each, keys}
    bool apart;                   // an entry is a token
    struct mgx_ins *text, *place; // {tokens}: whose each is, and where in it
};

// {n} as a column of, or a row for, {rows, columns}.
static struct mgx_ins *emit_across(struct mgx_ins *at, struct mgx_ins *x, bool column, int64_t rows,
                                   int64_t columns)
{
    if (column)
        x = mgx_emit_reshape(at, x, (int64_t[]){rows, 1}, 2);
    return mgx_emit_multibroadcast(at, x, (int64_t[]){rows, columns}, 2);
}

static void find_places(struct paged *p)
{
    struct mgx_ins *at = p->at, *sums = mgx_emit_convert(at, at->in[3], MGX_INT64),
                   *past = mgx_emit_convert(at, at->in[4], MGX_INT64);
    struct mgx_ins *t = emit_places(at, &p->tokens, 1);
    p->text = mgx_emit_with(at, &mgx_op_mul, t, 0);
    if (p->texts > 1) {
        const int64_t ends = p->texts - 1;
        struct mgx_ins *end = mgx_emit_slice(at, sums, 0, 1, p->texts);
        struct mgx_ins *before =
            mgx_emit_binary(at, &mgx_op_less, emit_across(at, t, true, p->tokens, ends),
                            emit_across(at, end, false, p->tokens, ends));
        before = mgx_emit_unary(at, &mgx_op_not, mgx_emit_convert(at, before, MGX_BOOL));
        before = mgx_emit_convert(at, before, MGX_INT64);
        struct mgx_ins *count =
            before ? mgx_emit_before(at, &mgx_op_reduce_sum,
                                     MGX_ATTRS(mgx_ints("axes", (int64_t[]){1}, 1)), MGX_IN(before))
                   : NULL;
        p->text = mgx_emit_reshape(at, count, &p->tokens, 1);
    }
    p->place = mgx_emit_binary(at, &mgx_op_sub, t, mgx_emit_gather(at, sums, p->text));
    p->place = mgx_emit_binary(at, &mgx_op_add, p->place, mgx_emit_gather(at, past, p->text));
}

// {tokens}: the last key that each sees, where it sees all of its text.
static struct mgx_ins *emit_last(const struct paged *p)
{
    struct mgx_ins *at = p->at, *sums = mgx_emit_convert(at, at->in[3], MGX_INT64),
                   *past = mgx_emit_convert(at, at->in[4], MGX_INT64);
    struct mgx_ins *count =
        mgx_emit_binary(at, &mgx_op_sub, mgx_emit_slice(at, sums, 0, 1, p->texts + 1),
                        mgx_emit_slice(at, sums, 0, 0, p->texts));
    struct mgx_ins *last =
        mgx_emit_with(at, &mgx_op_sub, mgx_emit_binary(at, &mgx_op_add, count, past), 1);
    return mgx_emit_gather(at, last, p->text);
}

// {tokens} spread over the bias.
static struct mgx_ins *emit_by_token(const struct paged *p, struct mgx_ins *x)
{
    return emit_spread(p->at, emit_across(p->at, x, p->apart, p->entries, p->bias[2]), 2, p->bias);
}

static struct mgx_ins *emit_and(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *y)
{
    return mgx_emit_binary(at, &mgx_op_logical_and, x, y);
}

// Blocks of each entry's text, {entries, pages}; *there {entries, keys}: whether there is one.
static struct mgx_ins *emit_blocks(const struct paged *p, struct mgx_ins **there)
{
    struct mgx_ins *at = p->at, *table = mgx_emit_convert(at, at->in[5], MGX_INT64);
    table = p->apart ? mgx_emit_gather(at, table, p->text) : table;
    struct mgx_ins *is =
        emit_and(at, emit_not_below(at, table, 0), emit_below(at, table, (double)p->blocks));
    is = mgx_emit_reshape(at, is, (int64_t[]){p->entries, p->pages, 1}, 3);
    is = mgx_emit_multibroadcast(at, is, (int64_t[]){p->entries, p->pages, p->block}, 3);
    *there = mgx_emit_reshape(at, is, (int64_t[]){p->entries, p->keys}, 2);
    return mgx_emit_with(at, &mgx_op_min, mgx_emit_with(at, &mgx_op_max, table, 0),
                         (double)(p->blocks - 1));
}

// Which keys each token sees, over the bias.
static struct mgx_ins *emit_seen_pages(const struct paged *p, struct mgx_ins *there)
{
    const struct mgx_paged_attention *a = p->at->attr;
    struct mgx_ins *at = p->at, *key = emit_places(at, p->bias, 4);
    struct mgx_ins *last = emit_by_token(p, a->whole ? emit_last(p) : p->place);
    struct mgx_ins *seen = emit_not_below(at, mgx_emit_binary(at, &mgx_op_sub, last, key), 0);
    if (a->window > 0) {
        struct mgx_ins *behind = mgx_emit_binary(at, &mgx_op_sub, emit_by_token(p, p->place), key);
        seen = emit_and(at, seen, emit_below(at, behind, (double)a->window));
    }
    seen = emit_and(at, seen, emit_spread(at, there, 3, p->bias));
    if (p->apart)
        return seen;
    struct mgx_ins *own = emit_across(at, emit_places(at, &p->texts, 1), true, p->texts, p->tokens);
    own = mgx_emit_binary(at, &mgx_op_equal, own,
                          emit_across(at, p->text, false, p->texts, p->tokens));
    own = mgx_emit_convert(at, own, MGX_BOOL);
    return emit_and(at, seen, emit_spread(at, own, 2, p->bias));
}

// Numbers in few bits times their scales (op/rule/kept.h), {entries, shared, keys, size}.
static struct mgx_ins *emit_widened(const struct paged *p, struct mgx_ins *x, struct mgx_ins *scale,
                                    int64_t kept)
{
    enum { HALF_BYTE = 8 };
    struct mgx_ins *at = p->at;
    const int64_t size = at->in[0]->shape.lens[3];
    if (kept == 4 && x) {
        x = mgx_emit_before(at, &mgx_op_unpack_nbits, MGX_ATTRS(mgx_int("bits", 4)), MGX_IN(x));
        x = x && x->shape.lens[3] > size ? mgx_emit_slice(at, x, 3, 0, size) : x;
    }
    x = mgx_emit_convert(at, x, MGX_FLOAT);
    x = kept == 4 ? mgx_emit_with(at, &mgx_op_sub, x, HALF_BYTE) : x;
    const bool each = scale->shape.rank == 2;
    const int64_t four[4] = {1, each ? scale->shape.lens[0] : 1, 1, each ? size : 1};
    if (!x)
        return NULL;
    scale = mgx_emit_multibroadcast(at, mgx_emit_reshape(at, scale, four, 4), x->shape.lens, 4);
    x = mgx_emit_binary(at, &mgx_op_mul, x, scale);
    return mgx_emit_convert(at, x, at->shape.type);
}

// Cache i, {blocks, block, shared, size}, as {entries, shared, keys, size}.
static struct mgx_ins *emit_kept(const struct paged *p, int i, struct mgx_ins *which)
{
    const int64_t kept = ((const struct mgx_paged_attention *)p->at->attr)->kept;
    struct mgx_ins *cache = p->at->in[1 + i];
    const int64_t *lens = cache->shape.lens, four[4] = {p->entries, p->keys, lens[2], lens[3]};
    struct mgx_ins *x = mgx_emit_reshape(p->at, mgx_emit_gather(p->at, cache, which), four, 4);
    x = mgx_emit_transpose(p->at, x, (const int[]){0, 2, 1, 3}, 4);
    return kept ? emit_widened(p, x, p->at->in[p->at->in_count - 2 + i], kept) : x;
}

static void read_pages(struct paged *p, struct mgx_ins *ins)
{
    const int64_t *cache = ins->in[1]->shape.lens, *table = ins->in[5]->shape.lens;
    *p = (struct paged){.at = ins,
                        .texts = table[0],
                        .tokens = ins->shape.lens[2],
                        .blocks = cache[0],
                        .block = cache[1],
                        .pages = table[1],
                        .keys = table[1] * cache[1]};
    p->apart = p->tokens <= 2 * p->texts;
    p->entries = p->apart ? p->tokens : p->texts;
    const int64_t bias[4] = {p->entries, 1, p->apart ? 1 : p->tokens, p->keys};
    memcpy(p->bias, bias, sizeof bias);
}

static struct mgx_ins *emit_paged(const struct paged *p, struct mgx_ins *q, struct mgx_ins *bias,
                                  struct mgx_ins *which)
{
    const struct mgx_paged_attention *a = p->at->attr;
    struct mgx_ins *at = p->at, *ends = mgx_literal_ints(at->owner, &p->keys, 1);
    struct mgx_ins *in[6] = {q,
                             emit_kept(p, 0, which),
                             emit_kept(p, 1, which),
                             mgx_emit_multibroadcast(at, ends, &p->entries, 1),
                             bias,
                             a->sink ? at->in[6] : NULL};
    const int count = a->sink ? 6 : 5;
    for (int i = 0; i < count; i++)
        if (!in[i])
            return NULL;
    return mgx_emit_before(at, &mgx_op_cache_attention,
                           MGX_ATTRS(mgx_real("scale", a->scale), mgx_real("cap", a->cap),
                                     mgx_int("bias", 1), mgx_int("sink", a->sink),
                                     mgx_int("whole", 1)),
                           (struct mgx_ins_list){in, count});
}

static struct mgx_ins *spell_pages(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r, (void)m;
    const int turn[4] = {2, 1, 0, 3};
    struct paged p;
    struct mgx_ins *there;
    read_pages(&p, ins);
    if (!mgx_shape_elements(&ins->shape) || !p.keys || !p.texts || !p.blocks)
        return NULL;
    find_places(&p);
    struct mgx_ins *which = emit_blocks(&p, &there), *seen = emit_seen_pages(&p, there);
    const struct mgx_shape like = mgx_shape_make(ins->shape.type, 4, p.bias);
    struct mgx_ins *bias =
        emit_where(ins, seen, mgx_emit_splat(ins, &like, 0), mgx_emit_splat(ins, &like, -INFINITY));
    const int64_t *q = ins->in[0]->shape.lens, all[4] = {p.entries, q[1], q[2], q[3]};
    struct mgx_ins *y = emit_paged(&p,
                                   p.apart ? mgx_emit_transpose(ins, ins->in[0], turn, 4)
                                           : mgx_emit_multibroadcast(ins, ins->in[0], all, 4),
                                   bias, which);
    if (p.apart || !y)
        return mgx_emit_transpose(ins, y, turn, 4);
    return mgx_emit_before(ins, &mgx_op_reduce_sum, MGX_ATTRS(mgx_ints("axes", (int64_t[]){0}, 1)),
                           MGX_IN(y)); // 0 but for a token's own text
}

// A result may have fixed lengths where a cache's own are open.
static bool is_static(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_shape_is_static(&ins->in[i]->shape))
            return false;
    return !mgx_region_has_kernel(r->call, ins, "cache");
}

static const struct mgx_rule rules[] = {
    {"rotary_embedding ~> x cos - y sin, y cos + x sin", MGX_IF_STATIC, .guard = is_static,
     .rewrite = spell_rotation},
    {"cache_append ~> past, now, 0 by place", MGX_IF_STATIC, .guard = is_static,
     .rewrite = spell_append},
    {"cache_attention ~> softmax(f(q k') + hidden) v", MGX_IF_STATIC, .guard = is_static,
     .rewrite = spell_attention},
};
static const struct mgx_rule page_rules[] = {
    {"paged_attention ~> cache_attention[whole, bias] of gathered blocks", MGX_IF_STATIC,
     .guard = is_static, .rewrite = spell_pages},
};

const struct mgx_pass mgx_pass_rewrite_cache = {
    .name = "rewrite_cache",
    .meaning = "operators of a decoder's caches become gathers, products and a softmax",
    .rules = {rules, MGX_COUNT(rules)},
    .by_size = true,
};

const struct mgx_pass mgx_pass_rewrite_pages = {
    .name = "rewrite_pages",
    .meaning = "attention to blocks that texts share becomes attention to what is gathered of them",
    .rules = {page_rules, MGX_COUNT(page_rules)},
    .by_size = true,
};
