// SPDX-License-Identifier: MIT
// RotaryEmbedding and GroupQueryAttention of com.microsoft.
//
// Grouped-query attention keeps a cache of keys and values in which every row of the batch has a
// length of its own: seqlens_k + 1 with the new tokens. The longer cache is gathered from the old
// one and the new tokens laid behind each other, place by place; what no token has reached yet is
// zero. Several query heads share one head of keys. Causal order, the window and the length of a
// row are one condition on positions.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"

// Rows of a cache {positions, half} at {batch, tokens}, ready for mgx_build_rotate.
static struct mgx_ins *rows_at(struct mgx_node *n, struct mgx_ins *cache, struct mgx_ins *at)
{
    return mgx_build_unsqueeze(n, mgx_build_gather(n, cache, at, 0), (int64_t[]){1}, 1);
}

// --- RotaryEmbedding ---

// {batch, tokens}: given as such, or one number for the first token.
static struct mgx_ins *positions_of(struct mgx_node *n, int64_t tokens)
{
    assert(tokens >= 0);
    struct mgx_ins *at = n->in[1];
    if (at->shape.rank == 2)
        return at;
    struct mgx_ins *i = mgx_build_iota(n, at->shape.type, tokens);
    return mgx_build_unsqueeze(n, mgx_build_add(n, i, at), (int64_t[]){0}, 1);
}

static enum mgx_status check_rotary(struct mgx_node *n)
{
    const struct mgx_shape *at = &n->in[1]->shape, *cos = &n->in[2]->shape, *sin = &n->in[3]->shape;
    const int rank = n->in[0]->shape.rank;
    if ((rank != 3 && rank != 4) || cos->rank != 2 || sin->rank != 2)
        return mgx_node_invalid(n, "input of rank %d, caches of rank %d and %d", rank, cos->rank,
                                sin->rank);
    if (!mgx_shape_same_lens(cos, sin))
        return mgx_node_invalid(n, "caches of %lld and %lld positions, %lld and %lld wide",
                                (long long)cos->lens[0], (long long)sin->lens[0],
                                (long long)cos->lens[1], (long long)sin->lens[1]);
    if (at->rank > 2 || (at->rank == 1 && at->lens[0] != 1))
        return mgx_node_invalid(n, "positions of rank %d", at->rank);
    return MGX_OK;
}

// How many heads channels make, of which `part` entries are rotated.
static enum mgx_status count_heads(struct mgx_node *n, int64_t part, int64_t *heads)
{
    const struct mgx_shape *x = &n->in[0]->shape;
    const int64_t asked = mgx_onnx_int(n, "num_heads", 0), width = x->lens[x->rank - 1];
    if (part < 2 || (x->rank == 3 && asked == 0 && width % part != 0))
        return mgx_node_invalid(n, "%lld channels with a cache of %lld", (long long)width,
                                (long long)part / 2);
    *heads = asked ? asked : width / part;
    if (x->rank == 3 && (*heads < 1 || width % *heads != 0))
        return mgx_node_invalid(n, "%lld channels do not make %lld heads", (long long)width,
                                (long long)*heads);
    return MGX_OK;
}

static enum mgx_status rotary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 4, 4));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(check_rotary(n));
    struct mgx_ins *x = n->in[0];
    const int rank = x->shape.rank;
    const int64_t part = 2 * n->in[2]->shape.lens[1];
    int64_t heads = 0;
    TRY(count_heads(n, part, &heads));
    x = rank == 3 ? mgx_build_split_heads(n, x, heads) : x;
    if (!x)
        return mgx_node_status(n);
    if (part > x->shape.lens[3])
        return mgx_node_invalid(n, "%lld of %lld entries cannot be rotated", (long long)part,
                                (long long)x->shape.lens[3]);
    struct mgx_ins *at = positions_of(n, x->shape.lens[2]);
    x = mgx_build_rotate(n, x, rows_at(n, n->in[2], at), rows_at(n, n->in[3], at), part,
                         mgx_onnx_int(n, "interleaved", 0) != 0);
    n->out[0] = rank == 3 ? mgx_build_merge_heads(n, x) : x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_rotary_embedding = {
    .name = "RotaryEmbedding", .domain = "com.microsoft", .import = rotary};

