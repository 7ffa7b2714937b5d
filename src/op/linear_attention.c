// SPDX-License-Identifier: MIT
// linear_attention: attention without softmax, as a recurrence over a state matrix per head (ONNX
// LinearAttention).
//
//     S = exp(g[t]) * S                       with decay, by rows or whole
//     d = v[t]                                or, with delta: beta[t] * (v[t] - S' k[t])
//     S = S + k[t] d'
//     y[t] = scale * S' q[t]
//
//     q {b, hq, t, dk}, k {b, h, t, dk}, v {b, h, t, dv}, state {b, h, dk, dv},
//     decay {b, h, t, 1 or dk}, beta {b, h or 1, t, 1}  ->  (y {b, hq, t, dv}, S {b, h, dk, dv})
//
// state (zeros then), decay and beta may be absent. hq is a multiple of h: query heads share states
// in order. Everything is computed in double and rounded once. Cost: 4 dk dv per step and head.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/rule/rule.h"

struct linear_attention {
    double scale;
    bool delta;
};

static const struct mgx_field fields[] = {
    MGX_REAL(struct linear_attention, scale), MGX_FLAG(struct linear_attention, delta), {0}};
static const struct linear_attention defaults = {.scale = 1};

enum { Q, K, V, STATE, DECAY, BETA, INPUTS };

static bool has(const struct mgx_shape *const *in, int count, int i)
{
    assert(i >= 0);
    return i < count && !mgx_shape_is_absent(in[i]);
}

// --- shape ---

// Axis `axis` of input i may have the length of `want`, or 1 where that will do.
static enum mgx_status check_len(struct mgx_shape_call *c, int i, int axis, struct mgx_dim want,
                                 bool one)
{
    const struct mgx_dim d = mgx_shape_dim(c->in[i], axis);
    if ((d.min <= want.max && d.max >= want.min) || (one && d.min <= 1 && d.max >= 1))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: axis %d of input %d has length %" PRId64 ", expected %" PRId64,
                    c->op->name, axis, i, d.max, want.max);
}

static enum mgx_status check_heads(struct mgx_shape_call *c)
{
    const struct mgx_dim q = mgx_shape_dim(c->in[Q], 1), h = mgx_shape_dim(c->in[K], 1);
    if (!mgx_dim_is_fixed(&q) || !mgx_dim_is_fixed(&h) || (h.min > 0 && q.min % h.min == 0))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: %" PRId64 " query heads do not share %" PRId64 " states", c->op->name,
                    q.min, h.min);
}

static enum mgx_status check_inputs(struct mgx_shape_call *c)
{
    const struct mgx_dim one = {.min = 1, .max = 1};
    for (int i = 0; i < c->in_count; i++) {
        if (!has(c->in, c->in_count, i))
            continue;
        TRY(mgx_require_float(c, i));
        TRY(mgx_require_rank(c, i, 4, 4));
        TRY(check_len(c, i, 0, mgx_shape_dim(c->in[Q], 0), false));
    }
    TRY(check_heads(c));
    for (int i = K; i < c->in_count; i++) {
        if (!has(c->in, c->in_count, i))
            continue;
        TRY(check_len(c, i, 1, mgx_shape_dim(c->in[K], 1), i == BETA));
        TRY(check_len(c, i, 2, mgx_shape_dim(c->in[i == STATE ? K : Q], i == STATE ? 3 : 2),
                      false));
    }
    TRY(check_len(c, K, 3, mgx_shape_dim(c->in[Q], 3), false));
    if (has(c->in, c->in_count, STATE))
        TRY(check_len(c, STATE, 3, mgx_shape_dim(c->in[V], 3), false));
    if (has(c->in, c->in_count, DECAY))
        TRY(check_len(c, DECAY, 3, mgx_shape_dim(c->in[K], 3), true));
    return has(c->in, c->in_count, BETA) ? check_len(c, BETA, 3, one, false) : MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct linear_attention *a = c->attr;
    TRY(check_inputs(c));
    if (a->delta && !has(c->in, c->in_count, BETA))
        return mgx_fail(c->diag, MGX_INVALID, "%s: delta needs input %d", c->op->name, BETA);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, 2);
    struct mgx_dim *y = mgx_edit_dims(c, c->in[Q], 4), *s = mgx_edit_dims(c, c->in[Q], 4);
    if (!sub || !y || !s)
        return mgx_fail_memory(c->diag);
    y[3] = s[3] = mgx_shape_dim(c->in[V], 3);
    s[1] = mgx_shape_dim(c->in[V], 1);
    s[2] = mgx_shape_dim(c->in[Q], 3);
    const enum mgx_type type = c->in[Q]->type;
    const bool given = has(c->in, c->in_count, STATE);
    sub[0] = mgx_shape_from_dims(type, 4, y);
    sub[1] = mgx_shape_from_dims(given ? c->in[STATE]->type : type, 4, s);
    *out = mgx_shape_tuple(sub, 2);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_TUPLE;
}

// --- compute ---

struct run {
    const struct linear_attention *a;
    int64_t heads, query_heads, steps, dk, dv;
    int64_t decay_step, beta_heads; // entries of decay per step; heads that beta has
    const double *in[INPUTS];       // NULL where absent
    double *state, *y, *d;          // d: dv entries
};

