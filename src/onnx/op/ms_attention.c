// SPDX-License-Identifier: MIT
// Attention, QAttention and MultiHeadAttention of com.microsoft:
//
//     Y = softmax(scale * Q K' + mask + bias) V
//
// on (batch, heads, tokens, size). Attention and QAttention project the input themselves, by one
// matrix for queries, keys and values. A mask adds mask_filter_value where it hides a key; causal
// order hides absolutely. Emitted as dot, mul, [add], softmax, dot, the form that fusing passes
// look for. Everything is checked against num_heads before it is split. Batch, tokens and the
// length of caches may be open, but for masks whose form they decide.
#include <float.h>
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"
#include "onnx/quantize.h"

struct heads {
    struct mgx_ins *q, *k, *v; // (batch, heads, tokens, size)
    struct mgx_ins *mask;      // which keys exist, in one of the forms of `shown`
    struct mgx_ins *bias;      // added to the scores
    struct mgx_ins *fresh;     // keys of this run
    struct mgx_ins *cache;     // NULL: there are no keys from earlier runs
    int axis;                  // of the cache's tokens
    int64_t past;              // how many of them are keys; -1: all
    int64_t count;             // num_heads
    enum mgx_type type;
};

// --- lengths ---

// Is every length known, but for the batch (axis 0) and the tokens?
static bool is_known(const struct mgx_ins *x, int tokens)
{
    for (int i = 1; x && i < mgx_build_rank(x); i++)
        if (i != tokens && !mgx_build_fixed_dim(x, i))
            return false;
    return true;
}

// Can it be told which form a mask has? One axis alone is as long as the batch, or it counts.
static bool is_clear(const struct mgx_node *n, const struct mgx_ins *mask, const struct mgx_ins *x)
{
    if (!mask || mgx_build_static(n) || mgx_build_rank(mask) == 2 || mgx_build_rank(mask) == 3)
        return true;
    if (mgx_build_rank(mask) != 1)
        return false;
    const struct mgx_dim given = mgx_shape_dim(&mask->shape, 0),
                         batch = mgx_shape_dim(&x->shape, 0);
    return (mgx_dim_is_fixed(&given) && mgx_dim_is_fixed(&batch)) || mgx_dim_same(&given, &batch);
}

static int64_t length(const struct mgx_ins *x, int axis)
{
    return x->shape.lens[axis];
}

// How many keys come from earlier runs, as a vector of one; NULL if none.
static struct mgx_ins *past_of(struct mgx_node *n, const struct heads *h)
{
    if (!h->cache || h->past == 0)
        return NULL;
    return h->past > 0 ? mgx_build_literal_ints(n, &h->past, 1)
                       : mgx_build_dim(n, h->cache, h->axis);
}

// --- masks ---

// Keys before the ends that `part` of the mask gives, one for every row of the batch.
static struct mgx_ins *keys_below(struct mgx_node *n, struct mgx_ins *keys, struct mgx_ins *part)
{
    part = part ? mgx_build_per_axis(n, mgx_build_convert(n, part, MGX_INT64), 0, 4) : NULL;
    return part ? mgx_build_less(n, keys, part) : NULL;
}

// One-dimensional masks give the end of each row's keys, with twice the batch their starts as well,
// with 3 * batch + 2 the offsets of packed tokens, which are of no use here.
static enum mgx_status shown_by_ends(struct mgx_node *n, const struct heads *h,
                                     struct mgx_ins **shown)
{
    const int64_t batch = length(h->q, 0), given = length(h->mask, 0);
    struct mgx_ins *keys = mgx_build_indices(n, h->k, 2);
    if (given != batch && given != 2 * batch && given != 3 * batch + 2)
        return mgx_node_invalid(n, "a mask of %lld for a batch of %lld", (long long)given,
                                (long long)batch);
    struct mgx_ins *ends = h->mask;
    if (given != batch)
        ends = mgx_build_slice(n, h->mask, 0, 0, batch);
    *shown = keys_below(n, keys, ends);
    if (given == 2 * batch && batch > 0)
        *shown = mgx_build_logical_and(
            n, *shown,
            mgx_build_not(n, keys_below(n, keys, mgx_build_slice(n, h->mask, 0, batch, given))));
    return mgx_node_status(n);
}

