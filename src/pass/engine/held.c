// SPDX-License-Identifier: MIT
// Reads attention to a held cache backwards, from the second product.
#include "pass/engine/held.h"

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/view.h"

enum { NOW, ENDS, ROOM, PAST }; // of cache_append
enum { DEEP = 12 };

static bool is_float_convert(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convert && mgx_type_is_float(ins->shape.type) &&
           mgx_type_is_float(ins->in[0]->shape.type);
}

static struct mgx_ins *past_converts(struct mgx_ins *ins)
{
    while (is_float_convert(ins))
        ins = ins->in[0];
    return ins;
}

// --- from weights back to scores ---

// where(isnan(x), 0, x) gives x: attention to a cache gives whoever sees nothing 0 as well.
static struct mgx_ins *past_guard(struct mgx_ins *ins)
{
    double zero;
    const bool is = ins->op == &mgx_op_where && ins->in[0]->op == &mgx_op_isnan &&
                    ins->in[0]->in[0] == ins->in[2] && mgx_splat_value(ins->in[1], &zero) &&
                    zero == 0;
    return is ? ins->in[2] : ins;
}

static bool is_product(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_dot && ins->in_count == 2 && ins->shape.rank >= 2 &&
           mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) > 0;
}

// So low that nothing added to it counts: half of the least number of 16 bits.
static bool is_low(const struct mgx_ins *ins)
{
    double value;
    return mgx_splat_value(ins, &value) && value <= -32752;
}

// where(c, x, low) or where(c, low, x): x.
static struct mgx_ins *past_hidden(struct mgx_ins *ins, struct mgx_held_term *term)
{
    const int low = is_low(ins->in[1]) ? 1 : is_low(ins->in[2]) ? 2 : 0;
    if (!low)
        return NULL;
    *term = (struct mgx_held_term){.value = ins->in[0], .low = ins->in[low], .hides = low == 1};
    return ins->in[3 - low];
}

// The operand of a product or a sum that leads to scores: the other one is known, or does not.
static bool leads(struct mgx_ins *ins, int deep)
{
    if (is_product(ins) || !deep)
        return is_product(ins);
    if (is_float_convert(ins))
        return leads(ins->in[0], deep - 1);
    if (ins->op == &mgx_op_where)
        return leads(ins->in[1], deep - 1) || leads(ins->in[2], deep - 1);
    const bool two = ins->op == &mgx_op_add || ins->op == &mgx_op_mul || ins->op == &mgx_op_div;
    return two && (leads(ins->in[0], deep - 1) || leads(ins->in[1], deep - 1));
}

// One step from the softmax towards the product; NULL: not one of those that are known. Numbers
// multiply what comes before anything was added, so nothing may be added yet on the way back.
static struct mgx_ins *step_back(struct mgx_ins *ins, struct mgx_held *h)
{
    double value;
    if (is_float_convert(ins))
        return ins->in[0];
    const bool adds = h->scale == 1 && h->term_count < MGX_HELD_TERMS;
    if (ins->op == &mgx_op_where && adds) {
        struct mgx_ins *x = past_hidden(ins, &h->term[h->term_count]);
        h->term_count += x != NULL;
        return x;
    }
    if (ins->op == &mgx_op_add && adds) {
        const int side = leads(ins->in[0], DEEP) ? 0 : 1;
        h->term[h->term_count++] = (struct mgx_held_term){.value = ins->in[1 - side]};
        return ins->in[side];
    }
    if (ins->op == &mgx_op_div && mgx_splat_value(ins->in[1], &value) && value != 0) {
        h->scale /= value;
        return ins->in[0];
    }
    for (int i = 0; i < 2 && ins->op == &mgx_op_mul; i++)
        if (mgx_splat_value(ins->in[i], &value)) {
            h->scale *= value;
            return ins->in[1 - i];
        }
    return NULL;
}

static struct mgx_ins *scores_of(struct mgx_ins *softmax, struct mgx_held *h)
{
    struct mgx_ins *ins = softmax->in[0];
    for (int i = 0; i < DEEP && ins && !is_product(ins); i++)
        ins = step_back(ins, h);
    return ins && is_product(ins) ? ins : NULL;
}

