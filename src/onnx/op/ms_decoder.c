// SPDX-License-Identifier: MIT
// What com.microsoft has fused of today's decoders, taken apart again: SwiGLU, ScaledSiLU,
// GatedAdd, GatedRMSNorm, LinearAttentionGate, GemmaRotaryEmbedding, MRotaryEmbedding. Narrow types
// are computed in float. Batch and tokens may be open.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

static struct mgx_ins *wide(struct mgx_node *n, struct mgx_ins *x)
{
    const bool narrow = x && mgx_type_is_half_or_bf16(x->shape.type);
    return narrow ? mgx_build_convert(n, x, MGX_FLOAT) : x;
}

// x * sigmoid(alpha x)
static struct mgx_ins *swish(struct mgx_node *n, struct mgx_ins *x, double alpha)
{
    struct mgx_ins *inner = alpha != 1 ? mgx_build_with(n, &mgx_op_mul, x, alpha) : x;
    return mgx_build_mul(n, x, mgx_build_sigmoid(n, inner));
}

// --- SwiGLU, ScaledSiLU, GatedAdd ---

// Gate and up from one operand whose last axis has both.
static enum mgx_status split_gate(struct mgx_node *n, struct mgx_ins **gate, struct mgx_ins **up)
{
    struct mgx_ins *x = n->in[0];
    const int last = x->shape.rank - 1;
    const int64_t length = last >= 0 ? x->shape.lens[last] : 0;
    if (last < 0 || length % 2)
        return mgx_node_invalid(n, "%lld numbers do not make a gate and as many others",
                                (long long)length);
    *gate = mgx_build_slice(n, x, last, 0, length / 2);
    *up = mgx_build_slice(n, x, last, length / 2, length);
    return MGX_OK;
}

static enum mgx_status swiglu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    struct mgx_ins *gate = n->in[0], *up = mgx_node_in(n, 1);
    const int rank = mgx_build_rank(gate);
    if (rank < 0 || (up && mgx_build_rank(up) < 0) ||
        (!up && rank > 0 && !mgx_build_fixed_dim(gate, rank - 1)))
        return mgx_onnx_defer(n);
    if (!up)
        TRY(split_gate(n, &gate, &up));
    const double limit = mgx_onnx_real(n, "limit", 0),
                 beta = mgx_onnx_real(n, "activation_beta", 0);
    gate = wide(n, gate);
    up = wide(n, up);
    if (limit > 0) {
        gate = mgx_build_with(n, &mgx_op_min, gate, limit);
        up = mgx_build_clamp(n, up, -limit, limit);
    }
    gate = swish(n, gate, mgx_onnx_real(n, "activation_alpha", 1));
    if (mgx_onnx_int(n, "round_activation", 0))
        gate = wide(n, mgx_build_convert(n, gate, n->in[0]->shape.type));
    up = beta != 0 ? mgx_build_with(n, &mgx_op_add, up, beta) : up;
    n->out[0] = mgx_build_convert(n, mgx_build_mul(n, gate, up), n->in[0]->shape.type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_swiglu = {
    .name = "SwiGLU", .domain = "com.microsoft", .import = swiglu};

static enum mgx_status scaled_silu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0], *scale = mgx_node_in(n, 1);
    x = scale ? mgx_build_mul(n, x, mgx_build_convert(n, scale, x->shape.type))
              : mgx_build_with(n, &mgx_op_mul, x, mgx_onnx_real(n, "alpha", 1));
    n->out[0] = swish(n, x, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_scaled_silu = {
    .name = "ScaledSiLU", .domain = "com.microsoft", .import = scaled_silu};

// x + y * gate, or with sigmoid(gate * weight) for the gate.
static enum mgx_status gated_add(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 4));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *gate = n->in[2], *weight = mgx_node_in(n, 3);
    if (weight) {
        gate = mgx_build_matmul(n, &mgx_op_dot, wide(n, gate), wide(n, weight));
        gate = mgx_build_convert(n, mgx_build_sigmoid(n, gate), n->in[1]->shape.type);
    }
    n->out[0] = mgx_build_add(n, n->in[0], mgx_build_mul(n, n->in[1], gate));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gated_add = {
    .name = "GatedAdd", .domain = "com.microsoft", .import = gated_add};

// --- GatedRMSNorm ---

