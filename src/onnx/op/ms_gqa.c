// SPDX-License-Identifier: MIT
// RotaryEmbedding and GroupQueryAttention of com.microsoft.
//
// Grouped-query attention keeps a cache of keys and values in which every row of the batch has a
// length of its own: seqlens_k + 1 with the new tokens. It is rotary_embedding, cache_append and
// cache_attention, so that caches may have any length, known or not.
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
    if (at->rank == 2 && (!mgx_build_may_agree(n->in[1], 0, n->in[0], 0) ||
                          !mgx_build_may_agree(n->in[1], 1, n->in[0], rank - 2)))
        return mgx_build_misfit(n, "positions", n->in[1], "an input of", n->in[0]);
    const int64_t part = mgx_onnx_int(n, "rotary_embedding_dim", 0);
    if (part && part != 2 * cos->lens[1])
        return mgx_node_invalid(n, "rotary_embedding_dim is %lld, but the caches turn %lld entries",
                                (long long)part, 2 * (long long)cos->lens[1]);
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
    struct mgx_ins *q, *k, *v;    // (batch, heads, tokens, size)
    struct mgx_ins *ends, *total; // (batch): tokens of each entry with the new ones; the longest's
    int64_t heads, shared, size;  // of queries, of keys and values
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

// A key and value of another rank are placeholders: all three are in the query.
static struct mgx_ins *given(struct mgx_node *n, int i)
{
    struct mgx_ins *x = mgx_node_in(n, i);
    return x && x->shape.rank < 3 ? NULL : x;
}

// Before the run only widths must be known, of what is split into heads.
static bool is_known(struct mgx_node *n)
{
    const int split[] = {QUERY, KEY, VALUE}, tables[] = {COS, SIN};
    if (!mgx_build_ranked(n))
        return false;
    for (int i = 0; i < 3; i++)
        if (given(n, split[i]) && given(n, split[i])->shape.rank == 3 &&
            !mgx_build_fixed_dim(given(n, split[i]), 2))
            return false;
    for (int i = 0; i < 2; i++)
        if (mgx_node_in(n, tables[i]) && mgx_node_in(n, tables[i])->shape.rank == 2 &&
            !mgx_build_fixed_dim(mgx_node_in(n, tables[i]), 1))
            return false;
    return true;
}

static enum mgx_status check_operand(struct mgx_node *n, const struct gqa *g, int i, int64_t heads)
{
    const struct mgx_shape *s = &n->in[i]->shape;
    return s->rank == 3 && s->lens[2] == heads * g->size
               ? MGX_OK
               : mgx_node_invalid(n, "operand %d does not have %lld heads of %lld", i,
                                  (long long)heads, (long long)g->size);
}

// --- rotation ---

static enum mgx_status check_rotation(struct mgx_node *n, const struct gqa *g)
{
    struct mgx_ins *c = mgx_node_in(n, COS), *s = mgx_node_in(n, SIN);
    if (!c || !s || c->shape.rank != 2 || s->shape.rank != 2)
        return mgx_node_invalid(n, "do_rotary without caches of cosines and sines");
    const int64_t part = 2 * c->shape.lens[1];
    if (part < 2 || part > g->size)
        return mgx_node_invalid(n, "%lld of %lld entries cannot be rotated", (long long)part,
                                (long long)g->size);
    return MGX_OK;
}

// Heads turned by the positions of their tokens, where that is asked for.
static struct mgx_ins *rotate(struct mgx_node *n, const struct gqa *g, struct mgx_ins *x)
{
    if (!mgx_onnx_int(n, "do_rotary", 0))
        return x;
    struct mgx_ins *at = mgx_node_in(n, PLACES);
    return mgx_build_emit(
        n, &mgx_op_rotary_embedding,
        MGX_ATTRS(mgx_int("interleaved", mgx_onnx_int(n, "rotary_interleaved", 0) != 0)),
        MGX_IN(x, mgx_build_convert(n, n->in[COS], g->type),
               mgx_build_convert(n, n->in[SIN], g->type), at ? at : g->ends));
}

// --- operands ---

// Heads [from, from + count) of x (batch, heads, tokens, size).
static struct mgx_ins *heads_of(struct mgx_node *n, struct mgx_ins *x, int64_t from, int64_t count)
{
    return x ? mgx_build_slice(n, x, 1, from, from + count) : NULL;
}

// One operand has all: queries and keys are turned together.
static enum mgx_status split_packed(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *all = mgx_build_split_heads(n, n->in[QUERY], g->heads + 2 * g->shared);
    const int64_t turned = g->heads + g->shared;
    struct mgx_ins *both = all ? rotate(n, g, heads_of(n, all, 0, turned)) : NULL;
    g->q = heads_of(n, both, 0, g->heads);
    g->k = heads_of(n, both, g->heads, g->shared);
    g->v = heads_of(n, all, turned, g->shared);
    return mgx_node_status(n);
}

