// SPDX-License-Identifier: MIT
// MoE and QMoE of com.microsoft: every token goes through the k experts that a router prefers, and
// what they make of it is summed by the router's weights.
//
//     y[t] = sum of w[t][e] * (W2[e] f(W1[e] x[t] + b1[e]) + b2[e])        over the chosen experts e
//
// MoE weighs by the softmax over all experts, QMoE by that over those chosen, or by weights that
// the model brings. A choice is a row of expert_dot, which multiplies it by its expert's matrix,
// packed as that is. How many tokens there are may be open.
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
    struct mgx_ins *which;                // {tokens * k}: the same in a row
    int64_t width, experts, k;
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

// Inputs x and router, and how many there are of what. How many tokens may be open.
static enum mgx_status read_tokens(struct mgx_node *n, struct moe *m)
{
    const struct mgx_shape *x = &n->in[0]->shape, *r = &n->in[1]->shape;
    if ((x->rank != 2 && x->rank != 3) || r->rank != 2)
        return mgx_node_invalid(n, "tokens of rank %d with a router of rank %d", x->rank, r->rank);
    m->type = x->type;
    m->width = x->lens[x->rank - 1];
    m->experts = r->lens[1];
    m->k = mgx_onnx_int(n, "k", 1);
    if (m->width < 1 || (mgx_build_is_static(n->in[0]) && mgx_build_is_static(n->in[1]) &&
                         mgx_shape_elements(x) != r->lens[0] * m->width))
        return mgx_build_misfit(n, "a router of", n->in[1], "tokens", n->in[0]);
    if (m->k < 1 || m->k > m->experts)
        return mgx_node_invalid(n, "k is %lld of %lld experts", (long long)m->k,
                                (long long)m->experts);
    m->x = mgx_build_convert(n, n->in[0], MGX_FLOAT);
    m->x = mgx_build_reshape(n, m->x, (int64_t[]){-1, m->width}, 2);
    m->router = mgx_build_convert(n, n->in[1], MGX_FLOAT);
    return mgx_node_status(n);
}

