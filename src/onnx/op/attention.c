// SPDX-License-Identifier: MIT
// Attention (opset 23 on) and FlexAttention:
//
//     Y = softmax(softcap(scale * Q K') + bias) V
//
// on (batch, heads, tokens, size), three-dimensional operands being split into heads first. It is
// emitted as dot, mul, [tanh], [add], softmax, dot, the form that fusing passes look for. The bias
// is 0 where a query may see a key and -inf where not (causal order, window, boolean mask, padding)
// plus a float mask. A query that may see nothing gives zeros: its row of Y, NaN after the softmax,
// is replaced at the end, where it is smallest.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"

struct attention {
    struct mgx_ins *x;            // input Q
    struct mgx_ins *q, *k, *v;    // (batch, heads, tokens, size), q in other forms: view_groups
    struct mgx_ins *mask, *valid; // inputs attn_mask and nonpad_kv_seqlen
    struct mgx_ins *past, *fresh; // input past_key; the keys behind it
    enum mgx_type type;
    bool rows;   // q is (batch, shared, group, size)
    bool cached; // keys and values are of a cache that cache_attention reads
    bool sure;   // every query sees some key, beyond doubt
};

static int tokens_axis(const struct attention *a)
{
    return mgx_build_rank(a->x) == 4 ? 2 : 1;
}

static struct mgx_dim tokens(const struct attention *a)
{
    return mgx_shape_dim(&a->x->shape, tokens_axis(a));
}

// --- operands ---

static enum mgx_status check_heads(struct mgx_node *n, const char *name, const struct mgx_ins *x,
                                   int64_t heads)
{
    const int rank = mgx_build_rank(x);
    if (rank == 4)
        return MGX_OK;
    if (rank != 3 || heads < 1 || x->shape.lens[2] % heads != 0)
        return mgx_node_invalid(
            n, "an operand of rank %d, its last axis %lld, has no %lld heads (%s)", rank,
            rank == 3 ? (long long)x->shape.lens[2] : 0, (long long)heads, name);
    return MGX_OK;
}

static enum mgx_status split(struct mgx_node *n, const char *name, struct mgx_ins **x)
{
    const int64_t heads = mgx_onnx_int(n, name, 0);
    TRY(check_heads(n, name, *x, heads));
    if (mgx_build_rank(*x) == 3)
        *x = mgx_build_split_heads(n, *x, heads);
    return *x ? MGX_OK : mgx_program_status(n->module->program, n->diag);
}

// The last axis of a three-dimensional operand must be known to be split.
static bool can_split(const struct mgx_ins *x)
{
    const int rank = mgx_build_rank(x);
    return rank == 4 || (rank == 3 && mgx_build_fixed_dim(x, 2)) || (rank >= 0 && rank < 3);
}

// Nothing is added to the scores but that no query sees what is behind it. Caches of known lengths
// are left to the passes that fuse products.
static bool is_cached(const struct mgx_node *n, const struct attention *a)
{
    const struct mgx_dim q = tokens(a), k = mgx_shape_dim(&a->fresh->shape, 2);
    const bool causal = mgx_onnx_int(n, "is_causal", 0) != 0 || (q.min == 1 && q.max == 1);
    return a->past && causal && !a->mask && !a->valid && n->out_count <= 3 &&
           a->type == MGX_FLOAT && mgx_dim_same(&q, &k) &&
           !(mgx_build_is_static(a->q) && mgx_build_is_static(a->k)) &&
           mgx_onnx_int(n, "softmax_precision", 1) == 1;
}

// Is this axis of the mask, counted from the last one, 1?
static bool is_repeated(const struct mgx_ins *mask, int from_last)
{
    const int axis = mask ? mgx_build_rank(mask) - 1 - from_last : -1;
    return axis < 0 || (mgx_build_fixed_dim(mask, axis) && mask->shape.lens[axis] == 1);
}