static enum mgx_status split_operands(struct mgx_node *n, struct gqa *g)
{
    TRY(check_operand(n, g, KEY, g->shared));
    TRY(check_operand(n, g, VALUE, g->shared));
    g->q = rotate(n, g, mgx_build_split_heads(n, n->in[QUERY], g->heads));
    g->k = rotate(n, g, mgx_build_split_heads(n, n->in[KEY], g->shared));
    g->v = mgx_build_split_heads(n, n->in[VALUE], g->shared);
    return mgx_node_status(n);
}

// Queries, keys and values as heads, from three operands or one that has all.
static enum mgx_status read_operands(struct mgx_node *n, struct gqa *g)
{
    const struct mgx_shape *q = &n->in[QUERY]->shape;
    const bool packed = !given(n, KEY);
    if (packed != !given(n, VALUE) || q->rank != 3)
        return mgx_node_invalid(n, "queries of rank %d, keys without values", q->rank);
    const int64_t heads = g->heads + (packed ? 2 * g->shared : 0);
    g->size = q->lens[2] / heads;
    if (g->size < 1 || q->lens[2] % heads != 0)
        return mgx_node_invalid(n, "%lld channels do not make %lld heads", (long long)q->lens[2],
                                (long long)heads);
    if (mgx_onnx_int(n, "do_rotary", 0))
        TRY(check_rotation(n, g));
    return packed ? split_packed(n, g) : split_operands(n, g);
}

// Exporters write {batch, 1} for {batch}.
static struct mgx_ins *as_vector(struct mgx_node *n, struct mgx_ins *x)
{
    return x && x->shape.rank != 1 ? mgx_build_reshape(n, x, (int64_t[]){-1}, 1) : x;
}

// How many tokens each entry has with the new ones: seqlens_k is one less.
static enum mgx_status read_lengths(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *lengths = as_vector(n, mgx_build_convert(n, n->in[LENGTHS], MGX_INT64));
    g->ends = mgx_build_with(n, &mgx_op_add, lengths, 1);
    g->total = n->in[TOTAL]->shape.rank > 1 ? as_vector(n, n->in[TOTAL]) : n->in[TOTAL];
    return mgx_node_status(n);
}

// --- the cache ---

static struct mgx_ins *extend(struct mgx_node *n, const struct gqa *g, int past,
                              struct mgx_ins *now)
{
    struct mgx_ins *in[4] = {now, g->ends, g->total, mgx_node_in(n, past)};
    return mgx_build_emit_n(n, &mgx_op_cache_append, NULL, in, in[3] ? 4 : 3);
}

// A score more for every head that takes its share: 0 where the softmax is smooth. NULL: none.
static struct mgx_ins *sink_of(struct mgx_node *n, const struct gqa *g)
{
    struct mgx_ins *sink = mgx_node_in(n, SINK);
    if (sink)
        return mgx_build_convert(n, sink, g->type);
    if (mgx_onnx_int(n, "smooth_softmax", 0) != 1)
        return NULL;
    return mgx_build_expand(n, mgx_build_scalar(n, g->type, 0), 1, &g->heads);
}

static enum mgx_status attend(struct mgx_node *n, const struct gqa *g)
{
    const double asked = mgx_onnx_real(n, "scale", 0);
    const int64_t window = mgx_onnx_int(n, "local_window_size", -1);
    struct mgx_ins *in[6] = {g->q, g->k, g->v, g->ends}, *bias = mgx_node_in(n, BIAS),
                   *sink = sink_of(n, g);
    int count = 4;
    if (bias)
        in[count++] = mgx_build_convert(n, bias, g->type);
    if (sink)
        in[count++] = sink;
    struct mgx_ins *y = mgx_build_emit_n(
        n, &mgx_op_cache_attention,
        MGX_ATTRS(mgx_real("scale", asked != 0 ? asked : 1 / sqrt((double)g->size)),
                  mgx_real("cap", fmax(mgx_onnx_real(n, "softcap", 0), 0)),
                  mgx_int("window", window > 0 ? window : 0), mgx_int("bias", bias != NULL),
                  mgx_int("sink", sink != NULL)),
        in, count);
    n->out[0] = mgx_build_merge_heads(n, y);
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
    struct gqa g = {0};
    if (n->in_count < 7 || !n->in[QUERY] || !n->in[LENGTHS] || !n->in[TOTAL])
        return mgx_node_invalid(n, "queries, seqlens_k and total_sequence_length are required");
    TRY(refuse_variants(n));
    if (!is_known(n))
        return mgx_onnx_defer(n);
    g.type = n->in[QUERY]->shape.type;
    if ((mgx_node_in(n, PAST_KEY) == NULL) != (mgx_node_in(n, PAST_VALUE) == NULL))
        return mgx_node_invalid(n, "past_key and past_value come together");
    TRY(read_heads(n, &g));
    TRY(read_lengths(n, &g));
    TRY(read_operands(n, &g));
    g.k = extend(n, &g, PAST_KEY, g.k);
    g.v = extend(n, &g, PAST_VALUE, g.v);
    TRY(mgx_node_status(n));
    if (n->out_count > 1)
        n->out[1] = g.k;
    if (n->out_count > 2)
        n->out[2] = g.v;
    return attend(n, &g);
}
const struct mgx_onnx_op mgx_onnx_ms_group_query_attention = {
    .name = "GroupQueryAttention", .domain = "com.microsoft", .import = grouped};