// A mask of all positions there may be, square: the rows of these tokens.
static enum mgx_status cut(struct mgx_node *n, const struct heads *h, struct mgx_ins **mask)
{
    const int64_t tokens = length(h->q, 2), keys = length(h->k, 2);
    const int64_t past = h->past >= 0 ? h->past : length(h->cache, h->axis);
    if (length(*mask, 2) < past + tokens || length(*mask, 3) < keys)
        return mgx_node_invalid(n, "a mask of %lld positions for %lld keys",
                                (long long)length(*mask, 3), (long long)keys);
    *mask = mgx_build_slice(n, *mask, 2, past, past + tokens);
    *mask = mgx_build_slice(n, *mask, 3, 0, keys);
    return mgx_node_status(n);
}

// The mask as bool, ready to broadcast against (batch, heads, tokens, keys).
static enum mgx_status shown(struct mgx_node *n, const struct heads *h, struct mgx_ins **out)
{
    struct mgx_ins *m = h->mask;
    const int rank = m->shape.rank;
    if (!mgx_type_is_integral(m->shape.type) && m->shape.type != MGX_BOOL)
        return mgx_node_invalid(n, "a mask of type %s, not of integers",
                                mgx_type_name(m->shape.type));
    if (rank == 1)
        return shown_by_ends(n, h, out);
    const struct mgx_dim rows = rank ? mgx_shape_dim(&m->shape, 0) : (struct mgx_dim){0};
    if (rank < 2 || rank > 4 ||
        (!mgx_build_may_agree(m, 0, h->q, 0) && (rows.min > 1 || rows.max < 1)))
        return mgx_node_invalid(n, "a mask of rank %d for a batch of %lld", rank,
                                (long long)length(h->q, 0));
    if (rank == 4)
        TRY(cut(n, h, &m));
    else if (!mgx_build_may_agree(m, rank - 1, h->k, 2))
        return mgx_node_invalid(n, "a mask of %lld keys for %lld", (long long)length(m, rank - 1),
                                (long long)length(h->k, 2));
    else
        m = mgx_build_unsqueeze(n, m, (int64_t[]){1, 2}, rank == 2 ? 2 : 1);
    *out = m ? mgx_build_greater(n, m, mgx_build_like(n, m, 0)) : NULL;
    return mgx_node_status(n);
}

static double lowest(enum mgx_type type)
{
    return type == MGX_HALF ? -65504 : type == MGX_DOUBLE ? -DBL_MAX : -FLT_MAX;
}

// The places of all keys. Their number is said by the lengths of inputs, which layers share.
static struct mgx_ins *key_places(struct mgx_node *n, const struct heads *h)
{
    if (!h->cache || mgx_build_fixed_dim(h->k, 2))
        return mgx_build_indices(n, h->k, 2);
    return mgx_build_indices_to(n, mgx_build_add(n, past_of(n, h), mgx_build_dim(n, h->fresh, 2)));
}

// (tokens, keys): 0 where a key is not later than the query, else the lowest number there is.
static struct mgx_ins *hide_later(struct mgx_node *n, const struct heads *h, struct mgx_ins *add)
{
    struct mgx_ins *i = mgx_build_indices(n, h->q, 2), *past = past_of(n, h);
    struct mgx_ins *keys = key_places(n, h);
    i = i ? mgx_build_per_axis(n, i, 0, 2) : NULL;
    i = past ? mgx_build_add(n, i, past) : i;
    return mgx_build_where(n, mgx_build_greater(n, keys, i),
                           mgx_build_scalar(n, h->type, lowest(h->type)),
                           add ? add : mgx_build_scalar(n, h->type, 0));
}

// One token, and no key behind it.
static bool is_last(const struct heads *h)
{
    const struct mgx_dim q = mgx_shape_dim(&h->q->shape, 2), k = mgx_shape_dim(&h->fresh->shape, 2);
    return q.min == 1 && q.max == 1 && k.min == 1 && k.max == 1;
}