// All is known but how many tokens there are.
static bool is_known(const struct mgx_node *n)
{
    for (int i = 0; i < n->in_count; i++) {
        const struct mgx_ins *x = n->in[i];
        const bool open = i < 2 || i == 14; // tokens and what a router says of them
        if (x && !mgx_build_is_static(x) &&
            (!open || mgx_build_rank(x) < 1 || !mgx_build_fixed_dim(x, mgx_build_rank(x) - 1)))
            return false;
    }
    return true;
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

// Of every choice what `of` {tokens, experts} says.
static struct mgx_ins *pick(struct mgx_node *n, const struct moe *m, struct mgx_ins *of)
{
    struct mgx_ins *ends = mgx_build_literal_ints(n, (int64_t[]){0, 1}, 2);
    struct mgx_ins *hot = mgx_build_emit(
        n, &mgx_op_onehot, MGX_ATTRS(mgx_int("axis", 2), mgx_int("depth", m->experts)),
        MGX_IN(m->chosen, mgx_build_convert(n, ends, MGX_FLOAT)));
    of = mgx_build_unsqueeze(n, mgx_build_convert(n, of, MGX_FLOAT), (int64_t[]){1}, 1);
    return mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_mul(n, hot, of), (int64_t[]){2}, 1,
                            false);
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
    m->which = mgx_build_reshape(n, m->chosen, (int64_t[]){-1}, 1);
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

static struct mgx_ins *unpack(struct mgx_node *n, const struct layer *l, struct mgx_ins *x)
{
    return l->bits == 8 ? x
                        : mgx_build_emit(n, &mgx_op_unpack_nbits,
                                         MGX_ATTRS(mgx_int("bits", l->bits)), MGX_IN(x));
}

// Packed weights, scales and zero points as expert_dot takes them.
static int packed_operands(struct mgx_node *n, const struct moe *m, const struct layer *l,
                           struct mgx_ins **in)
{
    const int64_t blocks = l->columns / l->block;
    const int64_t per = l->scale->shape.rank == 3 ? blocks : l->rows;
    const int64_t lens[4] = {m->experts, l->rows, blocks, l->block * l->bits / 8};
    in[0] = mgx_build_reshape(n, l->weights, lens, 4);
    in[1] = mgx_build_reshape(n, l->scale, lens, 3);
    if (!l->zero)
        return 2;
    struct mgx_ins *zero = unpack(n, l, l->zero); // the last byte of a row may be filled up
    zero = zero ? mgx_build_slice(n, zero, zero->shape.rank - 1, 0, per) : NULL;
    in[2] = mgx_build_reshape(n, zero, lens, 3);
    return 3;
}

// Rows x, of which each has `per` choices, by the experts chosen.
static struct mgx_ins *apply(struct mgx_node *n, const struct moe *m, const struct layer *l,
                             struct mgx_ins *x, int64_t per)
{
    struct mgx_ins *in[5] = {x, m->which, l->weights};
    const int more = l->scale ? packed_operands(n, m, l, in + 2) : 1;
    struct mgx_ins *y = mgx_build_emit_n(
        n, &mgx_op_expert_dot,
        MGX_ATTRS(mgx_int("bits", l->scale ? l->bits : 0), mgx_int("per", per)), in, 2 + more);
    if (!l->bias)
        return y;
    struct mgx_ins *bias = mgx_build_convert(n, l->bias, MGX_FLOAT);
    return mgx_build_add(n, y, mgx_build_gather(n, bias, m->which, 0));
}

// --- activations ---

// Operand i of two that lie side by side, number by number (fusion 1) or one behind the other.
static struct mgx_ins *half_of(struct mgx_node *n, const struct moe *m, struct mgx_ins *h, int i,
                               bool interleaved)
{
    const int64_t inner = m->two.columns;
    if (!interleaved || !h)
        return h ? mgx_build_slice(n, h, 1, i * inner, (i + 1) * inner) : NULL;
    h = mgx_build_reshape(n, h, (int64_t[]){0, inner, 2}, 3);
    return mgx_build_squeeze(n, mgx_build_slice(n, h, 2, i, i + 1), (int64_t[]){2}, 1);
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

// f of the first product, and of the third where there is one.
static enum mgx_status inner_of(struct mgx_node *n, const struct moe *m, struct mgx_ins **out)
{
    const char *how = mgx_onnx_text(n, "activation_type", "relu");
    const int64_t fusion = mgx_onnx_int(n, "swiglu_fusion", 0);
    struct mgx_ins *h = apply(n, m, &m->one, m->x, m->k), *up = NULL;
    if (m->three.weights)
        up = apply(n, m, &m->three, m->x, m->k);
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

// As the tokens came.
static struct mgx_ins *shape_back(struct mgx_node *n, const struct moe *m, struct mgx_ins *y)
{
    struct mgx_ins *x = n->in[0];
    if (x->shape.rank == 2)
        return y;
    if (mgx_build_is_static(x))
        return mgx_build_reshape_like(n, y, &x->shape);
    const struct mgx_build_len lens[3] = {{x, 0, 0, 0}, {x, 1, 0, 0}, {NULL, 0, m->width, 0}};
    return mgx_build_reshape_to(n, y, lens, 3);
}

static enum mgx_status sum_experts(struct mgx_node *n, const struct moe *m)
{
    struct mgx_ins *h = NULL;
    TRY(inner_of(n, m, &h));
    struct mgx_ins *y = apply(n, m, &m->two, h, 1);
    y = mgx_build_reshape(n, y, (int64_t[]){-1, m->k, m->width}, 3);
    y = mgx_build_mul(n, y, mgx_build_unsqueeze(n, m->share, (int64_t[]){2}, 1));
    y = mgx_build_reduce(n, &mgx_op_reduce_sum, y, (int64_t[]){1}, 1, false);
    n->out[0] = mgx_build_convert(n, shape_back(n, m, y), m->type);
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
    if (!is_known(n))
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
    if (!is_known(n))
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
    if (m.weights &&
        (mgx_build_rank(m.weights) != 2 || !mgx_build_may_agree(m.weights, 0, n->in[1], 0) ||
         !mgx_build_may_agree(m.weights, 1, n->in[1], 1)))
        return mgx_build_misfit(n, "router_weights", m.weights, "a router of", n->in[1]);
    route(n, &m, false);
    return sum_experts(n, &m);
}
const struct mgx_onnx_op mgx_onnx_ms_qmoe = {
    .name = "QMoE", .domain = "com.microsoft", .import = qmoe};