// Queries see keys and values as they are, again and again: one token as (batch, shared, group,
// size), so that the heads of a group are rows of one product; several as (batch, shared, group,
// tokens, size), whose keys are repeated by a stride of 0. The mask tells no head from another.
static void view_groups(struct mgx_node *n, struct attention *a, int64_t shared, int64_t group)
{
    const struct mgx_dim t = tokens(a);
    const int64_t width = a->q->shape.lens[mgx_build_rank(a->q) - 1];
    const int64_t size = mgx_build_rank(a->q) == 4 ? width : width / (shared * group);
    a->rows = t.min == 1 && t.max == 1 && is_repeated(a->mask, 1);
    if (a->rows) {
        a->q = mgx_build_reshape(n, a->q, (int64_t[]){0, shared, group, size}, 4);
        return;
    }
    a->q = mgx_build_split_groups(n, a->q, shared, group);
    if (a->mask && mgx_build_rank(a->mask) == 4)
        a->mask = mgx_build_unsqueeze(n, a->mask, (int64_t[]){1}, 1);
}

// How many query heads share one of keys.
static enum mgx_status count_group(struct mgx_node *n, const struct attention *a, int64_t *group)
{
    const bool whole = mgx_build_rank(a->q) == 4;
    const int64_t heads = whole ? a->q->shape.lens[1] : mgx_onnx_int(n, "q_num_heads", 0);
    const int64_t shared = a->k->shape.lens[1];
    *group = shared < 1 ? 0 : heads / shared;
    if (shared < 1 || heads % shared != 0)
        return mgx_node_invalid(n, "%lld query heads do not share %lld key heads", (long long)heads,
                                (long long)shared);
    return MGX_OK;
}

// Key and value heads as often as the queries need them.
static enum mgx_status repeat_heads(struct mgx_node *n, struct attention *a)
{
    int64_t group;
    TRY(count_group(n, a, &group));
    TRY(split(n, "q_num_heads", &a->q));
    a->k = mgx_build_repeat_heads(n, a->k, group);
    a->v = mgx_build_repeat_heads(n, a->v, group);
    return mgx_node_status(n);
}

static enum mgx_status share_heads(struct mgx_node *n, struct attention *a, bool *later)
{
    assert(a->q && a->k && a->v);
    int64_t group;
    *later |= (mgx_build_rank(a->q) == 4 && !mgx_build_fixed_dim(a->q, 1)) ||
              !mgx_build_fixed_dim(a->k, 1) || !mgx_build_fixed_dim(a->v, 1);
    if (*later)
        return MGX_OK;
    TRY(count_group(n, a, &group));
    a->cached = is_cached(n, a);
    if (a->cached)
        return split(n, "q_num_heads", &a->q);
    if (group < 2 || n->out_count > 3 || !is_repeated(a->mask, 2))
        return repeat_heads(n, a);
    view_groups(n, a, a->k->shape.lens[1], group);
    return mgx_node_status(n);
}

// The product of one row for every query with keys or values (batch, heads, ...).
static struct mgx_ins *product(struct mgx_node *n, const struct attention *a, struct mgx_ins *rows,
                               struct mgx_ins *x)
{
    if (a->q && mgx_build_rank(a->q) == 5)
        x = mgx_build_for_groups(n, x, a->q);
    return mgx_build_matmul(n, &mgx_op_dot, rows, x);
}

// New keys or values after those of the cache.
static struct mgx_ins *extend(struct mgx_node *n, struct mgx_ins *past, struct mgx_ins *now)
{
    return past ? mgx_build_concat(n, 2, (struct mgx_ins *const[]){past, now}, 2) : now;
}

// --- masks ---

// (tokens, 1): the position of each query among the keys, (batch, 1.., tokens, 1) with
// nonpad_kv_seqlen.
static struct mgx_ins *query_positions(struct mgx_node *n, const struct attention *a)
{
    struct mgx_ins *i = mgx_build_indices(n, a->x, tokens_axis(a));
    i = i ? mgx_build_per_axis(n, i, 0, 2) : NULL;
    if (a->past)
        return mgx_build_add(n, i, mgx_build_dim(n, a->past, 2));
    if (!a->valid)
        return i;
    struct mgx_ins *first = mgx_build_sub(n, a->valid, mgx_build_dim(n, a->x, tokens_axis(a)));
    return mgx_build_add(n, i, mgx_build_per_axis(n, first, 0, mgx_build_rank(a->q)));
}

// The places of all keys. Their number is said by the lengths of inputs, which layers share.
static struct mgx_ins *key_places(struct mgx_node *n, const struct attention *a)
{
    if (!a->past || mgx_build_fixed_dim(a->k, 2))
        return mgx_build_indices(n, a->k, 2);
    return mgx_build_indices_to(
        n, mgx_build_add(n, mgx_build_dim(n, a->past, 2), mgx_build_dim(n, a->fresh, 2)));
}