// What is added to the scores; NULL if nothing.
static enum mgx_status summand(struct mgx_node *n, const struct heads *h, struct mgx_ins **add)
{
    *add = NULL;
    if (h->mask) {
        struct mgx_ins *seen = NULL;
        TRY(shown(n, h, &seen));
        const double hidden = mgx_onnx_real(n, "mask_filter_value", -10000);
        *add = mgx_build_where(n, seen, mgx_build_scalar(n, h->type, 0),
                               mgx_build_scalar(n, h->type, hidden));
    }
    if (mgx_onnx_int(n, "unidirectional", 0) && !is_last(h))
        *add = hide_later(n, h, *add);
    if (h->bias)
        *add = *add ? mgx_build_add(n, *add, h->bias) : h->bias;
    return mgx_node_status(n);
}

// --- the product ---

// Nothing is added to the scores but that no query sees what is behind it. Caches of known lengths
// are left to the passes that fuse products.
static bool is_cached(const struct mgx_node *n, const struct heads *h)
{
    const struct mgx_dim q = mgx_shape_dim(&h->q->shape, 2), k = mgx_shape_dim(&h->fresh->shape, 2);
    const bool causal = mgx_onnx_int(n, "unidirectional", 0) || (q.min == 1 && q.max == 1);
    return h->cache && h->past < 0 && causal && !h->mask && !h->bias && n->out_count <= 3 &&
           h->type == MGX_FLOAT && mgx_dim_same(&q, &k) &&
           !(mgx_build_is_static(h->q) && mgx_build_is_static(h->k));
}

// Result (batch, tokens, heads * size); *raw are the scores that softmax sees.
static enum mgx_status attend(struct mgx_node *n, const struct heads *h, struct mgx_ins **raw,
                              struct mgx_ins **y)
{
    const int64_t size = length(h->q, 3), given = length(h->k, 3);
    if (size != given || !mgx_build_may_agree(h->k, 2, h->v, 2))
        return mgx_node_invalid(n, "heads of %lld against heads of %lld, %lld keys for %lld values",
                                (long long)size, (long long)given, (long long)length(h->k, 2),
                                (long long)length(h->v, 2));
    if (!mgx_build_may_agree(h->q, 0, h->k, 0) || !mgx_build_may_agree(h->q, 0, h->v, 0))
        return mgx_node_invalid(n, "a batch of %lld queries, %lld keys and %lld values",
                                (long long)length(h->q, 0), (long long)length(h->k, 0),
                                (long long)length(h->v, 0));
    const double asked = mgx_onnx_real(n, "scale", 0);
    const double scale = asked != 0 ? asked : 1 / sqrt((double)size);
    struct mgx_ins *add = NULL;
    if (is_cached(n, h)) {
        const struct mgx_build_cached c = {.past = h->cache, .axis = h->axis, .scale = scale};
        *y = mgx_build_merge_heads(n, mgx_build_cache_attention(n, h->q, h->k, h->v, &c));
        return mgx_node_status(n);
    }
    TRY(summand(n, h, &add));
    struct mgx_ins *turned = mgx_build_transpose(n, h->k, (int64_t[]){0, 1, 3, 2}, 4);
    struct mgx_ins *x = mgx_build_matmul(n, &mgx_op_dot, h->q, turned);
    x = mgx_build_with(n, &mgx_op_mul, x, scale);
    if (add)
        x = mgx_build_add_mask(n, x, add, !h->mask && !h->bias);
    *raw = x;
    x = mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", 3)), MGX_IN(x));
    *y = mgx_build_merge_heads(n, mgx_build_matmul(n, &mgx_op_dot, x, h->v));
    return mgx_node_status(n);
}

static enum mgx_status read_count(struct mgx_node *n, struct heads *h)
{
    h->count = mgx_onnx_int(n, "num_heads", 0);
    if (h->count < 1 || h->count > INT32_MAX)
        return mgx_node_invalid(n, "num_heads is %lld", (long long)h->count);
    return MGX_OK;
}

// --- Attention, QAttention ---

