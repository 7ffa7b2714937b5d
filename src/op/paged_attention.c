// SPDX-License-Identifier: MIT
// paged_attention: new tokens of several texts, side by side, look at the keys and values of their
// own text, which lie in blocks that a table gives to it.
//
//     q {1, heads, tokens, size}, k {blocks, block, shared, size}, v {blocks, block, shared, width},
//     sums {texts + 1}, past {texts}, table {texts, pages}[, sink {heads}]
//     [, scales of k, scales of v]: with `kept`, of caches in few bits (rule/kept.h)
//         ->  {1, heads, tokens, width}
//
//     tokens [sums[s], sums[s + 1]) are of text s; token t of it has place past[s] + t - sums[s]
//     key j of text s lies at k[table[s][j / block], j % block]
//
// A token sees the keys of its text up to its own place (`whole`: up to the text's last one), with
// a window that many of them, as far as the table goes and names a block that there is. f, heads
// that share and sinks are cache_attention's. The keys of the new tokens are in the blocks already
// (paged_append). Who sees nothing gets 0.
#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "op/rule/cache.h"
#include "op/rule/kept.h"
#include "op/rule/rule.h"

enum { Q, K, V, SUMS, PAST, TABLE, SINK };

static const struct mgx_field fields[] = {MGX_REAL(struct mgx_paged_attention, scale),
                                          MGX_REAL(struct mgx_paged_attention, cap),
                                          MGX_INT(struct mgx_paged_attention, window),
                                          MGX_INT(struct mgx_paged_attention, kept),
                                          MGX_FLAG(struct mgx_paged_attention, sink),
                                          MGX_FLAG(struct mgx_paged_attention, whole),
                                          {0}};
static const struct mgx_paged_attention defaults = {.scale = 1};

// --- shape ---

static enum mgx_status require_operands(struct mgx_shape_call *c)
{
    const struct mgx_paged_attention *a = c->attr;
    static const int ranks[] = {4, 4, 4, 1, 1, 2, 1};
    const int own = SINK + a->sink, count = own + (a->kept ? 2 : 0);
    if (c->in_count != count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected %d, given %d", c->op->name, count,
                        c->in_count);
    for (int i = 0; i < own; i++) {
        TRY(mgx_require_rank(c, i, ranks[i], ranks[i]));
        if (a->kept && (i == K || i == V))
            continue;
        if (i >= SUMS && i <= TABLE) {
            TRY(mgx_require_integral(c, i));
            continue;
        }
        TRY(mgx_require_float(c, i));
        if (c->in[i]->type != c->in[Q]->type)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Types do not match: input 0 is %s, input %d is %s", c->op->name,
                            mgx_type_name(c->in[Q]->type), i, mgx_type_name(c->in[i]->type));
    }
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_operands(c));
    TRY(mgx_require_shared_heads(c, mgx_shape_dim(c->in[Q], 1), mgx_shape_dim(c->in[K], 2)));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[Q], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim size = dims[3], texts = mgx_shape_dim(c->in[PAST], 0), sums = texts;
    sums.min++;
    sums.max += sums.max < MGX_DIM_ANY;
    TRY(mgx_require_fixed(c, Q, 0, 1));
    const struct mgx_paged_attention *a = c->attr;
    if (a->kept)
        for (int i = K; i <= V; i++)
            TRY(mgx_require_kept(c, a->kept, i, c->in_count - 3 + i, 2, size));
    else
        TRY(mgx_require_length(c, K, 3, &size));
    for (int i = 0; i < 3; i++) {
        struct mgx_dim d = mgx_shape_dim(c->in[K], i);
        TRY(mgx_require_length(c, V, i, &d));
    }
    TRY(mgx_require_length(c, SUMS, 0, &sums));
    TRY(mgx_require_length(c, TABLE, 0, &texts));
    if (a->sink)
        TRY(mgx_require_length(c, SINK, 0, &dims[1]));
    dims[3] = a->kept ? size : mgx_shape_dim(c->in[V], 3);
    *out = mgx_shape_from_dims(c->in[Q]->type, 4, dims);
    return MGX_OK;
}

// --- compute ---

struct call {
    const struct mgx_paged_attention *attr;
    const double *q, *k, *v, *sink;
    const int64_t *table; // of the text
    int64_t heads, shared, tokens, size, width, blocks, block, pages;
    double *scores;
    int64_t *rows; // of the keys that a token sees
};

// The rows of keys [from, to) that lie in some block.
static int64_t find_rows(const struct call *x, int64_t from, int64_t to)
{
    int64_t count = 0;
    for (int64_t j = from; j < to; j++) {
        const int64_t at = x->table[j / x->block];
        if (at >= 0 && at < x->blocks)
            x->rows[count++] = at * x->block + j % x->block;
    }
    return count;
}

