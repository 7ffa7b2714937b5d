// SPDX-License-Identifier: MIT
// PagedAttention of com.microsoft: tokens of several texts side by side, whose keys and values lie
// in blocks that a table gives to each text.
//
//     token t is of the text s with sums[s] <= t < sums[s + 1], at place past[s] + t - sums[s]
//     its row of a cache is table[s][place / block] * block + place % block, or slot_mapping[t]
//
// New rows go to their blocks (paged_append), whose caches are results, and the tokens look at them
// there (paged_attention), in few bits too; floats of 8 bits are widened, as far as the table names
// them.
// All lengths must be known.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"
#include "onnx/kv_cache.h"

enum {
    QUERY,
    KEY,
    VALUE,
    KEY_CACHE,
    VALUE_CACHE,
    SUMS,
    PAST,
    TABLE,
    COS,
    SIN,
    SLOTS,
    SINK,
    QUERY_NORM,
    KEY_NORM,
    KEY_SCALE,
    VALUE_SCALE,
    INPUTS = VALUE_SCALE + 2
};

struct paged {
    int64_t tokens, heads, shared, size;
    int64_t texts, blocks, block, pages; // blocks of a cache, tokens of a block, blocks of a text
    enum mgx_type type;
    struct mgx_ins *q, *k, *v;    // {1, heads, tokens, size}
    struct mgx_ins *text, *place; // {tokens}: whose each is, and where in it
    struct mgx_kv_kept keys, values;
};

// --- what is given ---

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    static const char *const zero[] = {"rotary_offset", "v_head_size"};
    for (int i = 0; i < 2; i++)
        if (mgx_onnx_int(n, zero[i], 0))
            return mgx_node_unsupported(n, "%s %lld", zero[i],
                                        (long long)mgx_onnx_int(n, zero[i], 0));
    if (strcmp(mgx_onnx_text(n, "kv_cache_layout", "SEPARATE"), "SEPARATE") != 0)
        return mgx_node_unsupported(n, "kv_cache_layout %s",
                                    mgx_onnx_text(n, "kv_cache_layout", ""));
    for (int i = 0; i < INPUTS - 1; i++) {
        const bool needed = i == QUERY || (i >= KEY_CACHE && i <= TABLE);
        if (needed && !mgx_node_in(n, i))
            return mgx_node_invalid(n, "input %d is required", i);
    }
    return n->in_count <= INPUTS ? MGX_OK
                                 : mgx_node_invalid(n, "%d inputs, above %d", n->in_count, INPUTS);
}

static enum mgx_status check_ranks(struct mgx_node *n)
{
    static const int ranks[] = {2, 2, 2, 4, 4, 1, 1, 2, 2, 2, 1, 1, 1, 1};
    for (int i = 0; i < MGX_COUNT(ranks); i++)
        if (mgx_node_in(n, i) && n->in[i]->shape.rank != ranks[i])
            return mgx_node_invalid(n, "input %d has rank %d, not %d", i, n->in[i]->shape.rank,
                                    ranks[i]);
    if (n->in[KEY_CACHE]->shape.type == MGX_UINT8 || n->in[VALUE_CACHE]->shape.type == MGX_UINT8)
        return mgx_node_unsupported(n, "caches of 4 bits");
    return MGX_OK;
}

static enum mgx_status read_sizes(struct mgx_node *n, struct paged *p)
{
    const struct mgx_shape *q = &n->in[QUERY]->shape, *c = &n->in[KEY_CACHE]->shape;
    *p = (struct paged){.tokens = q->lens[0],
                        .heads = mgx_onnx_int(n, "num_heads", 0),
                        .shared = mgx_onnx_int(n, "kv_num_heads", 0),
                        .size = c->lens[3],
                        .texts = n->in[PAST]->shape.lens[0],
                        .blocks = c->lens[0],
                        .block = c->lens[1],
                        .pages = n->in[TABLE]->shape.lens[1],
                        .type = q->type};
    const int64_t heads = p->heads + (mgx_node_in(n, KEY) ? 0 : 2 * p->shared);
    if (p->heads < 1 || p->shared < 1 || p->heads > INT32_MAX || p->heads % p->shared != 0 ||
        p->shared != c->lens[2] || q->lens[1] != heads * p->size || p->size < 1)
        return mgx_node_invalid(n, "%lld query heads, %lld key heads, %lld channels of queries",
                                (long long)p->heads, (long long)p->shared, (long long)q->lens[1]);
    if (p->texts < 1 || n->in[SUMS]->shape.lens[0] != p->texts + 1 ||
        n->in[TABLE]->shape.lens[0] != p->texts || p->block < 1 || p->blocks < 1 || p->pages < 1)
        return mgx_node_invalid(n, "%lld texts, %lld sums of tokens, %lld rows of the table",
                                (long long)p->texts, (long long)n->in[SUMS]->shape.lens[0],
                                (long long)n->in[TABLE]->shape.lens[0]);
    if (!mgx_shape_same_lens(c, &n->in[VALUE_CACHE]->shape))
        return mgx_build_misfit(n, "value_cache", n->in[VALUE_CACHE], "key_cache",
                                n->in[KEY_CACHE]);
    return MGX_OK;
}