// --- GroupQueryAttention ---

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, PLACES, BIAS, SINK };

struct gqa {
    struct mgx_ins *q, *k, *v;         // (batch, heads, tokens, size)
    struct mgx_ins *before;            // (batch, 1): tokens in the cache, int64
    struct mgx_ins *at;                // (batch, tokens): positions of the new ones
    int64_t heads, shared;             // of queries, of keys and values
    int64_t batch, tokens, room, keys; // room: length of the old cache; keys: of the new one
    enum mgx_type type;
};

static enum mgx_status read_heads(struct mgx_node *n, struct gqa *g)
{
    g->heads = mgx_onnx_int(n, "num_heads", 0);
    g->shared = mgx_onnx_int(n, "kv_num_heads", 0);
    if (g->heads < 1 || g->shared < 1 || g->heads > INT32_MAX || g->heads % g->shared != 0)
        return mgx_node_invalid(n, "%lld query heads do not share %lld key heads",
                                (long long)g->heads, (long long)g->shared);
    return MGX_OK;
}

// Queries, keys and values as heads, from three operands or one that has all.
static enum mgx_status read_operands(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *v[3] = {n->in[QUERY], mgx_node_in(n, KEY), mgx_node_in(n, VALUE)};
    const int64_t heads[3] = {g->heads, g->shared, g->shared};
    // A key and value of another rank are placeholders: all three are in the query.
    for (int i = 1; i < 3; i++)
        v[i] = v[i] && v[i]->shape.rank < 3 ? NULL : v[i];
    if ((v[1] == NULL) != (v[2] == NULL) || v[0]->shape.rank != 3)
        return mgx_node_invalid(n, "queries of rank %d, keys without values", v[0]->shape.rank);
    const int64_t all = g->heads + (v[1] ? 0 : 2 * g->shared), width = v[0]->shape.lens[2];
    const int64_t size = width / all;
    if (size < 1 || width % all != 0)
        return mgx_node_invalid(n, "%lld channels do not make %lld heads", (long long)width,
                                (long long)all);
    struct mgx_ins **out[3] = {&g->q, &g->k, &g->v}, *packed = v[1] ? NULL : v[0];
    for (int64_t i = 0, from = 0; i < 3; from += heads[i++] * size) {
        if (packed)
            v[i] = mgx_build_slice(n, packed, 2, from, from + heads[i] * size);
        if (!v[i])
            return mgx_node_status(n);
        const struct mgx_shape *s = &v[i]->shape;
        if (s->rank != 3 || s->lens[0] != v[0]->shape.lens[0] || s->lens[2] != heads[i] * size ||
            s->lens[1] != v[0]->shape.lens[1])
            return mgx_node_invalid(n, "operand %d does not have %lld heads of %lld", (int)i,
                                    (long long)heads[i], (long long)size);
        *out[i] = mgx_build_split_heads(n, v[i], heads[i]);
    }
    g->batch = v[0]->shape.lens[0];
    g->tokens = v[0]->shape.lens[1];
    return mgx_node_status(n);
}

// How many tokens each row has before these and after, and their positions.
static enum mgx_status read_lengths(struct mgx_node *n, struct gqa *g, int64_t total)
{
    struct mgx_ins *lengths = n->in[LENGTHS], *past = mgx_node_in(n, PAST_KEY);
    if (mgx_shape_elements(&lengths->shape) != g->batch)
        return mgx_node_invalid(n, "%lld lengths for a batch of %lld",
                                (long long)mgx_shape_elements(&lengths->shape),
                                (long long)g->batch);
    if (past && (past->shape.rank != 4 || past->shape.lens[0] != g->batch))
        return mgx_node_invalid(n, "past_key has rank %d", past->shape.rank);
    g->room = past ? past->shape.lens[2] : 0;
    g->keys = mgx_max_i64(total, g->room);
    if (total < g->tokens || g->keys > INT32_MAX)
        return mgx_node_invalid(n, "%lld tokens of %lld in total", (long long)g->tokens,
                                (long long)total);
    lengths = mgx_build_convert(n, lengths, MGX_INT64);
    g->before = mgx_build_reshape(n, lengths, (int64_t[]){g->batch, 1}, 2);
    g->before = total == g->tokens // the first run: all rows start at 0
                    ? mgx_build_with(n, &mgx_op_mul, g->before, 0)
                    : mgx_build_with(n, &mgx_op_add, g->before, 1 - (double)g->tokens);
    g->at = mgx_build_add(n, g->before, mgx_build_iota(n, MGX_INT64, g->tokens));
    return mgx_node_status(n);
}