static double score(const struct call *x, const double *q, int64_t head, int64_t row)
{
    const double *k = x->k + (row * x->shared + head) * x->size;
    double s = 0;
    for (int64_t d = 0; d < x->size; d++)
        s += q[d] * k[d];
    s *= x->attr->scale;
    return x->attr->cap > 0 ? x->attr->cap * tanh(s / x->attr->cap) : s;
}

static void attend(const struct call *x, int64_t h, int64_t t, int64_t count, double *y)
{
    const int64_t head = h * x->shared / x->heads;
    const double *q = x->q + (h * x->tokens + t) * x->size;
    double high = x->sink ? x->sink[h] : -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double s = x->scores[i] = score(x, q, head, x->rows[i]);
        high = isnan(s) || s > high ? s : high; // NaN stays
    }
    for (int64_t d = 0; d < x->width; d++)
        y[d] = 0;
    if (count == 0 || high == -INFINITY)
        return;
    double sum = x->sink ? exp(x->sink[h] - high) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double p = exp(x->scores[i] - high),
                     *v = x->v + (x->rows[i] * x->shared + head) * x->width;
        sum += p;
        for (int64_t d = 0; d < x->width; d++)
            y[d] += p * v[d];
    }
    for (int64_t d = 0; d < x->width; d++)
        y[d] /= sum;
}

// Tokens [from, to) of a text that had `past` before.
static void attend_text(const struct call *x, int64_t from, int64_t to, int64_t past, double *y)
{
    const int64_t keys = x->pages * x->block, window = x->attr->window;
    for (int64_t t = from; t < to; t++) {
        const int64_t place = past + t - from, last = x->attr->whole ? past + to - from : place + 1;
        const int64_t first = window > 0 && place >= window ? place + 1 - window : 0;
        const int64_t count = find_rows(x, first, mgx_min_i64(last, keys));
        for (int64_t h = 0; h < x->heads; h++)
            attend(x, h, t, count, y + (h * x->tokens + t) * x->width);
    }
}

static bool read_operands(struct mgx_compute_call *c, struct call *x)
{
    const struct mgx_paged_attention *a = c->attr;
    const int64_t *q = c->in[Q]->shape.lens, *v = c->in[V]->shape.lens,
                  pages = c->in[TABLE]->shape.lens[1], keys = pages * v[1];
    *x = (struct call){.attr = a,
                       .q = mgx_scratch_doubles(c, c->in[Q]),
                       .k = mgx_kept_cache(c, a->kept, K, 2),
                       .v = mgx_kept_cache(c, a->kept, V, 2),
                       .sink = a->sink ? mgx_scratch_doubles(c, c->in[SINK]) : NULL,
                       .table = mgx_scratch_ints(c, c->in[TABLE]),
                       .heads = q[1],
                       .shared = v[2],
                       .tokens = q[2],
                       .size = q[3],
                       .width = a->kept ? q[3] : v[3],
                       .blocks = v[0],
                       .block = v[1],
                       .pages = pages,
                       .scores = mgx_arena_array(c->scratch, (size_t)keys + 1, sizeof(double)),
                       .rows = mgx_arena_array(c->scratch, (size_t)keys + 1, sizeof(int64_t))};
    return x->q && x->k && x->v && x->table && x->scores && x->rows && (!a->sink || x->sink);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct call x;
    const int64_t count = mgx_shape_elements(&c->out->shape);
    if (count == 0)
        return MGX_OK;
    double *y = MGX_NEW_ARRAY(c->scratch, double, count);
    const int64_t *sums = mgx_scratch_ints(c, c->in[SUMS]),
                  *past = mgx_scratch_ints(c, c->in[PAST]);
    if (!y || !sums || !past || !read_operands(c, &x))
        return mgx_fail_memory(c->diag);
    const int64_t texts = c->in[PAST]->shape.lens[0];
    for (int64_t s = 0, from = 0; s < texts; s++, x.table += x.pages) {
        const int64_t to = mgx_paged_end(sums, texts, x.tokens, s, from);
        attend_text(&x, from, to, mgx_max_i64(past[s], 0), y);
        from = to;
    }
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_paged_attention = {
    .name = "paged_attention",
    .meaning = "y = softmax(f(q k')) v of texts side by side, whose keys a table finds in blocks",
    .fields = fields,
    .attr_size = sizeof(struct mgx_paged_attention),
    .defaults = &defaults,
    .in_min = 6,
    .in_max = 9,
    .shape = shape,
    .compute = compute,
};