static struct mgx_ins *both(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b)
{
    return a && b ? mgx_build_logical_and(n, a, b) : a ? a : b;
}

// Do queries end where the keys do, at the latest? Then a window never lies beyond them.
static bool ends_within(const struct attention *a)
{
    const struct mgx_dim q = tokens(a), k = mgx_shape_dim(&a->fresh->shape, 2);
    return mgx_dim_same(&q, &k) || q.max <= k.min;
}

// One token, and no key behind it.
static bool is_last(const struct attention *a)
{
    const struct mgx_dim q = tokens(a), k = mgx_shape_dim(&a->fresh->shape, 2);
    return !a->valid && q.min == 1 && q.max == 1 && k.min == 1 && k.max == 1;
}

// Which keys a query may see by order, window and padding; NULL if all.
static struct mgx_ins *visible(struct mgx_node *n, struct attention *a)
{
    const bool last = is_last(a), causal = !last && mgx_onnx_int(n, "is_causal", 0) != 0;
    const int64_t left = mgx_onnx_int(n, "left_window_size", -1);
    const int64_t right = last ? -1 : mgx_onnx_int(n, "right_window_size", -1);
    a->sure = !a->valid && (left < 0 || ends_within(a));
    if (!causal && left < 0 && right < 0 && !a->valid)
        return NULL;
    struct mgx_ins *keys = key_places(n, a), *seen = NULL;
    if (causal || left >= 0 || right >= 0) {
        struct mgx_ins *distance = mgx_build_sub(n, query_positions(n, a), keys);
        struct mgx_ins *least = mgx_build_like(n, distance, causal ? 0 : -(double)right);
        if (causal || right >= 0)
            seen = mgx_build_not(n, mgx_build_less(n, distance, least));
        struct mgx_ins *most = mgx_build_like(n, distance, (double)left);
        if (left >= 0)
            seen = both(n, seen, mgx_build_not(n, mgx_build_greater(n, distance, most)));
    }
    if (a->valid)
        seen =
            both(n, seen,
                 mgx_build_less(n, keys, mgx_build_per_axis(n, a->valid, 0, mgx_build_rank(a->q))));
    return seen;
}

// The mask as far as the keys go: what it lacks at the end (from opset 24 on it may) is not seen.
static struct mgx_ins *mask_of_keys(struct mgx_node *n, const struct attention *a)
{
    assert(a->mask && a->k);
    const int rank = mgx_build_rank(a->mask);
    const double unseen = a->mask->shape.type == MGX_BOOL ? 0 : -INFINITY;
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    if (rank < 1 || n->opset < 24)
        return a->mask;
    if (mgx_build_fixed_dim(a->mask, rank - 1) && mgx_build_fixed_dim(a->k, 2)) {
        pads[2 * rank - 1] = mgx_max_i64(a->k->shape.lens[2] - a->mask->shape.lens[rank - 1], 0);
        return mgx_build_pad(n, a->mask, pads, unseen);
    }
    struct mgx_ins *parts[2] = {
        mgx_build_literal_ints(n, pads, 2 * rank - 1),
        mgx_build_sub(n, mgx_build_dim(n, a->k, 2), mgx_build_dim(n, a->mask, rank - 1))};
    return mgx_build_emit(n, &mgx_op_pad, MGX_ATTRS(mgx_real("value", unseen)),
                          MGX_IN(a->mask, mgx_build_concat(n, 0, parts, 2)));
}

// NULL if there is nothing to add.
static struct mgx_ins *bias(struct mgx_node *n, struct attention *a)
{
    struct mgx_ins *seen = visible(n, a);
    struct mgx_ins *mask = a->mask ? mask_of_keys(n, a) : NULL;
    if (mask) {
        a->sure = false;
        if (mask->shape.type == MGX_BOOL) {
            seen = both(n, seen, mask);
            mask = NULL;
        }
    }
    if (mask)
        mask = mgx_build_convert(n, mask, a->type);
    if (!seen)
        return mask;
    struct mgx_ins *hidden = mgx_build_where(n, seen, mgx_build_scalar(n, a->type, 0),
                                             mgx_build_scalar(n, a->type, -INFINITY));
    return mask ? mgx_build_add(n, mask, hidden) : hidden;
}