// How the columns of the weights divide into queries, keys and values.
static enum mgx_status read_sizes(struct mgx_node *n, const struct heads *h, int64_t columns,
                                  int64_t *sizes)
{
    const struct mgx_ints given = mgx_onnx_ints(n, "qkv_hidden_sizes");
    int64_t total = 0;
    if (given.count != 0 && given.count != 3)
        return mgx_node_invalid(n, "%d qkv_hidden_sizes, not 3", given.count);
    for (int i = 0; i < 3; i++) {
        sizes[i] = given.count ? given.v[i] : columns / 3;
        if (sizes[i] < 1 || sizes[i] > columns || sizes[i] % h->count != 0)
            return mgx_node_invalid(n, "%lld columns do not make %lld heads", (long long)sizes[i],
                                    (long long)h->count);
        total += sizes[i];
    }
    if (total != columns || sizes[0] != sizes[1])
        return mgx_node_invalid(n, "hidden sizes %lld, %lld and %lld of %lld columns",
                                (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                                (long long)columns);
    return MGX_OK;
}

// Splits x W + b into h's queries, keys and values.
static enum mgx_status project(struct mgx_node *n, struct heads *h, struct mgx_ins *x,
                               struct mgx_ins *weights, struct mgx_ins *bias)
{
    int64_t sizes[3], at = 0;
    if (!x || !weights)
        return mgx_node_status(n);
    if (x->shape.rank != 3 || weights->shape.rank != 2)
        return mgx_node_invalid(n, "input of rank %d, weights of rank %d", x->shape.rank,
                                weights->shape.rank);
    TRY(read_sizes(n, h, weights->shape.lens[1], sizes));
    struct mgx_ins *all = mgx_build_matmul(n, &mgx_op_dot, x, weights), *part[3];
    all = bias ? mgx_build_add(n, all, bias) : all;
    for (int i = 0; i < 3; at += sizes[i++])
        part[i] = mgx_build_split_heads(n, mgx_build_slice(n, all, 2, at, at + sizes[i]), h->count);
    h->q = part[0];
    h->k = part[1];
    h->v = part[2];
    return mgx_node_status(n);
}

// Puts the cache {2, batch, heads, keys, size} before the new keys and values; the longer cache,
// which keys and values are views of then, is output 1.
static enum mgx_status join_cache(struct mgx_node *n, struct heads *h, struct mgx_ins *past)
{
    struct mgx_ins **now[2] = {&h->k, &h->v}, *both[2];
    if (past && (past->shape.rank != 5 || !mgx_build_fixed_dim(past, 0) || length(past, 0) != 2))
        return mgx_node_invalid(n, "past has rank %d, not 5", past->shape.rank);
    h->fresh = h->k;
    h->cache = past;
    h->axis = 3;
    h->past = past ? -1 : 0;
    if (!past && n->out_count < 2)
        return mgx_node_status(n);
    for (int i = 0; i < 2; i++)
        both[i] = mgx_build_unsqueeze(n, *now[i], (int64_t[]){0}, 1);
    struct mgx_ins *all = mgx_build_concat(n, 0, both, 2);
    if (past)
        all = mgx_build_concat(n, 3, (struct mgx_ins *const[]){past, all}, 2);
    for (int i = 0; past && i < 2; i++)
        *now[i] = mgx_build_squeeze(n, mgx_build_slice(n, all, 0, i, i + 1), (int64_t[]){0}, 1);
    if (n->out_count > 1)
        n->out[1] = all;
    return mgx_node_status(n);
}

// Projected input, weights, mask and cache: is all known that must be?
static bool can_build(const struct mgx_node *n, const struct mgx_ins *x,
                      const struct mgx_ins *weights, const struct mgx_ins *mask,
                      const struct mgx_ins *past)
{
    return mgx_build_ranked(n) && is_known(x, 1) && mgx_build_is_static(weights) &&
           is_clear(n, mask, x) && (!past || mgx_build_fixed_dim(past, 0));
}

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    if (mgx_onnx_int(n, "do_rotary", 0))
        return mgx_node_unsupported(n, "do_rotary");
    if (mgx_onnx_int(n, "past_present_share_buffer", 0))
        return mgx_node_unsupported(n, "past_present_share_buffer");
    return MGX_OK;
}

