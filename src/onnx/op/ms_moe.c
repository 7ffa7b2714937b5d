// SPDX-License-Identifier: MIT
// MoE and QMoE of com.microsoft: every token goes through the k experts that a router prefers, and
// what they make of it is summed by the router's weights.
//
//     y[t] = sum of w[t][e] * (W2[e] f(W1[e] x[t] + b1[e]) + b2[e])        over the chosen experts e
//
// MoE weighs by the softmax over all experts, QMoE by that over those chosen, or by weights that the
// model brings. Where there are fewer choices than experts, as in a step of a decoder, the chosen
// experts' weights are gathered, packed as they are, and a choice is one row of a product; else all
// experts see all tokens, and those not chosen weigh nothing. So how many tokens there are must be
// known.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

struct layer {                                     // of all experts
    struct mgx_ins *weights, *bias, *scale, *zero; // NULL: none; scale: the weights are packed
    int64_t rows, columns;                         // of an expert's matrix
    int64_t bits, block;
    const char *name;
};

struct moe {
    struct layer one, two, three;
    struct mgx_ins *x, *router, *weights; // {tokens, width}, {tokens, experts} each
    struct mgx_ins *chosen, *share;       // {tokens, k}
    int64_t tokens, width, experts, k;
    bool gathered; // a row for each choice; else each expert sees all tokens
    enum mgx_type type;
};

// --- what is given ---

static enum mgx_status check_matrix(struct mgx_node *n, const struct moe *m, const struct layer *l)
{
    const struct mgx_shape *w = &l->weights->shape;
    const int64_t bytes = l->scale ? l->columns * l->bits / 8 : l->columns;
    if (w->rank != 3 || w->lens[0] != m->experts || w->lens[2] != bytes || w->lens[1] < 1 ||
        w->lens[1] != l->rows)
        return mgx_node_invalid(n, "%s of rank %d, its last axes %lld and %lld, not %lld and %lld",
                                l->name, w->rank, w->rank == 3 ? (long long)w->lens[1] : 0,
                                w->rank ? (long long)w->lens[w->rank - 1] : 0, (long long)l->rows,
                                (long long)bytes);
    const struct mgx_shape *b = l->bias ? &l->bias->shape : NULL;
    if (b && (b->rank != 2 || b->lens[0] != m->experts || b->lens[1] != l->rows))
        return mgx_node_invalid(n, "%s has %lld rows, its bias is of rank %d", l->name,
                                (long long)l->rows, b->rank);
    return MGX_OK;
}

// Inputs x and router, and how many there are of what.
static enum mgx_status read_tokens(struct mgx_node *n, struct moe *m)
{
    const struct mgx_shape *x = &n->in[0]->shape, *r = &n->in[1]->shape;
    if ((x->rank != 2 && x->rank != 3) || r->rank != 2)
        return mgx_node_invalid(n, "tokens of rank %d with a router of rank %d", x->rank, r->rank);
    m->type = x->type;
    m->width = x->lens[x->rank - 1];
    m->experts = r->lens[1];
    m->tokens = r->lens[0];
    m->k = mgx_onnx_int(n, "k", 1);
    if (m->width < 1 || mgx_shape_elements(x) != m->tokens * m->width)
        return mgx_node_invalid(n, "%lld tokens, the router has %lld",
                                (long long)(m->width ? mgx_shape_elements(x) / m->width : 0),
                                (long long)m->tokens);
    if (m->k < 1 || m->k > m->experts)
        return mgx_node_invalid(n, "k is %lld of %lld experts", (long long)m->k,
                                (long long)m->experts);
    m->gathered = m->tokens * m->k < m->experts;
    m->x = mgx_build_reshape(n, n->in[0], (int64_t[]){m->tokens, m->width}, 2);
    m->router = mgx_build_convert(n, n->in[1], MGX_FLOAT);
    return mgx_node_status(n);
}

static bool is_gated(struct mgx_node *n)
{
    const char *how = mgx_onnx_text(n, "activation_type", "relu");
    return strcmp(how, "swiglu") == 0 || strcmp(how, "geglu") == 0;
}

