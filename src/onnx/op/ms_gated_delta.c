// SPDX-License-Identifier: MIT
// GatedDeltaNet of com.microsoft: LinearAttention whose operands come as heads behind their tokens,
// whose state lies by columns, and which computes its gates itself.
//
//     query and key {batch, steps, heads, dk}, value {batch, steps, more heads, dv}, or with batch and
//     steps as one axis, the batch being the state's; state {batch, more heads, dv, dk}
//
// Texts of different lengths side by side (cu_seqlens) and the capture of single steps are refused.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

enum { QUERY, KEY, VALUE, SUMS, DECAY, BETA, STATE, A_LOG, DT_BIAS, CAPTURE };

struct net {
    struct mgx_ins *in[6];              // of linear_attention
    int64_t batch, heads, wide, dk, dv; // batch: -1, as query says; heads of keys, of values
    bool flat, gated, delta;            // batch and steps are one axis
    enum mgx_type type;
};

static struct mgx_ins *as_float(struct mgx_node *n, struct mgx_ins *x)
{
    return x ? mgx_build_convert(n, x, MGX_FLOAT) : NULL;
}

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    if (mgx_node_in(n, SUMS))
        return mgx_node_unsupported(n, "cu_seqlens, of texts of different lengths");
    if (mgx_onnx_int(n, "state_update_capacity", 0) || mgx_node_in(n, CAPTURE))
        return mgx_node_unsupported(n, "state_update_capacity");
    if (n->in_count < 3 || !n->in[QUERY] || !n->in[KEY] || !n->in[VALUE])
        return mgx_node_unsupported(n, "queries, keys and values in one operand");
    return MGX_OK;
}

// Heads and their sizes are known, and the batch where it is not an axis of its own.
static bool is_known(const struct mgx_node *n)
{
    if (!mgx_build_ranked(n))
        return false;
    for (int i = QUERY; i <= VALUE; i++)
        for (int k = 1; k < 3 && n->in[i]->shape.rank > k; k++)
            if (!mgx_build_fixed_dim(n->in[i], n->in[i]->shape.rank - k))
                return false;
    const struct mgx_ins *state = mgx_node_in(n, STATE);
    return n->in[QUERY]->shape.rank != 3 ||
           (state && state->shape.rank == 4 && mgx_build_fixed_dim(state, 0));
}

static enum mgx_status read(struct mgx_node *n, struct net *g)
{
    const struct mgx_shape *q = &n->in[QUERY]->shape, *k = &n->in[KEY]->shape,
                           *v = &n->in[VALUE]->shape;
    const char *rule = mgx_onnx_text(n, "update_rule", "gated_delta");
    const struct mgx_ins *state = mgx_node_in(n, STATE);
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
        return mgx_node_invalid(n, "queries of rank %d, keys of rank %d, values of rank %d",
                                q->rank, k->rank, v->rank);
    const int h = q->rank - 2, d = q->rank - 1;
    *g = (struct net){.batch = q->rank == 3 ? state->shape.lens[0] : -1,
                      .heads = q->lens[h],
                      .wide = v->lens[h],
                      .dk = q->lens[d],
                      .dv = v->lens[d],
                      .flat = q->rank == 3,
                      .gated = strncmp(rule, "gated", 5) == 0,
                      .delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0,
                      .type = q->type};
    if (g->heads < 1 || g->dk < 1 || k->lens[h] != g->heads || k->lens[d] != g->dk ||
        g->wide < g->heads || g->wide % g->heads || (g->flat && g->batch < 1))
        return mgx_node_invalid(n, "%lld heads of queries, %lld of keys and %lld of values",
                                (long long)g->heads, (long long)k->lens[h], (long long)g->wide);
    if ((!g->gated && !g->delta && strcmp(rule, "linear") != 0) ||
        (g->gated && !mgx_node_in(n, DECAY)) || (g->delta && !mgx_node_in(n, BETA)))
        return mgx_node_invalid(n, "update_rule \"%s\" is unknown, or lacks decay or beta", rule);
    if (state && state->shape.rank != 4)
        return mgx_node_invalid(n, "initial_state has rank %d, not 4", state->shape.rank);
    return MGX_OK;
}

// {batch, steps, heads, size} from what may have batch and steps as one axis; `size` 0: without the
// last axis, which becomes 1.
static struct mgx_ins *split(struct mgx_node *n, const struct net *g, struct mgx_ins *x,
                             int64_t heads, int64_t size)
{
    x = as_float(n, x);
    if (g->flat)
        x = mgx_build_reshape(n, x, (int64_t[]){g->batch, -1, heads, size ? size : 1}, 4);
    else if (!size)
        x = mgx_build_unsqueeze(n, x, (int64_t[]){3}, 1);
    return mgx_build_transpose(n, x, (int64_t[]){0, 2, 1, 3}, 4);
}