// --- tokens ---

// Text and place of each token; what is behind the last sum counts to the last text.
static void find_places(struct mgx_node *n, struct paged *p)
{
    struct mgx_ins *sums = mgx_build_convert(n, n->in[SUMS], MGX_INT64);
    struct mgx_ins *t = mgx_build_iota(n, MGX_INT64, p->tokens);
    struct mgx_ins *ends = mgx_build_slice(n, sums, 0, 1, p->texts + 1);
    struct mgx_ins *column = t ? mgx_build_per_axis(n, t, 0, 2) : NULL;
    struct mgx_ins *behind = mgx_build_not(n, mgx_build_less(n, column, ends));
    p->text = mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_convert(n, behind, MGX_INT64),
                               (int64_t[]){1}, 1, false);
    p->text = mgx_build_with(n, &mgx_op_min, p->text, (double)(p->texts - 1));
    struct mgx_ins *past = mgx_build_convert(n, n->in[PAST], MGX_INT64);
    p->place = mgx_build_sub(n, t, mgx_build_gather(n, sums, p->text, 0));
    p->place = mgx_build_add(n, p->place, mgx_build_gather(n, past, p->text, 0));
}

// Row of a cache for each place of texts, all {count}; below 0 where the table has none.
static struct mgx_ins *rows_of(struct mgx_node *n, const struct paged *p, struct mgx_ins *text,
                               struct mgx_ins *place)
{
    const int64_t all = p->texts * p->pages;
    struct mgx_ins *table = mgx_build_convert(n, n->in[TABLE], MGX_INT64);
    table = mgx_build_reshape(n, table, (int64_t[]){all}, 1);
    struct mgx_ins *page = mgx_build_with(n, &mgx_op_div, place, (double)p->block);
    struct mgx_ins *within =
        mgx_build_sub(n, place, mgx_build_with(n, &mgx_op_mul, page, (double)p->block));
    struct mgx_ins *at =
        mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, text, (double)p->pages), page);
    at = mgx_build_clamp(n, at, 0, (double)(all - 1));
    struct mgx_ins *block = mgx_build_gather(n, table, at, 0);
    struct mgx_ins *none = mgx_build_logical_or(
        n, mgx_build_less(n, block, mgx_build_like(n, block, 0)),
        mgx_build_greater(n, block, mgx_build_like(n, block, (double)(p->blocks - 1))));
    struct mgx_ins *row =
        mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, block, (double)p->block), within);
    return mgx_build_where(n, none, mgx_build_like(n, row, -1), row);
}

// --- queries, keys and values ---

static struct mgx_ins *prepare(struct mgx_node *n, const struct paged *p, struct mgx_ins *x,
                               int norm)
{
    const double epsilon = mgx_onnx_real(n, "qk_norm_epsilon", 1e-6);
    struct mgx_ins *weight = mgx_node_in(n, norm);
    if (weight && x) {
        x = mgx_build_rms(n, mgx_build_convert(n, x, MGX_FLOAT), (int64_t[]){3}, 1, epsilon);
        x = mgx_build_mul(n, x, mgx_build_convert(n, weight, MGX_FLOAT));
        x = mgx_build_convert(n, x, p->type);
    }
    if (!mgx_onnx_int(n, "do_rotary", 0))
        return x;
    struct mgx_ins *at = mgx_build_unsqueeze(n, p->place, (int64_t[]){0}, 1);
    return mgx_build_emit(
        n, &mgx_op_rotary_embedding,
        MGX_ATTRS(mgx_int("interleaved", mgx_onnx_int(n, "rotary_interleaved", 0) != 0)),
        MGX_IN(x, mgx_build_convert(n, n->in[COS], p->type),
               mgx_build_convert(n, n->in[SIN], p->type), at));
}