// The lengths of all matrices follow from those of the second one.
static enum mgx_status read_layers(struct mgx_node *n, struct moe *m)
{
    const int64_t fusion = mgx_onnx_int(n, "swiglu_fusion", 0);
    const bool joined = is_gated(n) && fusion != 0;
    if (fusion < 0 || fusion > 2 || (is_gated(n) && !joined && !m->three.weights))
        return mgx_node_invalid(n, "swiglu_fusion is %lld, and there is no fc3", (long long)fusion);
    const int rank = m->one.weights->shape.rank;
    const int64_t rows = rank == 3 ? m->one.weights->shape.lens[1] : 0;
    const int64_t inner = joined ? rows / 2 : rows;
    if (joined && (rows % 2 || m->three.weights))
        return mgx_node_invalid(n, "fc1 of %lld rows for two operands, and fc3", (long long)rows);
    m->one.rows = rows;
    m->three.rows = m->two.columns = inner;
    m->one.columns = m->three.columns = m->two.rows = m->width;
    TRY(check_matrix(n, m, &m->one));
    TRY(check_matrix(n, m, &m->two));
    return m->three.weights ? check_matrix(n, m, &m->three) : MGX_OK;
}

// --- routing ---

// Member j of {tokens, experts} for every choice.
static struct mgx_ins *pick(struct mgx_node *n, const struct moe *m, struct mgx_ins *of)
{
    const int64_t all[2] = {m->tokens, m->experts};
    struct mgx_ins *ends = mgx_build_literal_ints(n, (int64_t[]){0, 1}, 2);
    struct mgx_ins *hot = mgx_build_emit(
        n, &mgx_op_onehot, MGX_ATTRS(mgx_int("axis", 2), mgx_int("depth", m->experts)),
        MGX_IN(m->chosen, mgx_build_convert(n, ends, MGX_FLOAT)));
    of = mgx_build_reshape(n, mgx_build_convert(n, of, MGX_FLOAT), all, 2);
    of = mgx_build_mul(n, hot, mgx_build_unsqueeze(n, of, (int64_t[]){1}, 1));
    return mgx_build_reduce(n, &mgx_op_reduce_sum, of, (int64_t[]){2}, 1, false);
}

static struct mgx_ins *softmax(struct mgx_node *n, struct mgx_ins *x)
{
    return mgx_build_emit(n, &mgx_op_softmax, MGX_ATTRS(mgx_int("axis", 1)), MGX_IN(x));
}

// Which experts see a token, and what they weigh.
static void route(struct mgx_node *n, struct moe *m, bool over_all)
{
    struct mgx_ins *p = over_all ? softmax(n, m->router) : m->router;
    struct mgx_ins *both = mgx_build_emit(
        n, &mgx_op_topk, MGX_ATTRS(mgx_int("k", m->k), mgx_int("axis", 1), mgx_int("largest", 1)),
        MGX_IN(p));
    m->chosen = mgx_build_member(n, both, 1);
    m->share = mgx_build_member(n, both, 0);
    if (m->weights)
        m->share = pick(n, m, m->weights);
    else if (!over_all)
        m->share = softmax(n, m->share);
    if (!mgx_onnx_int(n, "normalize_routing_weights", 0))
        return;
    struct mgx_ins *sum =
        mgx_build_reduce(n, &mgx_op_reduce_sum, m->share, (int64_t[]){1}, 1, true);
    m->share = mgx_build_div(n, m->share, sum);
}

// --- products ---

// What belongs to the experts of each row: all of it, or what was chosen.
static struct mgx_ins *select_experts(struct mgx_node *n, const struct moe *m, struct mgx_ins *x)
{
    if (!m->gathered || !x)
        return x;
    struct mgx_ins *which = mgx_build_reshape(n, m->chosen, (int64_t[]){m->tokens * m->k}, 1);
    return mgx_build_gather(n, x, which, 0);
}

static struct mgx_ins *unpack(struct mgx_node *n, const struct layer *l, struct mgx_ins *x)
{
    return l->bits == 8 ? x
                        : mgx_build_emit(n, &mgx_op_unpack_nbits,
                                         MGX_ATTRS(mgx_int("bits", l->bits)), MGX_IN(x));
}

// {matrices, rows, columns} from what is packed.
static struct mgx_ins *dequantize(struct mgx_node *n, const struct moe *m, const struct layer *l,
                                  int64_t matrices)
{
    const int64_t blocks = l->columns / l->block, rows = matrices * l->rows;
    const int64_t per = l->scale->shape.rank == 3 ? blocks : l->rows;
    struct mgx_ins *in[3] = {select_experts(n, m, l->weights), select_experts(n, m, l->scale)};
    in[0] = mgx_build_reshape(n, in[0], (int64_t[]){rows, blocks, l->block * l->bits / 8}, 3);
    in[1] = mgx_build_reshape(n, in[1], (int64_t[]){rows, blocks}, 2);
    if (l->zero) { // the last byte of a row of them may be filled up
        in[2] = unpack(n, l, select_experts(n, m, l->zero));
        in[2] = in[2] ? mgx_build_slice(n, in[2], in[2]->shape.rank - 1, 0, per) : NULL;
        in[2] = mgx_build_reshape(n, in[2], (int64_t[]){rows, blocks}, 2);
    }
    struct mgx_ins *y = mgx_build_emit_n(
        n, &mgx_op_dequantize_blocks,
        MGX_ATTRS(mgx_int("bits", l->bits), mgx_int("columns", l->columns)), in, l->zero ? 3 : 2);
    y = mgx_build_reshape(n, y, (int64_t[]){matrices, l->rows, l->columns}, 3);
    return mgx_build_convert(n, y, m->type);
}