// --- from an operand back to the cache ---

// The views between a cache and a product's operand, the last one first.
struct chain {
    const struct mgx_ins *step[DEEP];
    int count;
    double scale;
};

static struct mgx_ins *start_of(struct mgx_ins *ins, struct chain *c)
{
    double value;
    for (c->scale = 1; c->count < DEEP;) {
        if (mgx_is_reshaper(ins)) {
            c->step[c->count++] = ins;
            ins = ins->in[0];
        } else if (ins->op == &mgx_op_mul && mgx_splat_value(ins->in[1], &value)) {
            c->scale *= value;
            ins = ins->in[0];
        } else {
            return ins;
        }
    }
    return NULL;
}

// Heads of {batch, shared, tokens, size}, each so many times in a row, with batch and heads in one.
static bool start_repeated(struct mgx_view *v, const struct mgx_shape *cache, int64_t times)
{
    const int64_t *l = cache->lens, apart[5] = {l[0], l[1], 1, l[2], l[3]},
                  wide[5] = {l[0], l[1], times, l[2], l[3]},
                  joined[3] = {l[0] * l[1] * times, l[2], l[3]};
    return mgx_view_start(v, cache) && mgx_view_reshape(v, apart, 5) &&
           mgx_view_broadcast(v, wide, 5, 0) && mgx_view_reshape(v, joined, 3);
}

// Is the operand the cache's heads, each `times` times, and turned about where it is keys?
static bool shows(const struct mgx_ins *operand, const struct mgx_ins *cache, const struct chain *c,
                  int64_t times, bool turned)
{
    struct mgx_view want, got;
    if (!start_repeated(&want, &cache->shape, times) || !mgx_view_start(&got, &cache->shape) ||
        (turned && !mgx_view_transpose(&want, (const int[]){0, 2, 1})) ||
        !mgx_view_reshape(&want, operand->shape.lens, operand->shape.rank))
        return false;
    for (int i = c->count - 1; i >= 0; i--)
        if (!mgx_view_apply(&got, c->step[i]))
            return false;
    return mgx_view_equal(&want, &got);
}

static bool is_promised(int64_t masked, const struct mgx_ins *past)
{
    return masked > 0 && past->shape.lens[2] >= masked;
}

// The cache_append whose rows the concat joins as well; NULL.
static struct mgx_ins *append_beside(const struct mgx_ins *concat)
{
    const struct mgx_ins *past = concat->in[0];
    for (struct mgx_use *use = past->uses; use; use = use->next) {
        struct mgx_ins *a = use->user;
        if (a->op == &mgx_op_cache_append && a->in_count > PAST && a->in[PAST] == past &&
            a->in[NOW] == concat->in[1] && a->owner == concat->owner &&
            is_promised(mgx_ins_int(a, "masked"), past) && mgx_shape_equal(&a->shape, &past->shape))
            return a;
    }
    return NULL;
}

static bool is_joined(const struct mgx_ins *ins)
{
    enum { TOKENS = 2 };
    const int64_t axis = ins->op == &mgx_op_concat ? mgx_ins_int(ins, "axis") : -1;
    return axis == TOKENS && ins->in_count == 2 && ins->shape.rank == 4 &&
           mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) > 0;
}

static bool read_cache(struct mgx_held *h, struct mgx_ins *operand, int i)
{
    struct chain c = {.count = 0};
    const struct mgx_ins *joined = start_of(operand, &c);
    if (!joined || !is_joined(joined) || (i == 1 && c.scale != 1) ||
        !(h->append[i] = append_beside(joined)))
        return false;
    const int64_t *lens = joined->shape.lens, *l = operand->shape.lens;
    const int64_t rows = h->batch * h->heads; // one for each head of queries, or of the cache
    int64_t products = 1;
    for (int d = 0; d < operand->shape.rank - 2; d++)
        products *= l[d];
    const int64_t times = products == rows ? h->heads / mgx_max_i64(lens[1], 1) : 1;
    h->scale *= c.scale;
    return h->batch == lens[0] && h->heads % lens[1] == 0 &&
           (products == rows || products == h->batch * lens[1]) &&
           shows(operand, joined, &c, times, i == 0);
}