// {tokens, channels} as heads.
static struct mgx_ins *split(struct mgx_node *n, struct mgx_ins *x, int64_t heads)
{
    return mgx_build_split_heads(n, mgx_build_unsqueeze(n, x, (int64_t[]){0}, 1), heads);
}

static enum mgx_status read_operands(struct mgx_node *n, struct paged *p)
{
    const int64_t width = p->shared * p->size, all = p->heads + p->shared;
    if (mgx_onnx_int(n, "do_rotary", 0) &&
        (!mgx_node_in(n, COS) || !mgx_node_in(n, SIN) || n->in[COS]->shape.lens[1] < 1 ||
         2 * n->in[COS]->shape.lens[1] > p->size))
        return mgx_node_invalid(n, "do_rotary without fitting caches of cosines and sines");
    if (!mgx_node_in(n, QUERY_NORM) != !mgx_node_in(n, KEY_NORM))
        return mgx_node_invalid(n, "q_norm_weight and k_norm_weight come together");
    for (int i = KEY; i <= VALUE; i++)
        if (!mgx_node_in(n, i) != !mgx_node_in(n, KEY) ||
            (mgx_node_in(n, i) &&
             (n->in[i]->shape.lens[0] != p->tokens || n->in[i]->shape.lens[1] != width)))
            return mgx_node_invalid(n, "operand %d does not have %lld heads of %lld", i,
                                    (long long)p->shared, (long long)p->size);
    struct mgx_ins *x = split(n, n->in[QUERY], mgx_node_in(n, KEY) ? p->heads : all + p->shared);
    if (!mgx_node_in(n, KEY)) {
        p->q = x ? mgx_build_slice(n, x, 1, 0, p->heads) : NULL;
        p->k = x ? mgx_build_slice(n, x, 1, p->heads, all) : NULL;
        p->v = x ? mgx_build_slice(n, x, 1, all, all + p->shared) : NULL;
    } else {
        p->q = x;
        p->k = split(n, n->in[KEY], p->shared);
        p->v = split(n, n->in[VALUE], p->shared);
    }
    p->q = prepare(n, p, p->q, QUERY_NORM);
    p->k = prepare(n, p, p->k, KEY_NORM);
    return mgx_node_status(n);
}

// --- caches ---

// A cache with the new tokens in their rows.
static struct mgx_ins *store(struct mgx_node *n, struct mgx_ins *cache, struct mgx_ins *now,
                             struct mgx_ins *rows)
{
    return mgx_build_emit(n, &mgx_op_paged_append, NULL, MGX_IN(now, rows, cache));
}

// Bits of a number that both caches keep; 0: what they have are elements, of their own type.
static int64_t kept_bits(const struct paged *p)
{
    const bool both = p->keys.scale && p->values.scale && p->keys.type == p->values.type;
    return !both ? 0 : p->keys.type == MGX_INT8 ? 8 : p->keys.type == MGX_UINT8 ? 4 : 0;
}

// As attention reads them: one for all, or one for each place of a head.
static struct mgx_ins *scales_of(struct mgx_node *n, struct mgx_ins *scale)
{
    const int64_t *l = scale->shape.lens, one = 1;
    return mgx_shape_elements(&scale->shape) == 1
               ? mgx_build_reshape(n, scale, &one, 1)
               : mgx_build_reshape(n, scale, (int64_t[]){l[1], l[3]}, 2);
}

// The blocks that the table names as floats, one behind the other.
static struct mgx_ins *load(struct mgx_node *n, const struct paged *p,
                            const struct mgx_kv_kept *kept, struct mgx_ins *cache,
                            struct mgx_ins *which)
{
    const int64_t lens[4] = {p->texts * p->pages, p->block, p->shared, p->size};
    struct mgx_ins *x = mgx_build_gather(n, cache, which, 0);
    const int64_t bytes = x ? x->shape.lens[3] : 0; // two numbers of 4 bits are one
    const int64_t stored[4] = {lens[0], lens[1], lens[2], bytes};
    x = mgx_build_transpose(n, mgx_build_reshape(n, x, stored, 4), (int64_t[]){0, 2, 1, 3}, 4);
    x = mgx_kv_unpack(n, kept, x, p->type);
    return mgx_build_transpose(n, x, (int64_t[]){0, 2, 1, 3}, 4);
}