static enum mgx_status rotate(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *c = mgx_node_in(n, COS), *s = mgx_node_in(n, SIN), *at = mgx_node_in(n, PLACES);
    if (!mgx_onnx_int(n, "do_rotary", 0))
        return MGX_OK;
    if (!c || !s || c->shape.rank != 2 || s->shape.rank != 2)
        return mgx_node_invalid(n, "do_rotary without caches of cosines and sines");
    const int64_t part = 2 * c->shape.lens[1];
    if (part < 2 || part > g->q->shape.lens[3])
        return mgx_node_invalid(n, "%lld of %lld entries cannot be rotated", (long long)part,
                                (long long)g->q->shape.lens[3]);
    const bool interleaved = mgx_onnx_int(n, "rotary_interleaved", 0) != 0;
    at = at ? at : mgx_build_with(n, &mgx_op_max, g->at, 0);
    c = rows_at(n, c, at);
    s = rows_at(n, s, at);
    g->q = mgx_build_rotate(n, g->q, c, s, part, interleaved);
    g->k = mgx_build_rotate(n, g->k, c, s, part, interleaved);
    return mgx_node_status(n);
}

// The new cache {batch, heads, keys, size} of the old one and the new tokens.
static struct mgx_ins *extend(struct mgx_node *n, const struct gqa *g, struct mgx_ins *past,
                              struct mgx_ins *now)
{
    const int64_t swap[4] = {0, 2, 1, 3};
    struct mgx_ins *both =
        past ? mgx_build_concat(n, 2, (struct mgx_ins *const[]){past, now}, 2) : now;
    struct mgx_ins *place = mgx_build_iota(n, MGX_INT64, g->keys);
    struct mgx_ins *fresh = mgx_build_sub(n, place, g->before); // place among the new tokens
    struct mgx_ins *old = fresh ? mgx_build_less(n, fresh, mgx_build_like(n, fresh, 0)) : NULL;
    struct mgx_ins *from =
        mgx_build_where(n, old, place, mgx_build_with(n, &mgx_op_add, fresh, (double)g->room));
    from = mgx_build_clamp(n, from, 0, (double)(g->room + g->tokens - 1));
    from = mgx_build_unsqueeze(n, from, (int64_t[]){2}, 1);
    struct mgx_ins *y = mgx_build_emit(n, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", 1)),
                                       MGX_IN(mgx_build_transpose(n, both, swap, 4), from));
    y = mgx_build_transpose(n, y, swap, 4);
    struct mgx_ins *beyond =
        mgx_build_not(n, mgx_build_less(n, fresh, mgx_build_like(n, fresh, (double)g->tokens)));
    beyond = mgx_build_unsqueeze(n, beyond, (int64_t[]){1, 3}, 2);
    return mgx_build_where(n, beyond, mgx_build_like(n, y, 0), y);
}

// 0 where a query may see a key, else the lowest number: {batch, 1, tokens, keys}.
static struct mgx_ins *hide(struct mgx_node *n, const struct gqa *g)
{
    const int64_t window = mgx_onnx_int(n, "local_window_size", -1);
    struct mgx_ins *at = mgx_build_unsqueeze(n, g->at, (int64_t[]){1, 3}, 2);
    struct mgx_ins *ahead = mgx_build_sub(n, mgx_build_iota(n, MGX_INT64, g->keys), at);
    struct mgx_ins *hidden = mgx_build_greater(n, ahead, mgx_build_like(n, ahead, 0));
    if (window > 0)
        hidden = mgx_build_logical_or(
            n, hidden, mgx_build_less(n, ahead, mgx_build_like(n, ahead, 1 - (double)window)));
    return mgx_build_where(n, hidden, mgx_build_scalar(n, g->type, -INFINITY),
                           mgx_build_scalar(n, g->type, 0));
}

