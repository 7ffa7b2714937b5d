// SPDX-License-Identifier: MIT
// GroupQueryAttention of com.microsoft.
//
// It keeps a cache of keys and values in which every row of the batch has a length of its own:
// seqlens_k + 1 with the new tokens. It is rotary_embedding, cache_append and cache_attention, so
// that caches may have any length, known or not. A cache in few bits is appended to as it lies and
// made floats of whole (kv_cache.h). query_seqlens says how many of an entry's tokens are none:
// they lie behind the others, and what they leave in the cache and in the result is of no account.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"
#include "onnx/kv_cache.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    PLACES,
    BIAS,
    SINK,
    KEY_SCALE,
    VALUE_SCALE,
    QUERY_NORM,
    KEY_NORM,
    CHUNK
};

struct gqa {
    struct mgx_ins *q, *k, *v;    // (batch, heads, tokens, size)
    struct mgx_ins *ends, *total; // (batch): tokens of each entry with the new ones; the longest's
    struct mgx_kv_kept keys, values;
    int64_t heads, shared, size; // of queries, of keys and values
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

// --- normalisation ---

static enum mgx_status check_norm(struct mgx_node *n, const struct gqa *g)
{
    const struct mgx_ins *weight[2] = {mgx_node_in(n, QUERY_NORM), mgx_node_in(n, KEY_NORM)};
    if (!weight[0] != !weight[1])
        return mgx_node_invalid(n, "q_norm_weight and k_norm_weight come together");
    for (int i = 0; weight[0] && i < 2; i++)
        if (!mgx_build_is_static(weight[i]) || weight[i]->shape.rank != 1 ||
            weight[i]->shape.lens[0] != g->size)
            return mgx_node_invalid(n, "%s_norm_weight is no vector of %lld", i ? "k" : "q",
                                    (long long)g->size);
    return MGX_OK;
}

// Heads by the root of their mean square, where the model has weights for that; in float.
static struct mgx_ins *normalize(struct mgx_node *n, const struct gqa *g, struct mgx_ins *x, int i)
{
    struct mgx_ins *weight = mgx_node_in(n, i);
    const char *own = i == QUERY_NORM ? "q_norm_epsilon" : "k_norm_epsilon";
    const double epsilon = mgx_onnx_real(n, own, mgx_onnx_real(n, "qk_norm_epsilon", 1e-6));
    if (!weight || !x)
        return x;
    x = mgx_build_rms(n, mgx_build_convert(n, x, MGX_FLOAT), (int64_t[]){3}, 1, epsilon);
    x = mgx_build_mul(n, x, mgx_build_convert(n, weight, MGX_FLOAT));
    return mgx_build_convert(n, x, g->type);
}

// --- operands ---

// Heads [from, from + count) of x (batch, heads, tokens, size).
static struct mgx_ins *heads_of(struct mgx_node *n, struct mgx_ins *x, int64_t from, int64_t count)
{
    return x ? mgx_build_slice(n, x, 1, from, from + count) : NULL;
}

// One operand has all: queries and keys are turned together, but where they are normalised.
static enum mgx_status split_packed(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *all = mgx_build_split_heads(n, n->in[QUERY], g->heads + 2 * g->shared);
    const int64_t turned = g->heads + g->shared;
    const bool apart = mgx_node_in(n, QUERY_NORM) != NULL;
    struct mgx_ins *both = all && !apart ? rotate(n, g, heads_of(n, all, 0, turned)) : all;
    g->q = heads_of(n, both, 0, g->heads);
    g->k = heads_of(n, both, g->heads, g->shared);
    if (apart) {
        g->q = rotate(n, g, normalize(n, g, g->q, QUERY_NORM));
        g->k = rotate(n, g, normalize(n, g, g->k, KEY_NORM));
    }
    g->v = heads_of(n, all, turned, g->shared);
    return mgx_node_status(n);
}

static enum mgx_status split_operands(struct mgx_node *n, struct gqa *g)
{
    TRY(check_operand(n, g, KEY, g->shared));
    TRY(check_operand(n, g, VALUE, g->shared));
    struct mgx_ins *q = mgx_build_split_heads(n, n->in[QUERY], g->heads);
    struct mgx_ins *k = mgx_build_split_heads(n, n->in[KEY], g->shared);
    g->q = rotate(n, g, normalize(n, g, q, QUERY_NORM));
    g->k = rotate(n, g, normalize(n, g, k, KEY_NORM));
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
    TRY(check_norm(n, g));
    if (mgx_onnx_int(n, "do_rotary", 0))
        TRY(check_rotation(n, g));
    return packed ? split_packed(n, g) : split_operands(n, g);
}

// Exporters write {batch, 1} for {batch}.
static struct mgx_ins *as_vector(struct mgx_node *n, struct mgx_ins *x)
{
    return x && x->shape.rank != 1 ? mgx_build_reshape(n, x, (int64_t[]){-1}, 1) : x;
}

// How many tokens each entry has with the new ones: seqlens_k is one less. Those that are none
// count too, behind the others.
static enum mgx_status read_lengths(struct mgx_node *n, struct gqa *g)
{
    struct mgx_ins *lengths = as_vector(n, mgx_build_convert(n, n->in[LENGTHS], MGX_INT64));
    g->ends = mgx_build_with(n, &mgx_op_add, lengths, 1);
    if (mgx_node_in(n, CHUNK)) {
        struct mgx_ins *some = as_vector(n, mgx_build_convert(n, n->in[CHUNK], MGX_INT64));
        g->ends = mgx_build_add(n, g->ends, mgx_build_dim(n, n->in[QUERY], 1));
        g->ends = mgx_build_sub(n, g->ends, some);
    }
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

// What is added to the scores, as far as the cache goes: it has as many columns as there are
// tokens, or more, and a cache may have room behind them.
static struct mgx_ins *bias_of(struct mgx_node *n, const struct gqa *g)
{
    struct mgx_ins *bias = mgx_build_convert(n, mgx_node_in(n, BIAS), g->type);
    int64_t pads[8] = {0};
    if (!bias || mgx_build_rank(bias) != 4 || !mgx_build_fixed_dim(bias, 3) ||
        !mgx_build_fixed_dim(g->k, 2))
        return bias;
    pads[7] = mgx_max_i64(g->k->shape.lens[2] - bias->shape.lens[3], 0);
    return mgx_build_pad(n, bias, pads, 0);
}

static void read_scores(struct mgx_node *n, const struct gqa *g, struct mgx_kv_scores *s)
{
    const double asked = mgx_onnx_real(n, "scale", 0);
    const int64_t window = mgx_onnx_int(n, "local_window_size", -1);
    *s = (struct mgx_kv_scores){.q = g->q,
                                .k = g->k,
                                .ends = g->ends,
                                .bias = bias_of(n, g),
                                .sink = sink_of(n, g),
                                .scale = asked != 0 ? asked : 1 / sqrt((double)g->size),
                                .cap = fmax(mgx_onnx_real(n, "softcap", 0), 0),
                                .window = window > 0 ? window : 0,
                                .whole = mgx_onnx_int(n, "causal", 1) == 0};
}

static enum mgx_status attend(struct mgx_node *n, const struct gqa *g,
                              const struct mgx_kv_scores *s)
{
    struct mgx_ins *in[6] = {g->q, g->k, g->v, g->ends};
    int count = 4;
    if (s->bias)
        in[count++] = s->bias;
    if (s->sink)
        in[count++] = s->sink;
    struct mgx_ins *y =
        mgx_build_emit_n(n, &mgx_op_cache_attention,
                         MGX_ATTRS(mgx_real("scale", s->scale), mgx_real("cap", s->cap),
                                   mgx_int("window", s->window), mgx_int("bias", s->bias != NULL),
                                   mgx_int("sink", s->sink != NULL), mgx_int("whole", s->whole)),
                         in, count);
    n->out[0] = mgx_build_merge_heads(n, y);
    return mgx_node_status(n);
}

// The scores of the tokens that there are as a result of their own; *later: how many is not known.
static enum mgx_status show_scores(struct mgx_node *n, const struct mgx_kv_scores *s, bool *later)
{
    const int64_t mode = mgx_onnx_int(n, "qk_output", 0);
    int64_t total;
    if (n->out_count < 4 && !mode)
        return MGX_OK;
    if (mode != 1 && mode != 2)
        return mgx_node_invalid(n, "qk_output is %lld, not 1 or 2, with %d results",
                                (long long)mode, n->out_count);
    *later = !mgx_build_is_static(s->q) || !mgx_build_is_static(s->k) ||
             !mgx_build_constant_int(n, TOTAL, &total);
    if (*later || n->out_count < 4)
        return MGX_OK;
    struct mgx_ins *x = mgx_kv_scores(n, s, mode == 2);
    n->out[3] = x ? mgx_build_slice(n, x, 3, 0, mgx_min_i64(total, x->shape.lens[3])) : NULL;
    return mgx_node_status(n);
}

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    if (mgx_onnx_int(n, "sliding_window_cache", 0))
        return mgx_node_unsupported(n, "sliding_window_cache, which drops tokens from its cache");
    if (mgx_onnx_int(n, "causal", 1) == 0 && mgx_onnx_int(n, "local_window_size", -1) > 0)
        return mgx_node_invalid(n, "a local window of %lld without causal order",
                                (long long)mgx_onnx_int(n, "local_window_size", -1));
    return MGX_OK;
}

// The caches with the new tokens, which are results, and as floats.
static enum mgx_status extend_both(struct mgx_node *n, struct gqa *g)
{
    TRY(mgx_kv_read(n, "k_quant_type", KEY_SCALE, mgx_node_in(n, PAST_KEY), g->shared, g->size,
                    &g->keys));
    TRY(mgx_kv_read(n, "v_quant_type", VALUE_SCALE, mgx_node_in(n, PAST_VALUE), g->shared, g->size,
                    &g->values));
    struct mgx_ins *k = extend(n, g, PAST_KEY, mgx_kv_pack(n, &g->keys, g->k));
    struct mgx_ins *v = extend(n, g, PAST_VALUE, mgx_kv_pack(n, &g->values, g->v));
    if (n->out_count > 1)
        n->out[1] = k;
    if (n->out_count > 2)
        n->out[2] = v;
    g->k = mgx_kv_unpack(n, &g->keys, k, g->type);
    g->v = mgx_kv_unpack(n, &g->values, v, g->type);
    return mgx_node_status(n);
}

static enum mgx_status grouped(struct mgx_node *n)
{
    struct gqa g = {0};
    struct mgx_kv_scores s;
    bool later = false;
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
    TRY(extend_both(n, &g));
    read_scores(n, &g, &s);
    TRY(show_scores(n, &s, &later));
    return later ? mgx_onnx_defer(n) : attend(n, &g, &s);
}
const struct mgx_onnx_op mgx_onnx_ms_group_query_attention = {.name = "GroupQueryAttention",
                                                              .domain = "com.microsoft",
                                                              .import = grouped,
                                                              .result = "03?04?00"};