static enum mgx_status attention(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 7));
    TRY(refuse_variants(n));
    if (!can_build(n, n->in[0], n->in[1], mgx_node_in(n, 3), mgx_node_in(n, 4)))
        return mgx_onnx_defer(n);
    struct heads h = {
        .mask = mgx_node_in(n, 3), .bias = mgx_node_in(n, 5), .type = n->in[0]->shape.type};
    struct mgx_ins *raw = NULL;
    TRY(read_count(n, &h));
    TRY(project(n, &h, n->in[0], n->in[1], mgx_node_in(n, 2)));
    TRY(join_cache(n, &h, mgx_node_in(n, 4)));
    return attend(n, &h, &raw, &n->out[0]);
}
const struct mgx_onnx_op mgx_onnx_ms_attention = {
    .name = "Attention", .domain = "com.microsoft", .import = attention, .result = "0020"};

static enum mgx_status qattention(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 5, 9));
    TRY(refuse_variants(n));
    if (!can_build(n, n->in[0], n->in[1], mgx_node_in(n, 5), mgx_node_in(n, 8)))
        return mgx_onnx_defer(n);
    struct heads h = {.mask = mgx_node_in(n, 5), .type = n->in[2]->shape.type};
    struct mgx_ins *raw = NULL;
    TRY(read_count(n, &h));
    struct mgx_ins *x = mgx_quantize_undo(n, n->in[0], n->in[3], mgx_node_in(n, 6), -1);
    struct mgx_ins *weights = mgx_quantize_undo(n, n->in[1], n->in[4], mgx_node_in(n, 7), -1);
    TRY(project(n, &h, x, weights, n->in[2]));
    TRY(join_cache(n, &h, mgx_node_in(n, 8)));
    return attend(n, &h, &raw, &n->out[0]);
}
const struct mgx_onnx_op mgx_onnx_ms_qattention = {
    .name = "QAttention", .domain = "com.microsoft", .import = qattention, .result = "2"};

// --- MultiHeadAttention ---

enum { PAST_LENGTH = 8 };

// Member i of `of` that lie side by side in x {batch, tokens, heads, of, size}: {batch, tokens,
// heads * size}.
static enum mgx_status unpack(struct mgx_node *n, const struct heads *h, struct mgx_ins *x,
                              int64_t i, int64_t of, struct mgx_ins **y)
{
    const int64_t *lens = x->shape.lens;
    if (lens[2] != h->count || lens[3] != of || lens[4] < 1)
        return mgx_node_invalid(n, "%lld heads of %lld parts packed, not %lld of %lld",
                                (long long)lens[2], (long long)lens[3], (long long)h->count,
                                (long long)of);
    *y = mgx_build_slice(n, x, 3, i, i + 1);
    *y = mgx_build_reshape(n, *y, (int64_t[]){0, 0, lens[2] * lens[4]}, 3);
    return mgx_node_status(n);
}

// The operands as {batch, tokens, heads * size} each, or as heads already (rank 4).
static enum mgx_status find_operands(struct mgx_node *n, const struct heads *h, struct mgx_ins **v)
{
    const int rank = mgx_build_rank(n->in[0]);
    struct mgx_ins *key = mgx_node_in(n, 1), *value = mgx_node_in(n, 2);
    if (rank == 5) {
        if (key || value)
            return mgx_node_invalid(n, "packed queries with separate keys");
        for (int i = 0; i < 3; i++)
            TRY(unpack(n, h, n->in[0], i, 3, &v[i]));
        return MGX_OK;
    }
    v[0] = n->in[0];
    if (key && mgx_build_rank(key) == 5 && (!value || mgx_build_rank(value) == 1)) {
        for (int i = 0; i < 2; i++)
            TRY(unpack(n, h, key, i, 2, &v[i + 1]));
        return MGX_OK;
    }
    if (!key || !value)
        return mgx_node_invalid(n, "queries of rank %d without keys and values", rank);
    v[1] = key;
    v[2] = value;
    return MGX_OK;
}

// Behind packed keys and values the bias may have come one place forward, and the masks with it.
static int first_bias(const struct mgx_node *n)
{
    const struct mgx_ins *value = mgx_node_in(n, 2);
    return value && mgx_build_rank(value) == 1 ? 2 : 3;
}