// --- all of it ---

// Queries that were multiplied by a number are taken as they were.
static struct mgx_ins *unscaled(struct mgx_ins *q, double *scale)
{
    double value;
    for (int i = 0; i < 2 && q->op == &mgx_op_mul; i++)
        if (mgx_splat_value(q->in[i], &value)) {
            *scale *= value;
            return q->in[1 - i];
        }
    return q;
}

// How many rows of queries there are, as far as one cache says how many texts and tokens.
static bool read_lengths(struct mgx_held *h, const struct mgx_ins *scores)
{
    struct chain c = {.count = 0};
    const struct mgx_ins *joined = start_of(scores->in[1], &c);
    const struct mgx_shape *s = &scores->shape;
    if (!joined || !is_joined(joined))
        return false;
    h->batch = joined->shape.lens[0];
    h->tokens = joined->in[1]->shape.lens[2];
    h->room = joined->in[0]->shape.lens[2];
    const int64_t rows = mgx_shape_elements(s) / s->lens[s->rank - 1], each = h->batch * h->tokens;
    h->heads = each > 0 ? rows / each : 0;
    h->keys = s->lens[s->rank - 1];
    return h->heads > 0 && rows % each == 0 && h->room >= h->tokens &&
           s->lens[s->rank - 1] == h->room + h->tokens;
}

// The first product, behind a softmax of its last axis; NULL.
static const struct mgx_ins *find_scores(struct mgx_ins *weigh, struct mgx_held *out)
{
    if (!is_product(weigh))
        return NULL;
    *out = (struct mgx_held){.weigh = weigh, .scale = 1};
    struct mgx_ins *softmax = past_converts(past_guard(past_converts(weigh->in[0])));
    if (softmax->op != &mgx_op_softmax)
        return NULL;
    const int64_t axis = mgx_ins_int(softmax, "axis");
    if (axis != -1 && axis != softmax->shape.rank - 1)
        return NULL;
    const struct mgx_ins *scores = scores_of(softmax, out);
    return scores && mgx_shape_same_lens(&scores->shape, &softmax->shape) ? scores : NULL;
}

bool mgx_held_find(struct mgx_ins *weigh, struct mgx_held *out)
{
    const struct mgx_ins *scores = find_scores(weigh, out);
    if (!scores || !read_lengths(out, scores))
        return false;
    out->q = unscaled(scores->in[0], &out->scale);
    return read_cache(out, scores->in[1], 0) && read_cache(out, weigh->in[1], 1) &&
           out->append[0]->in[ENDS] == out->append[1]->in[ENDS] &&
           out->append[1]->in[PAST]->shape.lens[2] == out->room;
}

// --- without a cache ---

static struct mgx_ins *plain(struct mgx_ins *ins, double *scale)
{
    double value;
    while (ins->op == &mgx_op_mul && mgx_splat_value(ins->in[1], &value)) {
        *scale *= value;
        ins = ins->in[0];
    }
    return ins;
}

// Every head of queries has its own keys.
bool mgx_still_find(struct mgx_ins *weigh, struct mgx_held *out)
{
    const struct mgx_ins *scores = find_scores(weigh, out);
    const int rank = scores ? scores->shape.rank : 0;
    if ((rank != 3 && rank != 4) || weigh->shape.rank != rank)
        return false;
    struct mgx_ins *v = weigh->in[1];
    out->q = unscaled(scores->in[0], &out->scale);
    out->still[0] = plain(scores->in[1], &out->scale);
    out->still[1] = v;
    const int64_t *s = scores->shape.lens, *k = out->still[0]->shape.lens;
    for (int d = 0; d < rank - 2; d++)
        if (k[d] != s[d] || v->shape.lens[d] != s[d])
            return false;
    out->batch = rank == 4 ? s[0] : 1;
    out->heads = s[rank - 3];
    out->tokens = s[rank - 2];
    out->keys = s[rank - 1];
    return out->still[0]->shape.type == v->shape.type && v->shape.lens[rank - 2] == out->keys;
}