static struct mgx_ins *apply(struct mgx_node *n, const struct moe *m, const struct layer *l,
                             struct mgx_ins *x)
{
    const int64_t matrices = m->gathered ? m->tokens * m->k : m->experts;
    struct mgx_ins *w = l->scale ? dequantize(n, m, l, matrices) : select_experts(n, m, l->weights);
    w = mgx_build_transpose(n, w, (int64_t[]){0, 2, 1}, 3);
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_dot, x, w);
    struct mgx_ins *bias = select_experts(n, m, l->bias);
    return bias ? mgx_build_add(n, y, mgx_build_unsqueeze(n, bias, (int64_t[]){1}, 1)) : y;
}

// --- activations ---

// Operand i of two that lie side by side, number by number (fusion 1) or one behind the other.
static struct mgx_ins *half_of(struct mgx_node *n, const struct moe *m, struct mgx_ins *h, int i,
                               bool interleaved)
{
    const int64_t inner = m->two.columns;
    if (!interleaved || !h)
        return h ? mgx_build_slice(n, h, 2, i * inner, (i + 1) * inner) : NULL;
    h = mgx_build_reshape(n, h, (int64_t[]){0, 0, inner, 2}, 4);
    return mgx_build_squeeze(n, mgx_build_slice(n, h, 3, i, i + 1), (int64_t[]){3}, 1);
}

// gate * sigmoid(alpha gate) * (up + beta), both kept within a limit.
static struct mgx_ins *swiglu(struct mgx_node *n, struct mgx_ins *gate, struct mgx_ins *up)
{
    const double alpha = mgx_onnx_real(n, "activation_alpha", 1),
                 beta = mgx_onnx_real(n, "activation_beta", 0),
                 limit = mgx_onnx_real(n, "swiglu_limit", INFINITY);
    const bool later = mgx_onnx_int(n, "swiglu_limit_after_activation", 0) != 0;
    const bool limited = isfinite(limit);
    if (limited && !later)
        gate = mgx_build_with(n, &mgx_op_min, gate, limit);
    gate =
        mgx_build_mul(n, gate, mgx_build_sigmoid(n, mgx_build_with(n, &mgx_op_mul, gate, alpha)));
    if (limited && later)
        gate = mgx_build_with(n, &mgx_op_min, gate, limit);
    up = limited ? mgx_build_clamp(n, up, -limit, limit) : up;
    return mgx_build_mul(n, gate, beta != 0 ? mgx_build_with(n, &mgx_op_add, up, beta) : up);
}

static enum mgx_status activate(struct mgx_node *n, const char *how, struct mgx_ins **h)
{
    struct mgx_ins *x = *h;
    if (strcmp(how, "relu") == 0)
        *h = mgx_build_relu(n, x);
    else if (strcmp(how, "relu2") == 0)
        *h = mgx_build_mul(n, mgx_build_relu(n, x), mgx_build_relu(n, x));
    else if (strcmp(how, "gelu") == 0)
        *h = mgx_build_gelu(n, x, true);
    else if (strcmp(how, "silu") == 0)
        *h = mgx_build_mul(n, x, mgx_build_sigmoid(n, x));
    else if (strcmp(how, "identity") != 0)
        return mgx_node_unsupported(n, "activation_type %s", how);
    return MGX_OK;
}

// f of the first product of rows x, and of the third where there is one.
static enum mgx_status inner_of(struct mgx_node *n, const struct moe *m, struct mgx_ins *x,
                                struct mgx_ins **out)
{
    const char *how = mgx_onnx_text(n, "activation_type", "relu");
    const int64_t fusion = mgx_onnx_int(n, "swiglu_fusion", 0);
    struct mgx_ins *h = apply(n, m, &m->one, x), *up = NULL;
    if (m->three.weights)
        up = apply(n, m, &m->three, x);
    if (is_gated(n) && fusion != 0) {
        up = half_of(n, m, h, 1, fusion == 1);
        h = half_of(n, m, h, 0, fusion == 1);
    }
    if (strcmp(how, "swiglu") == 0) {
        *out = swiglu(n, h, up);
        return MGX_OK;
    }
    TRY(activate(n, strcmp(how, "geglu") == 0 ? "gelu" : how, &h));
    *out = up ? mgx_build_mul(n, h, up) : h;
    return MGX_OK;
}