// The bias as a vector.
static struct mgx_ins *read_bias(struct mgx_node *n)
{
    struct mgx_ins *bias = mgx_node_in(n, first_bias(n));
    return bias && bias->shape.rank > 1 ? mgx_build_reshape(n, bias, (int64_t[]){-1}, 1) : bias;
}

// Adds each operand's share of the bias and splits heads; what comes as heads has its bias.
static enum mgx_status split_operands(struct mgx_node *n, struct heads *h, struct mgx_ins **v)
{
    struct mgx_ins *bias = read_bias(n), **out[3] = {&h->q, &h->k, &h->v};
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int rank = mgx_build_rank(v[i]);
        if (rank == 4 && i > 0 && v[i]->shape.lens[1] == h->count) {
            *out[i] = v[i];
            at += v[i]->shape.lens[3] * h->count;
            continue;
        }
        if (rank != 3 || v[i]->shape.lens[2] < 1 || v[i]->shape.lens[2] % h->count != 0)
            return mgx_node_invalid(n, "operand %d of rank %d does not make %lld heads", i, rank,
                                    (long long)h->count);
        const int64_t size = v[i]->shape.lens[2];
        if (bias && (bias->shape.rank != 1 || at + size > bias->shape.lens[0]))
            return mgx_node_invalid(n, "the bias is too short for operand %d", i);
        struct mgx_ins *x =
            bias ? mgx_build_add(n, v[i], mgx_build_slice(n, bias, 0, at, at + size)) : v[i];
        *out[i] = mgx_build_split_heads(n, x, h->count);
        at += size;
    }
    if (bias && at != bias->shape.lens[0])
        return mgx_node_invalid(n, "the bias has %lld elements for %lld channels of all operands",
                                (long long)bias->shape.lens[0], (long long)at);
    return mgx_node_status(n);
}

// How many tokens the caches hold: all of their length, or what past_sequence_length says of caches
// with room for more.
static enum mgx_status read_past(struct mgx_node *n, struct heads *h)
{
    h->axis = 2;
    h->past = -1;
    if (!mgx_node_in(n, PAST_LENGTH))
        return MGX_OK;
    const int64_t room = length(h->cache, 2);
    if (!mgx_build_constant_int(n, PAST_LENGTH, &h->past))
        return mgx_node_invalid(n, "past_sequence_length is not one number");
    const int64_t tokens = h->k ? length(h->k, 2) : 0;
    if (h->past < 0 || h->past > room - tokens)
        return mgx_node_invalid(n, "%lld tokens behind %lld do not fit in a cache of %lld",
                                (long long)tokens, (long long)h->past, (long long)room);
    return MGX_OK;
}

// Puts the new tokens *now behind the h->past ones of a cache with room, which keeps its length.
static void put(struct mgx_node *n, const struct heads *h, struct mgx_ins *past,
                struct mgx_ins **now, struct mgx_ins **present)
{
    const int64_t room = length(past, 2), end = h->past + (*now ? length(*now, 2) : 0);
    struct mgx_ins *old = h->past < room ? mgx_build_slice(n, past, 2, 0, h->past) : past;
    *now = mgx_build_concat(n, 2, (struct mgx_ins *const[]){old, *now}, 2);
    *present = *now;
    if (end >= room)
        return;
    struct mgx_ins *rest = mgx_build_slice(n, past, 2, end, room);
    *present = mgx_build_concat(n, 2, (struct mgx_ins *const[]){*now, rest}, 2);
}

static enum mgx_status check_caches(struct mgx_node *n, struct mgx_ins *const *past)
{
    if (past[0]->shape.rank != 4 || past[1]->shape.rank != 4)
        return mgx_node_invalid(n, "past_key has rank %d, not 4", past[0]->shape.rank);
    if (!mgx_build_may_agree(past[0], 2, past[1], 2))
        return mgx_node_invalid(n, "past_key has %lld tokens, past_value %lld",
                                (long long)length(past[0], 2), (long long)length(past[1], 2));
    return MGX_OK;
}

