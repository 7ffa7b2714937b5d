// SPDX-License-Identifier: MIT
// cache_attention: the last tokens of every batch entry look at all of its tokens, of which a cache
// has the keys and values.
//
//     q {batch, heads, tokens, size}, k {batch, shared, keys, size}, v {batch, shared, keys, width},
//     ends {batch}[, bias {batch or 1, heads or 1, tokens or 1, >= keys}][, sink {heads}]
//     [, scales of k, scales of v]: with `kept`, of caches in few bits (rule/kept.h)
//         ->  {batch, heads, tokens, width}
//
//     y = softmax(f(q k')) v     f(x) = cap tanh(scale x / cap) + bias     (cap 0: scale x + bias)
//
// Head h looks at head h * shared / heads of the cache. Token i of entry b has position
// max(ends - tokens, 0) + i and sees the keys up to it, with a window that many of them; with
// `whole` all tokens have the position of the entry's last one. A sink is one score more per head
// that takes its share of the softmax. Who sees nothing gets 0.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "op/rule/cache.h"
#include "op/rule/kept.h"
#include "op/rule/rule.h"

enum { Q, K, V, ENDS };

static const struct mgx_field fields[] = {
    MGX_REAL(struct mgx_cache_attention, scale), MGX_REAL(struct mgx_cache_attention, cap),
    MGX_INT(struct mgx_cache_attention, window), MGX_INT(struct mgx_cache_attention, kept),
    MGX_FLAG(struct mgx_cache_attention, bias),  MGX_FLAG(struct mgx_cache_attention, sink),
    MGX_FLAG(struct mgx_cache_attention, whole), {0}};
static const struct mgx_cache_attention defaults = {.scale = 1};

// --- shape ---

static enum mgx_status require_types(struct mgx_shape_call *c)
{
    const struct mgx_cache_attention *a = c->attr;
    const int own = 4 + a->bias + a->sink, count = own + (a->kept ? 2 : 0);
    if (c->in_count != count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected %d, given %d", c->op->name, count,
                        c->in_count);
    for (int i = 0; i < own; i++) {
        if (i == ENDS || (a->kept && (i == K || i == V)))
            continue;
        TRY(mgx_require_float(c, i));
        if (c->in[i]->type != c->in[Q]->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Types do not match: input 0 is %s, input %d is %s", c->op->name,
                            mgx_type_name(c->in[Q]->type), i, mgx_type_name(c->in[i]->type));
    }
    return mgx_require_integral(c, ENDS);
}

// A length of 1 or that of the queries.
static enum mgx_status require_bias(struct mgx_shape_call *c)
{
    TRY(mgx_require_rank(c, ENDS + 1, 4, 4));
    for (int i = 0; i < 3; i++) {
        const struct mgx_dim d = mgx_shape_dim(c->in[ENDS + 1], i), q = mgx_shape_dim(c->in[Q], i);
        if ((d.min > 1 || d.max < 1) && (d.min > q.max || d.max < q.min))
            return mgx_fail_lens(c, Q, ENDS + 1);
    }
    const struct mgx_dim d = mgx_shape_dim(c->in[ENDS + 1], 3), keys = mgx_shape_dim(c->in[K], 2);
    return d.max < keys.min ? mgx_fail_lens(c, K, ENDS + 1) : MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_cache_attention *a = c->attr;
    TRY(require_types(c));
    for (int i = 0; i < ENDS; i++)
        TRY(mgx_require_rank(c, i, 4, 4));
    TRY(mgx_require_rank(c, ENDS, 1, 1));
    TRY(mgx_require_shared_heads(c, mgx_shape_dim(c->in[Q], 1), mgx_shape_dim(c->in[K], 1)));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[Q], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim size = dims[3], shared = mgx_shape_dim(c->in[K], 1),
                   keys = mgx_shape_dim(c->in[K], 2);
    for (int i = K; i <= ENDS; i++)
        TRY(mgx_require_length(c, i, 0, &dims[0]));
    if (a->kept)
        for (int i = K; i <= V; i++)
            TRY(mgx_require_kept(c, a->kept, i, c->in_count - 3 + i, 1, size));
    else
        TRY(mgx_require_length(c, K, 3, &size));
    TRY(mgx_require_length(c, V, 1, &shared));
    TRY(mgx_require_length(c, V, 2, &keys));
    if (a->bias)
        TRY(require_bias(c));
    if (a->sink) {
        TRY(mgx_require_rank(c, ENDS + 1 + a->bias, 1, 1));
        TRY(mgx_require_length(c, ENDS + 1 + a->bias, 0, &dims[1]));
    }
    dims[3] = a->kept ? size : mgx_shape_dim(c->in[V], 3);
    *out = mgx_shape_from_dims(c->in[Q]->type, 4, dims);
    return MGX_OK;
}