// Softmax over the keys and, where there is a sink, one score more that takes its share and is
// dropped.
static struct mgx_ins *share(struct mgx_node *n, const struct gqa *g, struct mgx_ins *x)
{
    struct mgx_ins *sink = mgx_node_in(n, SINK);
    const bool any = sink || mgx_onnx_int(n, "smooth_softmax", 0) == 1;
    if (any) {
        const int64_t lens[4] = {g->batch, g->heads, g->tokens, 1};
        sink = sink ? mgx_build_per_axis(n, mgx_build_convert(n, sink, g->type), 0, 3)
                    : mgx_build_scalar(n, g->type, 0);
        sink = mgx_build_expand(n, sink, 4, lens);
        x = mgx_build_concat(n, 3, (struct mgx_ins *const[]){x, sink}, 2);
    }
    x = mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", 3)), MGX_IN(x));
    return any ? mgx_build_slice(n, x, 3, 0, g->keys) : x;
}

static enum mgx_status attend(struct mgx_node *n, const struct gqa *g)
{
    const double asked = mgx_onnx_real(n, "scale", 0), cap = mgx_onnx_real(n, "softcap", 0);
    struct mgx_ins *k = mgx_build_repeat_heads(n, g->k, g->heads / g->shared);
    struct mgx_ins *v = mgx_build_repeat_heads(n, g->v, g->heads / g->shared);
    struct mgx_ins *bias = mgx_node_in(n, BIAS);
    struct mgx_ins *x = mgx_build_matmul(n, &mgx_op_dot, g->q,
                                         mgx_build_transpose(n, k, (int64_t[]){0, 1, 3, 2}, 4));
    x = mgx_build_with(n, &mgx_op_mul, x,
                       asked != 0 ? asked : 1 / sqrt((double)g->q->shape.lens[3]));
    if (cap > 0)
        x = mgx_build_with(n, &mgx_op_mul,
                           mgx_build_tanh(n, mgx_build_with(n, &mgx_op_div, x, cap)), cap);
    if (bias) {
        if (bias->shape.rank == 4 && bias->shape.lens[3] > g->keys)
            bias = mgx_build_slice(n, bias, 3, 0, g->keys);
        x = mgx_build_add(n, x, bias);
    }
    x = share(n, g, mgx_build_add(n, x, hide(n, g)));
    n->out[0] = mgx_build_merge_heads(n, mgx_build_matmul(n, &mgx_op_dot, x, v));
    return mgx_node_status(n);
}

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    static const char *const quantized[2] = {"k_quant_type", "v_quant_type"};
    for (int i = 0; i < 2; i++)
        if (mgx_onnx_text(n, quantized[i], "NONE")[0] != 'N')
            return mgx_node_unsupported(n, "%s %s", quantized[i],
                                        mgx_onnx_text(n, quantized[i], "NONE"));
    if (n->out_count > 3 || mgx_onnx_int(n, "qk_output", 0))
        return mgx_node_unsupported(n, "the scores as an output");
    return MGX_OK;
}

static enum mgx_status grouped(struct mgx_node *n)
{
    int64_t total = 0;
    struct gqa g = {0};
    if (n->in_count < 7 || !n->in[QUERY] || !n->in[LENGTHS] || !n->in[TOTAL])
        return mgx_node_invalid(n, "queries, seqlens_k and total_sequence_length are required");
    TRY(refuse_variants(n));
    if (!mgx_build_static(n) || !mgx_build_constant_int(n, TOTAL, &total))
        return mgx_onnx_defer(n);
    g.type = n->in[QUERY]->shape.type;
    struct mgx_ins *key = mgx_node_in(n, PAST_KEY), *value = mgx_node_in(n, PAST_VALUE);
    if ((key == NULL) != (value == NULL))
        return mgx_node_invalid(n, "past_key and past_value come together");
    TRY(read_heads(n, &g));
    TRY(read_operands(n, &g));
    TRY(read_lengths(n, &g, total));
    TRY(rotate(n, &g));
    g.k = extend(n, &g, key, g.k);
    g.v = extend(n, &g, value, g.v);
    TRY(mgx_node_status(n));
    if (n->out_count > 1)
        n->out[1] = g.k;
    if (n->out_count > 2)
        n->out[2] = g.v;
    return attend(n, &g);
}
const struct mgx_onnx_op mgx_onnx_ms_group_query_attention = {
    .name = "GroupQueryAttention", .domain = "com.microsoft", .import = grouped};