// Keys, values and the table that finds them: floats of 8 bits are gathered, and what one cache
// alone keeps in few bits.
static void find_pages(struct mgx_node *n, const struct paged *p, struct mgx_ins **k,
                       struct mgx_ins **v, struct mgx_ins **table)
{
    const int64_t lens[2] = {p->texts, p->pages}, all = lens[0] * lens[1];
    *table = n->in[TABLE];
    if ((!p->keys.scale && !p->values.scale) || kept_bits(p))
        return;
    struct mgx_ins *own = mgx_build_convert(n, *table, MGX_INT64);
    struct mgx_ins *none = mgx_build_logical_or(
        n, mgx_build_less(n, own, mgx_build_like(n, own, 0)),
        mgx_build_greater(n, own, mgx_build_like(n, own, (double)(p->blocks - 1))));
    struct mgx_ins *which = mgx_build_clamp(n, own, 0, (double)(p->blocks - 1));
    which = mgx_build_reshape(n, which, &all, 1);
    *k = load(n, p, &p->keys, *k, which);
    *v = load(n, p, &p->values, *v, which);
    struct mgx_ins *next = mgx_build_reshape(n, mgx_build_iota(n, MGX_INT64, all), lens, 2);
    next = mgx_build_where(n, none, mgx_build_like(n, own, -1), next);
    *table = next && n->in[TABLE] ? mgx_build_convert(n, next, n->in[TABLE]->shape.type) : NULL;
}

// --- attention ---

static struct mgx_ins *attend(struct mgx_node *n, const struct paged *p, struct mgx_ins *k,
                              struct mgx_ins *v)
{
    struct mgx_ins *sink = mgx_build_convert(n, mgx_node_in(n, SINK), p->type), *table;
    const double asked = mgx_onnx_real(n, "scale", 0);
    find_pages(n, p, &k, &v, &table);
    const int64_t kept = kept_bits(p);
    struct mgx_ins *in[9] = {p->q, k, v, n->in[SUMS], n->in[PAST], table, sink};
    int count = sink ? 7 : 6;
    if (kept) {
        in[count++] = scales_of(n, p->keys.scale);
        in[count++] = scales_of(n, p->values.scale);
    }
    struct mgx_ins *y = mgx_build_emit_n(
        n, &mgx_op_paged_attention,
        MGX_ATTRS(mgx_real("scale", asked != 0 ? asked : 1 / sqrt((double)p->size)),
                  mgx_real("cap", fmax(mgx_onnx_real(n, "softcap", 0), 0)),
                  mgx_int("window", mgx_max_i64(mgx_onnx_int(n, "local_window_size", -1), 0)),
                  mgx_int("kept", kept), mgx_int("sink", sink != NULL),
                  mgx_int("whole", !mgx_onnx_int(n, "is_causal", 1))),
        in, count);
    return mgx_build_reshape(n, mgx_build_merge_heads(n, y),
                             (int64_t[]){p->tokens, p->heads * p->size}, 2);
}

static enum mgx_status build(struct mgx_node *n, struct paged *p)
{
    struct mgx_ins *rows = mgx_node_in(n, SLOTS) ? mgx_build_convert(n, n->in[SLOTS], MGX_INT64)
                                                 : rows_of(n, p, p->text, p->place);
    struct mgx_ins *k = store(n, n->in[KEY_CACHE], mgx_kv_pack(n, &p->keys, p->k), rows);
    struct mgx_ins *v = store(n, n->in[VALUE_CACHE], mgx_kv_pack(n, &p->values, p->v), rows);
    if (n->out_count > 1)
        n->out[1] = k;
    if (n->out_count > 2)
        n->out[2] = v;
    n->out[0] = attend(n, p, k, v);
    return mgx_node_status(n);
}

static enum mgx_status import(struct mgx_node *n)
{
    struct paged p;
    TRY(refuse_variants(n));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(check_ranks(n));
    TRY(read_sizes(n, &p));
    TRY(mgx_kv_read(n, "k_quant_type", KEY_SCALE, n->in[KEY_CACHE], p.shared, p.size, &p.keys));
    TRY(mgx_kv_read(n, "v_quant_type", VALUE_SCALE, n->in[VALUE_CACHE], p.shared, p.size,
                    &p.values));
    find_places(n, &p);
    TRY(read_operands(n, &p));
    return build(n, &p);
}
const struct mgx_onnx_op mgx_onnx_ms_paged_attention = {
    .name = "PagedAttention", .domain = "com.microsoft", .import = import, .result = "034"};