// Of queries and keys, as the model asks: by their length, and for every head of values.
static struct mgx_ins *prepare(struct mgx_node *n, const struct net *g, struct mgx_ins *x)
{
    if (mgx_onnx_int(n, "qk_l2_norm", 0)) {
        struct mgx_ins *sum = mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_mul(n, x, x),
                                               (int64_t[]){3}, 1, true);
        sum = mgx_build_with(n, &mgx_op_add, sum, 1e-6);
        x = mgx_build_mul(n, x, mgx_build_rsqrt(n, sum));
    }
    return mgx_build_repeat_heads(n, x, g->wide / g->heads);
}

// {1, heads, 1, size or 1} of one number for every head, or for every entry of its keys.
static struct mgx_ins *per_head(struct mgx_node *n, const struct net *g, struct mgx_ins *x)
{
    const bool each = x && mgx_build_is_static(x) &&
                      mgx_shape_elements(&x->shape) == g->wide * g->dk && g->dk > 1;
    return mgx_build_reshape(n, as_float(n, x), (int64_t[]){1, g->wide, 1, each ? g->dk : 1}, 4);
}

static enum mgx_status gate(struct mgx_node *n, const struct net *g, struct mgx_ins **x)
{
    const char *how = mgx_onnx_text(n, "gate_activation", "none");
    if (strcmp(how, "none") == 0)
        return MGX_OK;
    const bool soft = strcmp(how, "softplus") == 0 || strcmp(how, "qwen") == 0;
    if (!soft && strcmp(how, "sigmoid") != 0 && strcmp(how, "kda") != 0)
        return mgx_node_invalid(n, "gate_activation \"%s\" is unknown", how);
    if (!mgx_node_in(n, A_LOG) || !mgx_node_in(n, DT_BIAS))
        return mgx_node_invalid(n, "gate_activation %s without a_log or dt_bias", how);
    struct mgx_ins *a = mgx_build_exp(n, per_head(n, g, n->in[A_LOG]));
    *x = mgx_build_add(n, *x, per_head(n, g, n->in[DT_BIAS]));
    if (soft)
        *x = mgx_build_neg(n, mgx_build_mul(n, mgx_build_softplus(n, *x), a));
    else
        *x = mgx_build_with(n, &mgx_op_mul, mgx_build_sigmoid(n, mgx_build_mul(n, *x, a)),
                            mgx_onnx_real(n, "gate_lower_bound", -5));
    return MGX_OK;
}

static enum mgx_status read_operands(struct mgx_node *n, struct net *g)
{
    struct mgx_ins *decay = mgx_node_in(n, DECAY), *state = mgx_node_in(n, STATE);
    g->in[0] = prepare(n, g, split(n, g, n->in[QUERY], g->heads, g->dk));
    g->in[1] = prepare(n, g, split(n, g, n->in[KEY], g->heads, g->dk));
    g->in[2] = split(n, g, n->in[VALUE], g->wide, g->dv);
    g->in[3] = g->in[4] = g->in[5] = mgx_build_undefined(n);
    if (state)
        g->in[3] = mgx_build_transpose(n, as_float(n, state), (int64_t[]){0, 1, 3, 2}, 4);
    if (g->gated) {
        const bool each = decay->shape.rank == n->in[QUERY]->shape.rank;
        g->in[4] = split(n, g, decay, g->wide, each ? g->dk : 0);
        TRY(gate(n, g, &g->in[4]));
    }
    if (g->delta) {
        g->in[5] = split(n, g, n->in[BETA], g->wide, 0);
        if (strcmp(mgx_onnx_text(n, "beta_activation", "none"), "sigmoid") == 0)
            g->in[5] = mgx_build_sigmoid(n, g->in[5]);
    }
    return mgx_node_status(n);
}

static enum mgx_status import(struct mgx_node *n)
{
    struct net g;
    TRY(refuse_variants(n));
    if (!is_known(n))
        return mgx_onnx_defer(n);
    TRY(read(n, &g));
    TRY(read_operands(n, &g));
    const double asked = mgx_onnx_real(n, "scale", 0);
    struct mgx_ins *both =
        mgx_build_emit_n(n, &mgx_op_linear_attention,
                         MGX_ATTRS(mgx_real("scale", asked != 0 ? asked : 1 / sqrt((double)g.dk)),
                                   mgx_int("delta", g.delta)),
                         g.in, 6);
    struct mgx_ins *y =
        mgx_build_transpose(n, mgx_build_member(n, both, 0), (int64_t[]){0, 2, 1, 3}, 4);
    if (g.flat)
        y = mgx_build_reshape(n, y, (int64_t[]){-1, g.wide, g.dv}, 3);
    n->out[0] = mgx_build_convert(n, y, g.type);
    if (n->out_count > 1)
        n->out[1] =
            mgx_build_transpose(n, mgx_build_member(n, both, 1), (int64_t[]){0, 1, 3, 2}, 4);
    return n->out_count > 2 ? mgx_node_unsupported(n, "state_update") : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gated_delta_net = {
    .name = "GatedDeltaNet", .domain = "com.microsoft", .import = import, .result = "0f"};