// x with 0 in the rows whose bias hides everything.
static struct mgx_ins *zero_hidden_rows(struct mgx_node *n, struct mgx_ins *add, struct mgx_ins *x)
{
    assert(!x || x->shape.rank == 4 || x->shape.rank == 5);
    if (!add || !x)
        return NULL;
    struct mgx_ins *best =
        mgx_build_reduce(n, &mgx_op_reduce_max, add, (int64_t[]){add->shape.rank - 1}, 1, true);
    struct mgx_ins *hidden = mgx_build_equal(n, best, mgx_build_like(n, add, -INFINITY));
    struct mgx_ins *zero = mgx_build_like(n, x, 0);
    if (mgx_build_is_static(x))
        return mgx_build_where(n, hidden, zero, x);
    // Repeated to fit x, never it to fit them: the result has x's lengths.
    hidden = mgx_build_emit(n, &mgx_op_multibroadcast, NULL, MGX_IN(hidden, x));
    zero = mgx_build_emit(n, &mgx_op_multibroadcast, NULL, MGX_IN(zero, x));
    return mgx_build_emit(n, &mgx_op_where, NULL, MGX_IN(hidden, zero, x));
}

// --- scores ---

static double scale_of(struct mgx_node *n, const struct attention *a)
{
    const double given = mgx_onnx_real(n, "scale", 0);
    return mgx_onnx_has(n, "scale") ? given
                                    : 1 / sqrt((double)a->q->shape.lens[a->q->shape.rank - 1]);
}

// scale * Q K'. In half precision both factors take their share first, lest the product overflow.
static struct mgx_ins *scores(struct mgx_node *n, const struct attention *a)
{
    const int64_t swap[4] = {0, 1, 3, 2};
    const double scale = scale_of(n, a);
    struct mgx_ins *turned = mgx_build_transpose(n, a->k, swap, 4);
    if (a->type != MGX_HALF || scale < 0)
        return mgx_build_with(n, &mgx_op_mul, product(n, a, a->q, turned), scale);
    return product(n, a, mgx_build_with(n, &mgx_op_mul, a->q, sqrt(scale)),
                   mgx_build_with(n, &mgx_op_mul, turned, sqrt(scale)));
}

static enum mgx_status attend_cached(struct mgx_node *n, const struct attention *a)
{
    const int64_t left = mgx_onnx_int(n, "left_window_size", -1);
    const struct mgx_build_cached c = {.past = a->past,
                                       .axis = 2,
                                       .scale = scale_of(n, a),
                                       .cap = fmax(mgx_onnx_real(n, "softcap", 0), 0),
                                       .window = left < 0 ? 0 : left + 1};
    n->out[0] = mgx_build_cache_attention(n, a->q, a->k, a->v, &c);
    return mgx_node_status(n);
}

static struct mgx_ins *softmax(struct mgx_node *n, struct mgx_ins *x)
{
    const int64_t last = x ? x->shape.rank - 1 : 0;
    return mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", last)), MGX_IN(x));
}

static enum mgx_status attend(struct mgx_node *n, struct attention *a)
{
    enum mgx_type precise = a->type;
    if (mgx_onnx_has(n, "softmax_precision"))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "softmax_precision", 1), &precise));
    const double cap = mgx_onnx_real(n, "softcap", 0);
    const int64_t mode = mgx_onnx_int(n, "qk_matmul_output_mode", 0);
    struct mgx_ins *raw = scores(n, a), *capped = raw;
    if (cap > 0)
        capped = mgx_build_with(n, &mgx_op_mul,
                                mgx_build_tanh(n, mgx_build_with(n, &mgx_op_div, raw, cap)), cap);
    struct mgx_ins *add = bias(n, a);
    const bool table = !a->mask && !a->valid && !a->rows;
    struct mgx_ins *biased = add ? mgx_build_add_mask(n, capped, add, table) : capped;
    struct mgx_ins *share =
        mgx_build_convert(n, softmax(n, mgx_build_convert(n, biased, precise)), a->type);
    struct mgx_ins *y = product(n, a, share, a->v);
    const bool guard = add && !a->sure;
    if (guard)
        y = zero_hidden_rows(n, add, y);
    if (n->out_count > 3)
        n->out[3] = mode == 1   ? capped
                    : mode == 2 ? biased
                    : mode != 3 ? raw
                    : guard     ? zero_hidden_rows(n, add, share)
                                : share;
    n->out[0] = y;
    return MGX_OK;
}