// --- the sum ---

// A row for each choice, or one matrix of tokens for all experts.
static struct mgx_ins *rows_of(struct mgx_node *n, const struct moe *m)
{
    struct mgx_ins *x = mgx_build_unsqueeze(n, m->x, (int64_t[]){m->gathered ? 1 : 0}, 1);
    if (!m->gathered)
        return x;
    x = mgx_build_expand(n, x, 3, (int64_t[]){m->tokens, m->k, m->width});
    return mgx_build_reshape(n, x, (int64_t[]){m->tokens * m->k, 1, m->width}, 3);
}

// {experts, tokens, 1}: what each expert weighs for each token, 0 for those not chosen.
static struct mgx_ins *spread_shares(struct mgx_node *n, const struct moe *m)
{
    struct mgx_ins *ends = mgx_build_literal_ints(n, (int64_t[]){0, 1}, 2);
    struct mgx_ins *hot = mgx_build_emit(
        n, &mgx_op_onehot, MGX_ATTRS(mgx_int("axis", 2), mgx_int("depth", m->experts)),
        MGX_IN(m->chosen, mgx_build_convert(n, ends, MGX_FLOAT)));
    hot = mgx_build_mul(n, hot, mgx_build_unsqueeze(n, m->share, (int64_t[]){2}, 1));
    hot = mgx_build_reduce(n, &mgx_op_reduce_sum, hot, (int64_t[]){1}, 1, false);
    hot = mgx_build_transpose(n, hot, (int64_t[]){1, 0}, 2);
    return mgx_build_unsqueeze(n, hot, (int64_t[]){2}, 1);
}

static enum mgx_status sum_experts(struct mgx_node *n, const struct moe *m)
{
    struct mgx_ins *h = NULL, *share;
    TRY(inner_of(n, m, rows_of(n, m), &h));
    struct mgx_ins *y = mgx_build_convert(n, apply(n, m, &m->two, h), MGX_FLOAT);
    if (m->gathered) {
        y = mgx_build_reshape(n, y, (int64_t[]){m->tokens, m->k, m->width}, 3);
        share = mgx_build_unsqueeze(n, m->share, (int64_t[]){2}, 1);
    } else {
        share = spread_shares(n, m);
    }
    y = mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_mul(n, y, share),
                         (int64_t[]){m->gathered ? 1 : 0}, 1, false);
    y = mgx_build_convert(n, y, m->type);
    n->out[0] = mgx_build_reshape_like(n, y, &n->in[0]->shape);
    return mgx_node_status(n);
}

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    if (mgx_onnx_int(n, "use_sparse_mixer", 0))
        return mgx_node_unsupported(n, "use_sparse_mixer");
    if (n->in_count < 5 || !n->in[0] || !n->in[1] || !n->in[2])
        return mgx_node_invalid(n, "%d inputs: tokens, a router and two matrices are required",
                                n->in_count);
    return MGX_OK;
}

static enum mgx_status moe(struct mgx_node *n)
{
    TRY(refuse_variants(n));
    if (!n->in[4] || n->in_count > 8)
        return mgx_node_invalid(n, "%d inputs, of which fc2 is required", n->in_count);
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct moe m = {
        .one = {.weights = n->in[2], .bias = mgx_node_in(n, 3), .name = "fc1"},
        .two = {.weights = n->in[4], .bias = mgx_node_in(n, 5), .name = "fc2"},
        .three = {.weights = mgx_node_in(n, 6), .bias = mgx_node_in(n, 7), .name = "fc3"}};
    TRY(read_tokens(n, &m));
    TRY(read_layers(n, &m));
    route(n, &m, true);
    return sum_experts(n, &m);
}
const struct mgx_onnx_op mgx_onnx_ms_moe = {
    .name = "MoE", .domain = "com.microsoft", .import = moe};

// --- QMoE ---

enum { FIRST = 2, SECOND = 5, THIRD = 8, ZEROS = 11, WEIGHTS = 14 };