// --- compute ---

struct call {
    const struct mgx_cache_attention *attr;
    const double *q, *k, *v, *bias, *sink;
    const struct mgx_shape *bias_shape;
    int64_t heads, shared, tokens, keys, size, width;
    double *scores;
};

static double score(const struct call *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const double *q = x->q + ((b * x->heads + h) * x->tokens + i) * x->size;
    const int64_t head = h * x->shared / x->heads;
    const double *k = x->k + ((b * x->shared + head) * x->keys + j) * x->size;
    double s = 0;
    for (int64_t d = 0; d < x->size; d++)
        s += q[d] * k[d];
    s *= x->attr->scale;
    if (x->attr->cap > 0)
        s = x->attr->cap * tanh(s / x->attr->cap);
    if (!x->bias)
        return s;
    const int64_t *lens = x->bias_shape->lens, at[3] = {b, h, i};
    int64_t index = 0;
    for (int a = 0; a < 3; a++)
        index = index * lens[a] + (lens[a] == 1 ? 0 : at[a]);
    return s + x->bias[index * lens[3] + j];
}

// Token i of a head of an entry, which sees keys [from, to).
static void attend(const struct call *x, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
                   double *y)
{
    const int64_t head = h * x->shared / x->heads;
    const double *v = x->v + (b * x->shared + head) * x->keys * x->width;
    double high = x->sink ? x->sink[h] : -INFINITY, sum = 0;
    for (int64_t j = from; j < to; j++) {
        x->scores[j] = score(x, b, h, i, j);
        high = isnan(x->scores[j]) || x->scores[j] > high ? x->scores[j] : high; // NaN stays
    }
    for (int64_t d = 0; d < x->width; d++)
        y[d] = 0;
    if (from >= to || high == -INFINITY)
        return;
    sum = x->sink ? exp(x->sink[h] - high) : 0;
    for (int64_t j = from; j < to; j++) {
        const double p = exp(x->scores[j] - high);
        sum += p;
        for (int64_t d = 0; d < x->width; d++)
            y[d] += p * v[j * x->width + d];
    }
    for (int64_t d = 0; d < x->width; d++)
        y[d] /= sum;
}

static bool read_operands(struct mgx_compute_call *c, struct call *x)
{
    const struct mgx_shape *q = &c->in[Q]->shape, *k = &c->in[K]->shape, *v = &c->in[V]->shape;
    const struct mgx_cache_attention *a = c->attr;
    *x = (struct call){.attr = a,
                       .q = mgx_scratch_doubles(c, c->in[Q]),
                       .k = mgx_kept_cache(c, a->kept, K, 1),
                       .v = mgx_kept_cache(c, a->kept, V, 1),
                       .bias = a->bias ? mgx_scratch_doubles(c, c->in[ENDS + 1]) : NULL,
                       .sink = a->sink ? mgx_scratch_doubles(c, c->in[ENDS + 1 + a->bias]) : NULL,
                       .bias_shape = a->bias ? &c->in[ENDS + 1]->shape : NULL,
                       .heads = q->lens[1],
                       .shared = k->lens[1],
                       .tokens = q->lens[2],
                       .keys = k->lens[2],
                       .size = q->lens[3],
                       .width = a->kept ? q->lens[3] : v->lens[3],
                       .scores =
                           mgx_arena_array(c->scratch, (size_t)k->lens[2] + 1, sizeof(double))};
    return x->q && x->k && x->v && x->scores && (!a->bias || x->bias) && (!a->sink || x->sink);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct call x;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    double *y = mgx_arena_array(c->scratch, (size_t)mgx_shape_elements(&c->out->shape), sizeof *y);
    const int64_t *ends = mgx_scratch_ints(c, c->in[ENDS]);
    if (!read_operands(c, &x) || !y || !ends)
        return mgx_fail_memory(c->diag);
    double *row = y;
    for (int64_t b = 0; b < c->out->shape.lens[0]; b++)
        for (int64_t h = 0; h < x.heads; h++)
            for (int64_t i = 0; i < x.tokens; i++, row += x.width) {
                int64_t from, to;
                mgx_cache_visible(x.attr, ends[b], x.tokens, x.keys, i, &from, &to);
                attend(&x, b, h, i, from, to, row);
            }
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_cache_attention = {
    .name = "cache_attention",
    .meaning = "y = softmax(f(q k')) v over the tokens that each entry's cache has so far",
    .fields = fields,
    .attr_size = sizeof(struct mgx_cache_attention),
    .defaults = &defaults,
    .in_min = 4,
    .in_max = 8,
    .shape = shape,
    .compute = compute,
};