// Puts the caches before the new keys and values; the longer caches are outputs 1 and 2.
static enum mgx_status extend(struct mgx_node *n, struct heads *h)
{
    struct mgx_ins *past[2] = {mgx_node_in(n, 6), mgx_node_in(n, 7)};
    struct mgx_ins **now[2] = {&h->k, &h->v}, *present[2] = {h->k, h->v};
    if ((past[0] == NULL) != (past[1] == NULL))
        return mgx_node_invalid(n, "past_key and past_value come together");
    h->fresh = h->k;
    h->cache = past[0];
    if (past[0]) {
        TRY(check_caches(n, past));
        TRY(read_past(n, h));
    }
    for (int i = 0; past[0] && i < 2; i++)
        if (h->past >= 0)
            put(n, h, past[i], now[i], &present[i]);
        else
            present[i] = *now[i] =
                mgx_build_concat(n, 2, (struct mgx_ins *const[]){past[i], *now[i]}, 2);
    for (int i = 0; i < 2 && i + 1 < n->out_count; i++)
        n->out[i + 1] = present[i];
    return mgx_node_status(n);
}

// What is added to the scores {batch, heads, tokens, keys} may be one of each; it makes no more.
static enum mgx_status check_bias(struct mgx_node *n, const struct heads *h)
{
    const struct mgx_ins *bias = h->bias, *of[4] = {h->q, h->q, h->q, h->k};
    static const int axes[4] = {0, 1, 2, 2};
    static const char *const names[4] = {"batch", "heads", "tokens", "keys"};
    if (bias && mgx_build_rank(bias) != 4)
        return mgx_node_invalid(n, "attention_bias has rank %d, not 4", mgx_build_rank(bias));
    for (int i = 0; bias && i < 4; i++) {
        const struct mgx_dim d = mgx_shape_dim(&bias->shape, i);
        if (d.min > 1 && !mgx_build_may_agree(bias, i, of[i], axes[i]))
            return mgx_node_invalid(n, "attention_bias has %lld %s for %lld", (long long)d.min,
                                    names[i], (long long)length(of[i], axes[i]));
    }
    return MGX_OK;
}

// Heads and their sizes, and what past_sequence_length means, must be known.
static bool can_split(const struct mgx_node *n)
{
    if (!mgx_build_ranked(n) || !is_clear(n, mgx_node_in(n, first_bias(n) + 1), n->in[0]))
        return false;
    for (int i = 0; i < 3; i++) {
        const struct mgx_ins *x = mgx_node_in(n, i);
        if (x && !is_known(x, mgx_build_rank(x) == 4 ? 2 : 1))
            return false;
    }
    const struct mgx_ins *bias = mgx_node_in(n, first_bias(n));
    return (!bias || mgx_build_is_static(bias)) &&
           (!mgx_node_in(n, PAST_LENGTH) || mgx_build_static(n));
}

static enum mgx_status multi_head(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 10));
    const struct mgx_ins *tokens = mgx_node_in(n, PAST_LENGTH);
    if (tokens && !mgx_type_is_integral(tokens->shape.type))
        return mgx_node_invalid(n, "past_sequence_length is of type %s, not of integers",
                                mgx_type_name(tokens->shape.type));
    if (mgx_node_in(n, 9))
        return mgx_node_unsupported(n, "cache_indirection, of a search by beams");
    int64_t past;
    if (!can_split(n) ||
        (mgx_node_in(n, PAST_LENGTH) && !mgx_build_constant_int(n, PAST_LENGTH, &past)))
        return mgx_onnx_defer(n);
    const int bias = first_bias(n);
    struct heads h = {.mask = mgx_node_in(n, bias + 1),
                      .bias = mgx_node_in(n, bias + 2),
                      .type = n->in[0]->shape.type};
    struct mgx_ins *v[3] = {NULL}, *raw = NULL;
    TRY(read_count(n, &h));
    TRY(find_operands(n, &h, v));
    TRY(split_operands(n, &h, v));
    TRY(extend(n, &h));
    TRY(check_bias(n, &h));
    TRY(attend(n, &h, &raw, &n->out[0]));
    if (n->out_count > 3)
        n->out[3] = raw;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_multi_head_attention = {
    .name = "MultiHeadAttention", .domain = "com.microsoft", .import = multi_head};