// Each group of as many numbers as there are scales, the last axis being some of them.
static enum mgx_status gated_norm(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    const int rank = mgx_build_rank(n->in[0]);
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[1]) ||
        (rank > 0 && !mgx_build_fixed_dim(n->in[0], rank - 1)))
        return mgx_onnx_defer(n);
    const struct mgx_shape *x = &n->in[0]->shape, *s = &n->in[1]->shape;
    if (rank < 1 || rank >= MGX_MAX_RANK || s->rank != 1 || s->lens[0] < 1 ||
        x->lens[rank - 1] % s->lens[0])
        return mgx_build_misfit(n, "scale", n->in[1], "an input of", n->in[0]);
    const char *how = mgx_onnx_text(n, "activation", "silu");
    const bool silu = strcmp(how, "silu") == 0 || strcmp(how, "swish") == 0;
    if (!silu && strcmp(how, "sigmoid") != 0)
        return mgx_node_invalid(n, "activation \"%s\" is not one of silu, swish, sigmoid", how);
    int64_t lens[MGX_MAX_RANK] = {0}, back[MGX_MAX_RANK] = {0}; // 0 keeps an axis
    lens[rank - 1] = x->lens[rank - 1] / s->lens[0];
    lens[rank] = s->lens[0];
    back[rank - 1] = x->lens[rank - 1];
    struct mgx_ins *y = mgx_build_reshape(n, wide(n, n->in[0]), lens, rank + 1);
    y = mgx_build_rms(n, y, (int64_t[]){rank}, 1, mgx_onnx_real(n, "epsilon", 1e-5));
    y = mgx_build_reshape(n, mgx_build_mul(n, y, wide(n, n->in[1])), back, rank);
    struct mgx_ins *gate = wide(n, n->in[2]);
    gate = silu ? swish(n, gate, 1) : mgx_build_sigmoid(n, gate);
    n->out[0] = mgx_build_convert(n, mgx_build_mul(n, y, gate), x->type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gated_rms_norm = {
    .name = "GatedRMSNorm", .domain = "com.microsoft", .import = gated_norm};

// --- LinearAttentionGate ---

// decay = scale * softplus(a + bias), beta = sigmoid(b)
static enum mgx_status linear_gate(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 4));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (n->out_count > 1 && !mgx_node_in(n, 3))
        return mgx_node_invalid(n, "beta is asked for, and b is missing");
    const enum mgx_type type = n->in[0]->shape.type;
    struct mgx_ins *y = mgx_build_add(n, wide(n, n->in[0]), wide(n, n->in[1]));
    y = mgx_build_mul(n, mgx_build_softplus(n, y), wide(n, n->in[2]));
    n->out[0] = mgx_build_convert(n, y, type);
    if (n->out_count > 1)
        n->out[1] = mgx_build_convert(n, mgx_build_sigmoid(n, wide(n, n->in[3])), type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_linear_attention_gate = {
    .name = "LinearAttentionGate", .domain = "com.microsoft", .import = linear_gate};

// --- rotations ---

// q cos(emb) + turned q sin(emb), and the same of k
static enum mgx_status gemma_rotary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 5, 5));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (mgx_build_rank(n->in[0]) != 3)
        return mgx_node_invalid(n, "emb has rank %d, not 3", mgx_build_rank(n->in[0]));
    for (int i = 0; i < 2 && i < n->out_count; i++) {
        struct mgx_ins *x = n->in[1 + 2 * i], *turned = n->in[2 + 2 * i];
        struct mgx_ins *c = mgx_build_convert(n, mgx_build_cos(n, n->in[0]), x->shape.type);
        struct mgx_ins *s = mgx_build_convert(n, mgx_build_sin(n, n->in[0]), x->shape.type);
        c = mgx_build_unsqueeze(n, c, (int64_t[]){1}, 1);
        s = mgx_build_unsqueeze(n, s, (int64_t[]){1}, 1);
        n->out[i] = mgx_build_add(n, mgx_build_mul(n, x, c), mgx_build_mul(n, turned, s));
    }
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_gemma_rotary = {.name = "GemmaRotaryEmbedding",
                                                     .domain = "com.microsoft",
                                                     .import = gemma_rotary,
                                                     .result = "1"};