// Weights, scales, bias at input `at` and behind, zero points at input ZEROS + i.
static struct layer packed_layer(struct mgx_node *n, int at, int i)
{
    static const char *const names[3] = {"fc1", "fc2", "fc3"};
    static const char *const bits[3] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                        "fc3_expert_weight_bits"};
    return (struct layer){.weights = mgx_node_in(n, at),
                          .scale = mgx_node_in(n, at + 1),
                          .bias = mgx_node_in(n, at + 2),
                          .zero = mgx_node_in(n, ZEROS + i),
                          .bits =
                              mgx_onnx_int(n, bits[i], mgx_onnx_int(n, "expert_weight_bits", 4)),
                          .name = names[i]};
}

// Scales {experts, rows} or {experts, rows, blocks}, and zero points, so many bits each, whose rows
// fill bytes.
static enum mgx_status check_packed(struct mgx_node *n, const struct moe *m, struct layer *l)
{
    const struct mgx_shape *s = &l->scale->shape;
    const int64_t asked = mgx_onnx_int(n, "block_size", 0);
    l->block = asked > 0 ? asked : l->columns;
    if (asked < 0 || l->block < 1 || l->columns % l->block != 0 || l->block * l->bits % 8 != 0)
        return mgx_node_invalid(n, "%s: %lld columns do not make blocks of %lld", l->name,
                                (long long)l->columns, (long long)l->block);
    const int64_t blocks = l->columns / l->block, per = s->rank == 3 ? blocks : l->rows;
    const bool flat = s->rank == 2 && blocks == 1;
    if ((s->rank != 3 && !flat) || s->lens[0] != m->experts || s->lens[1] != l->rows ||
        (s->rank == 3 && s->lens[2] != blocks))
        return mgx_node_invalid(n, "%s: scales of rank %d do not fit %lld rows of %lld blocks",
                                l->name, s->rank, (long long)l->rows, (long long)blocks);
    const struct mgx_shape *z = l->zero ? &l->zero->shape : NULL;
    if (z && (z->type != MGX_UINT8 || z->rank != s->rank || z->lens[0] != m->experts ||
              z->lens[z->rank - 1] != (per * l->bits + 7) / 8 ||
              (z->rank == 3 && z->lens[1] != l->rows)))
        return mgx_node_invalid(n, "%s: zero points of rank %d do not fit its scales", l->name,
                                z->rank);
    return MGX_OK;
}

static enum mgx_status check_quantized(struct mgx_node *n)
{
    const char *how = mgx_onnx_text(n, "quant_type", "int");
    if (strcmp(how, "int") != 0)
        return mgx_node_unsupported(n, "quant_type %s", how);
    if (mgx_onnx_int(n, "weights_prepacked", -1) == 1)
        return mgx_node_unsupported(n, "weights packed for one device");
    return MGX_OK;
}

static enum mgx_status check_layer(struct mgx_node *n, const struct layer *l)
{
    if (!l->weights || !l->scale)
        return mgx_node_invalid(n, "%s without weights or without scales", l->name);
    if (l->weights->shape.type != MGX_UINT8)
        return mgx_node_invalid(n, "%s is of type %s, not of bytes", l->name,
                                mgx_type_name(l->weights->shape.type));
    if (l->bits != 2 && l->bits != 4 && l->bits != 8)
        return mgx_node_unsupported(n, "weights of %lld bits, not 2, 4 or 8", (long long)l->bits);
    return MGX_OK;
}

static enum mgx_status qmoe(struct mgx_node *n)
{
    TRY(refuse_variants(n));
    TRY(check_quantized(n));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct moe m = {.one = packed_layer(n, FIRST, 0),
                    .two = packed_layer(n, SECOND, 1),
                    .three = packed_layer(n, THIRD, 2),
                    .weights = mgx_node_in(n, WEIGHTS)};
    struct layer *const layers[3] = {&m.one, &m.two, &m.three};
    const int count = m.three.weights ? 3 : 2;
    for (int i = 0; i < count; i++)
        TRY(check_layer(n, layers[i]));
    TRY(read_tokens(n, &m));
    TRY(read_layers(n, &m));
    for (int i = 0; i < count; i++)
        TRY(check_packed(n, &m, layers[i]));
    if (m.weights && !mgx_shape_same_lens(&m.weights->shape, &n->in[1]->shape))
        return mgx_build_misfit(n, "router_weights", m.weights, "a router of", n->in[1]);
    route(n, &m, false);
    return sum_experts(n, &m);
}
const struct mgx_onnx_op mgx_onnx_ms_qmoe = {
    .name = "QMoE", .domain = "com.microsoft", .import = qmoe};