static enum mgx_status read(struct mgx_node *n, struct attention *a, bool *later)
{
    TRY(mgx_node_need(n, 3, 7));
    *later = !mgx_build_ranked(n);
    for (int i = 0; i < 3; i++)
        *later |= !can_split(n->in[i]);
    if (*later)
        return MGX_OK;
    *a = (struct attention){.x = n->in[0],
                            .q = n->in[0],
                            .k = n->in[1],
                            .v = n->in[2],
                            .mask = mgx_node_in(n, 3),
                            .valid = mgx_node_in(n, 6),
                            .past = mgx_node_in(n, 4),
                            .type = n->in[0]->shape.type};
    TRY(check_heads(n, "q_num_heads", a->q, mgx_onnx_int(n, "q_num_heads", 0)));
    TRY(split(n, "kv_num_heads", &a->k));
    TRY(split(n, "kv_num_heads", &a->v));
    if ((mgx_node_in(n, 4) == NULL) != (mgx_node_in(n, 5) == NULL))
        return mgx_node_invalid(n, "past_key and past_value come together");
    a->fresh = a->k;
    a->k = extend(n, a->past, a->k);
    a->v = extend(n, mgx_node_in(n, 5), a->v);
    if (!a->k || !a->v)
        return mgx_program_status(n->module->program, n->diag);
    if (n->out_count > 1)
        n->out[1] = a->k;
    if (n->out_count > 2)
        n->out[2] = a->v;
    *later |= !mgx_build_fixed_dim(a->q, mgx_build_rank(a->q) - 1);
    return *later ? MGX_OK : share_heads(n, a, later);
}

// The result as Q came.
static struct mgx_ins *merge(struct mgx_node *n, const struct attention *a, struct mgx_ins *y)
{
    const bool whole = mgx_build_rank(a->x) == 4;
    if (!y || (whole && !a->rows))
        return y && y->shape.rank == 5 ? mgx_build_merge_groups(n, y) : y;
    if (!a->rows)
        return mgx_build_merge_heads(n, y);
    const int64_t heads = y->shape.lens[1] * y->shape.lens[2];
    const int64_t dims[4] = {0, whole ? heads : 1, whole ? 1 : -1, -1};
    return mgx_build_reshape(n, y, dims, whole ? 4 : 3);
}

static enum mgx_status import(struct mgx_node *n)
{
    struct attention a;
    bool later = false;
    TRY(read(n, &a, &later));
    if (later)
        return mgx_onnx_defer(n);
    TRY(a.cached ? attend_cached(n, &a) : attend(n, &a));
    n->out[0] = merge(n, &a, n->out[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_attention = {
    .name = "Attention", .since = 23, .import = import, .result = "0020"};

// --- FlexAttention ---

// The body `name` applied to x, which keeps its shape; x itself if there is none.
static enum mgx_status apply(struct mgx_node *n, const char *name, struct mgx_ins **x)
{
    if (!mgx_onnx_has(n, name) || !*x)
        return MGX_OK;
    return mgx_onnx_inline(n, name, x, 1, x, 1);
}

static enum mgx_status flex(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct attention a = {.x = n->in[0],
                          .q = n->in[0],
                          .k = n->in[1],
                          .v = n->in[2],
                          .fresh = n->in[1],
                          .type = n->in[0]->shape.type};
    for (int i = 0; i < 3; i++)
        if (mgx_build_rank(n->in[i]) != 4)
            return mgx_node_invalid(n, "operand %d has rank %d, not 4", i,
                                    mgx_build_rank(n->in[i]));
    TRY(repeat_heads(n, &a));
    enum mgx_type precise = a.type == MGX_DOUBLE ? MGX_DOUBLE : MGX_FLOAT;
    if (mgx_onnx_has(n, "softmax_precision"))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "softmax_precision", 1), &precise));
    struct mgx_ins *x = mgx_build_convert(n, scores(n, &a), precise);
    TRY(apply(n, "score_mod", &x));
    x = softmax(n, x);
    TRY(apply(n, "prob_mod", &x));
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_dot, x, mgx_build_convert(n, a.v, precise));
    n->out[0] = mgx_build_convert(n, y, n->in[2]->shape.type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_flex_attention = {
    .name = "FlexAttention", .domain = "ai.onnx.preview", .import = flex};