// S' x for a state of dk rows: dv sums.
static void read_state(const struct run *r, const double *s, const double *x, double *out)
{
    memset(out, 0, (size_t)r->dv * sizeof *out);
    for (int64_t i = 0; i < r->dk; i++)
        for (int64_t j = 0; j < r->dv; j++)
            out[j] += s[i * r->dv + j] * x[i];
}

// One step of the state of head h of batch entry b.
static void advance(const struct run *r, int64_t b, int64_t h, int64_t t, double *s)
{
    assert(b >= 0 && h >= 0 && t >= 0);
    const int64_t at = (b * r->heads + h) * r->steps + t;
    const double *k = r->in[K] + at * r->dk, *v = r->in[V] + at * r->dv;
    for (int64_t i = 0; r->in[DECAY] && i < r->dk; i++) {
        const double by = exp(r->in[DECAY][at * r->decay_step + (r->decay_step == 1 ? 0 : i)]);
        for (int64_t j = 0; j < r->dv; j++)
            s[i * r->dv + j] *= by;
    }
    double rate = 1;
    memset(r->d, 0, (size_t)r->dv * sizeof *r->d);
    if (r->a->delta) {
        rate = r->in[BETA][(b * r->beta_heads + (r->beta_heads == 1 ? 0 : h)) * r->steps + t];
        read_state(r, s, k, r->d);
    }
    for (int64_t j = 0; j < r->dv; j++)
        r->d[j] = rate * (v[j] - r->d[j]);
    for (int64_t i = 0; i < r->dk; i++)
        for (int64_t j = 0; j < r->dv; j++)
            s[i * r->dv + j] += k[i] * r->d[j];
}

static void run_head(const struct run *r, int64_t b, int64_t h)
{
    assert(b >= 0 && h >= 0);
    double *s = r->state + (b * r->heads + h) * r->dk * r->dv;
    const int64_t share = r->query_heads / r->heads;
    for (int64_t t = 0; t < r->steps; t++) {
        advance(r, b, h, t, s);
        for (int64_t i = 0; i < share; i++) {
            const int64_t at = (b * r->query_heads + h * share + i) * r->steps + t;
            double *y = r->y + at * r->dv;
            read_state(r, s, r->in[Q] + at * r->dk, y);
            for (int64_t j = 0; j < r->dv; j++)
                y[j] *= r->a->scale;
        }
    }
}

static bool load_inputs(struct mgx_compute_call *c, struct run *r)
{
    for (int i = 0; i < c->in_count; i++) {
        const bool there = !mgx_shape_is_absent(&c->in[i]->shape);
        r->in[i] = there ? mgx_scratch_doubles(c, c->in[i]) : NULL;
        if (there && !r->in[i])
            return false;
    }
    return true;
}

// The state begins as it is given, or at 0.
static bool start(struct mgx_compute_call *c, struct run *r, int64_t entries, int64_t results)
{
    r->state = MGX_NEW_ARRAY(c->scratch, double, entries);
    r->y = MGX_NEW_ARRAY(c->scratch, double, results);
    r->d = MGX_NEW_ARRAY(c->scratch, double, r->dv);
    if (r->state && r->in[STATE] && entries)
        memcpy(r->state, r->in[STATE], (size_t)entries * sizeof *r->state);
    return r->state && r->y && r->d;
}

static enum mgx_status fill(struct mgx_compute_call *c, struct mgx_tensor *y,
                            struct mgx_tensor *state)
{
    const struct mgx_shape *q = &c->in[Q]->shape, *v = &c->in[V]->shape;
    struct run r = {.a = c->attr,
                    .heads = v->lens[1],
                    .query_heads = q->lens[1],
                    .steps = q->lens[2],
                    .dk = q->lens[3],
                    .dv = v->lens[3]};
    if (!load_inputs(c, &r))
        return MGX_NO_MEMORY;
    r.decay_step = r.in[DECAY] ? c->in[DECAY]->shape.lens[3] : 0;
    r.beta_heads = r.in[BETA] ? c->in[BETA]->shape.lens[1] : 0;
    if (!start(c, &r, mgx_shape_elements(&state->shape), mgx_shape_elements(&y->shape)))
        return mgx_fail_memory(c->diag);
    for (int64_t b = 0; b < q->lens[0]; b++)
        for (int64_t h = 0; h < r.heads; h++)
            run_head(&r, b, h);
    mgx_write_doubles(y, r.y);
    mgx_write_doubles(state, r.state);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct mgx_tensor members[2] = {0};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < 2 && status == MGX_OK; i++) {
        status = mgx_eval_create(c, &c->out_shape->sub[i]);
        members[i] = *c->out;
        *c->out = (struct mgx_tensor){0};
    }
    if (status == MGX_OK)
        status = fill(c, &members[0], &members[1]);
    if (status == MGX_OK)
        return mgx_tensor_group(c->out, members, 2, false, c->diag);
    mgx_tensor_release(&members[0]);
    mgx_tensor_release(&members[1]);
    return status;
}

const struct mgx_op mgx_op_linear_attention = {
    .name = "linear_attention",
    .meaning = "(y, S) = queries read a state that keys and values are added to, step by step",
    .fields = fields,
    .attr_size = sizeof(struct linear_attention),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = INPUTS,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