// Which of the three positions of a token (time, height, width) turns each pair.
static enum mgx_status read_sections(struct mgx_node *n, int64_t half, int64_t *stream)
{
    const struct mgx_ints s = mgx_onnx_ints(n, "mrope_section");
    int64_t sum = 0;
    for (int i = 0; i < s.count; i++) {
        if (s.v[i] < 0 || s.v[i] > half)
            return mgx_node_invalid(n, "mrope_section %d is %lld of %lld pairs", i,
                                    (long long)s.v[i], (long long)half);
        sum += s.v[i];
    }
    if (s.count != 3 || sum != half)
        return mgx_node_invalid(n, "%d mrope_sections of %lld pairs, not 3 of %lld", s.count,
                                (long long)sum, (long long)half);
    const bool interleaved = mgx_onnx_int(n, "mrope_layout", 0) != 0;
    for (int64_t i = 0; i < half; i++)
        if (interleaved)
            stream[i] = i % 3 && i < 3 * s.v[i % 3] ? i % 3 : 0;
        else
            stream[i] = (i >= s.v[0]) + (i >= s.v[0] + s.v[1]);
    return MGX_OK;
}

// {batch, 1, tokens, half}: of each pair the number at the position that it goes by.
static struct mgx_ins *pick_rows(struct mgx_node *n, struct mgx_ins *table, int64_t half,
                                 const int64_t *stream)
{
    struct mgx_ins *rows = mgx_build_gather(n, table, n->in[1], 0), *y = NULL;
    for (int64_t i = 0; i < 3; i++) {
        const struct mgx_shape vector = mgx_shape_vector(table->shape.type, half);
        double *own = MGX_NEW_ARRAY(n->scratch, double, half);
        for (int64_t k = 0; own && k < half; k++)
            own[k] = stream[k] == i;
        struct mgx_ins *part = rows ? mgx_build_slice(n, rows, 0, i, i + 1) : NULL;
        part = mgx_build_squeeze(n, part, (int64_t[]){0}, 1);
        part = own ? mgx_build_mul(n, part, mgx_build_doubles(n, &vector, own)) : NULL;
        y = y ? mgx_build_add(n, y, part) : part;
    }
    return mgx_build_unsqueeze(n, y, (int64_t[]){1}, 1);
}

static enum mgx_status check_rotary(struct mgx_node *n, int64_t *heads, int64_t *half)
{
    const struct mgx_shape *x = &n->in[0]->shape, *at = &n->in[1]->shape, *c = &n->in[2]->shape;
    const int64_t size = x->lens[x->rank - 1];
    *half = c->rank == 2 ? c->lens[1] : 0;
    *heads = mgx_onnx_int(n, "num_heads", 0);
    if ((x->rank != 3 && x->rank != 4) || at->rank != 3 || at->lens[0] != 3 || *half < 1 ||
        !mgx_shape_same_lens(c, &n->in[3]->shape))
        return mgx_build_misfit(n, "positions", n->in[1], "an input of", n->in[0]);
    if (x->rank == 3 && *heads == 0)
        *heads = size / (2 * *half);
    if (x->rank == 3 && (*heads < 1 || size % *heads))
        return mgx_node_invalid(n, "%lld channels do not make %lld heads", (long long)size,
                                (long long)*heads);
    if (2 * *half > (x->rank == 3 ? size / *heads : size))
        return mgx_node_invalid(n, "%lld pairs of a head cannot be turned", (long long)*half);
    return MGX_OK;
}

static enum mgx_status rotary_of_three(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 4, 4));
    const int rank = mgx_build_rank(n->in[0]);
    int64_t heads, half;
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[2]) || !mgx_build_is_static(n->in[3]) ||
        rank < 1 || !mgx_build_fixed_dim(n->in[0], rank - 1) ||
        (mgx_build_rank(n->in[1]) > 0 && !mgx_build_fixed_dim(n->in[1], 0)))
        return mgx_onnx_defer(n);
    TRY(check_rotary(n, &heads, &half));
    int64_t *stream = MGX_NEW_ARRAY(n->scratch, int64_t, half);
    if (!stream)
        return mgx_fail_memory(n->diag);
    TRY(read_sections(n, half, stream));
    struct mgx_ins *x = rank == 3 ? mgx_build_split_heads(n, n->in[0], heads) : n->in[0];
    x = mgx_build_rotate(n, x, pick_rows(n, n->in[2], half, stream),
                         pick_rows(n, n->in[3], half, stream), 2 * half,
                         mgx_onnx_int(n, "interleaved", 0) != 0);
    n->out[0] = rank == 3 ? mgx_build_merge_heads(n, x) : x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_mrotary = {
    .name = "MRotaryEmbedding", .domain = "com.microsoft", .import = rotary_of_three};
