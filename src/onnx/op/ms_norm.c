// SPDX-License-Identifier: MIT
// Normalisations of com.microsoft: with a skip connection, of embeddings, and of groups of
// channels. All end in mgx_build_standardize or mgx_build_rms, so that passes meet one form; what
// is narrower than float is computed in float.
#include "onnx/build.h"
#include "onnx/quantize.h"

static struct mgx_ins *widen(struct mgx_node *n, struct mgx_ins *x)
{
    const bool narrow = x && mgx_type_is_half_or_bf16(x->shape.type);
    return narrow ? mgx_build_convert(n, x, MGX_FLOAT) : x;
}

static struct mgx_ins *sum(struct mgx_node *n, struct mgx_ins *a, struct mgx_ins *b)
{
    return b ? mgx_build_add(n, a, b) : a;
}

// --- skip connections ---

// The output of LayerNormalization (or RMS) of x over its last axis, and what else is asked for:
// mean, inverse deviation, x.
static enum mgx_status normalize_last(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *gamma,
                                      struct mgx_ins *beta, bool centred)
{
    struct mgx_ins *wide = widen(n, x), *mean = NULL, *inverse = NULL, *y;
    if (!wide)
        return MGX_OK;
    const double epsilon = mgx_onnx_real(n, "epsilon", 1e-12);
    const int64_t last[1] = {wide->shape.rank - 1};
    if (centred) {
        y = mgx_build_standardize(n, wide, last, 1, epsilon, &mean, &inverse);
    } else {
        struct mgx_ins *square =
            mgx_build_reduce(n, &mgx_op_reduce_mean, mgx_build_mul(n, wide, wide), last, 1, true);
        y = mgx_build_rms(n, wide, last, 1, epsilon);
        mean = square; // of what is normalised: nothing is centred here
        if (n->out_count > 2)
            inverse = mgx_build_rsqrt(n, mgx_build_with(n, &mgx_op_add, square, epsilon));
    }
    y = sum(n, mgx_build_mul(n, y, widen(n, gamma)), widen(n, beta));
    n->out[0] = mgx_build_convert(n, y, x->shape.type);
    if (n->out_count > 1)
        n->out[1] = mean;
    if (n->out_count > 2)
        n->out[2] = inverse;
    return MGX_OK;
}

// The skip connection adds to the input and makes no more of it; all else are vectors over the
// last axis.
static enum mgx_status check_skip(struct mgx_node *n)
{
    static const char *const names[] = {"gamma", "beta or bias", "bias"};
    const struct mgx_ins *x = n->in[0], *added = n->in[1];
    const int rank = mgx_build_rank(x), behind = rank - mgx_build_rank(added);
    bool fits = behind >= 0;
    for (int i = 0; fits && i < mgx_build_rank(added); i++)
        fits = mgx_shape_dim(&added->shape, i).min <= 1 ||
               mgx_build_may_agree(added, i, x, i + behind);
    if (!fits)
        return mgx_build_misfit(n, "skip", added, "an input of", x);
    for (int i = 2; i < n->in_count; i++) {
        const struct mgx_ins *v = n->in[i];
        if (v && (mgx_build_rank(v) != 1 || !mgx_build_may_agree(v, 0, x, rank - 1)))
            return mgx_build_misfit(n, names[i - 2], v, "an input of", x);
    }
    return MGX_OK;
}

static enum mgx_status skip(struct mgx_node *n, bool centred)
{
    TRY(mgx_node_need(n, 3, centred ? 5 : 4));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (mgx_build_rank(n->in[0]) < 1)
        return mgx_node_invalid(n, "the input is a scalar");
    TRY(check_skip(n));
    struct mgx_ins *x = mgx_build_add(n, n->in[0], n->in[1]);
    x = sum(n, x, mgx_node_in(n, centred ? 4 : 3));
    TRY(normalize_last(n, x, n->in[2], centred ? mgx_node_in(n, 3) : NULL, centred));
    if (n->out_count > 3)
        n->out[3] = x;
    return MGX_OK;
}

static enum mgx_status skip_layer(struct mgx_node *n)
{
    return skip(n, true);
}
const struct mgx_onnx_op mgx_onnx_ms_skip_layer_normalization = {.name = "SkipLayerNormalization",
                                                                 .domain = "com.microsoft",
                                                                 .import = skip_layer,
                                                                 .result = "0ff0"};

static enum mgx_status skip_simplified(struct mgx_node *n)
{
    return skip(n, false);
}
const struct mgx_onnx_op mgx_onnx_ms_skip_simplified_layer_normalization = {
    .name = "SkipSimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .import = skip_simplified,
    .result = "0ff0"};

// RMSNormalization by its older name, with the inverse deviation as an output.
static enum mgx_status simplified(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = widen(n, n->in[0]);
    const int rank = mgx_build_rank(n->in[0]);
    const double epsilon = mgx_onnx_real(n, "epsilon", 1e-5);
    int axis = 0;
    int64_t axes[MGX_MAX_RANK];
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -1), rank, &axis));
    for (int i = axis; i < rank; i++)
        axes[i - axis] = i;
    struct mgx_ins *y = mgx_build_rms(n, x, axes, rank - axis, epsilon);
    y = mgx_build_mul(n, y, widen(n, n->in[1]));
    n->out[0] = mgx_build_convert(n, y, n->in[1]->shape.type);
    if (n->out_count > 1) {
        struct mgx_ins *square = mgx_build_reduce(n, &mgx_op_reduce_mean, mgx_build_mul(n, x, x),
                                                  axes, rank - axis, true);
        n->out[1] = mgx_build_rsqrt(n, mgx_build_with(n, &mgx_op_add, square, epsilon));
    }
    return MGX_OK;
}
// Exporters write it in the standard domain as often as in their own.
const struct mgx_onnx_op mgx_onnx_simplified_layer_normalization = {
    .name = "SimplifiedLayerNormalization", .import = simplified, .result = "1f"};
const struct mgx_onnx_op mgx_onnx_ms_simplified_layer_normalization = {
    .name = "SimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .import = simplified,
    .result = "1f"};

// --- EmbedLayerNormalization ---

// How many tokens of each row the mask lets through; zeros without a mask.
static struct mgx_ins *token_counts(struct mgx_node *n)
{
    struct mgx_ins *mask = mgx_node_in(n, 7);
    if (!mask) {
        struct mgx_ins *ids = mgx_build_convert(n, n->in[0], MGX_INT32);
        return mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_with(n, &mgx_op_mul, ids, 0),
                                (int64_t[]){1}, 1, false);
    }
    struct mgx_ins *one = mgx_build_equal(n, mask, mgx_build_like(n, mask, 1));
    return mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_convert(n, one, MGX_INT32),
                            (int64_t[]){1}, 1, false);
}

// Word, position and segment embeddings of every token.
static struct mgx_ins *embed(struct mgx_node *n)
{
    struct mgx_ins *ids = n->in[0], *segment = mgx_node_in(n, 1), *place = mgx_node_in(n, 8);
    struct mgx_ins *positions = place ? mgx_build_gather(n, n->in[3], place, 0)
                                      : mgx_build_slice(n, n->in[3], 0, 0, ids->shape.lens[1]);
    struct mgx_ins *y = mgx_build_add(n, mgx_build_gather(n, n->in[2], ids, 0), positions);
    return segment ? mgx_build_add(n, y, mgx_build_gather(n, n->in[4], segment, 0)) : y;
}

static enum mgx_status embed_layer(struct mgx_node *n)
{
    if (n->in_count < 7 || n->in_count > 9)
        return mgx_node_invalid(n, "%d inputs, not 7 to 9", n->in_count);
    for (int i = 0; i < 7; i++)
        if (!n->in[i] && i != 1 && i != 4)
            return mgx_node_invalid(n, "input %d is required", i);
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (mgx_build_rank(n->in[0]) != 2 || mgx_build_rank(n->in[3]) != 2)
        return mgx_node_invalid(n, "ids have rank %d and positions rank %d, not 2",
                                mgx_build_rank(n->in[0]), mgx_build_rank(n->in[3]));
    if (n->in[1] && !n->in[4])
        return mgx_node_invalid(n, "segment ids without a segment embedding");
    if (!mgx_build_is_static(n->in[0]) || !mgx_build_is_static(n->in[3]))
        return mgx_onnx_defer(n);
    if (!mgx_node_in(n, 8) && n->in[0]->shape.lens[1] > n->in[3]->shape.lens[0])
        return mgx_node_invalid(n, "%lld tokens with %lld position embeddings",
                                (long long)n->in[0]->shape.lens[1],
                                (long long)n->in[3]->shape.lens[0]);
    struct mgx_ins *x = embed(n);
    TRY(normalize_last(n, x, n->in[5], n->in[6], true));
    if (n->out_count > 1)
        n->out[1] = token_counts(n);
    if (n->out_count > 2)
        n->out[2] = x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_embed_layer_normalization = {.name = "EmbedLayerNormalization",
                                                                  .domain = "com.microsoft",
                                                                  .import = embed_layer,
                                                                  .result = "2i2"};

// Tables, gamma and beta in bytes: at input 2 on, their scales at 8 on, their zero points at 13 on.
static enum mgx_status quantized_embed_layer(struct mgx_node *n)
{
    enum { TABLES = 5, FIRST = 2, SCALES = 8, ZEROS = 13 };
    struct mgx_ins *in[8] = {mgx_node_in(n, 0), mgx_node_in(n, 1)};
    if (n->in_count != ZEROS + TABLES)
        return mgx_node_invalid(n, "%d inputs, not %d", n->in_count, ZEROS + TABLES);
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    for (int i = 0; i < TABLES; i++) {
        struct mgx_ins *x = n->in[FIRST + i], *scale = n->in[SCALES + i];
        if (!x && i == 2)
            continue;
        if (!x || !scale)
            return mgx_node_invalid(n, "input %d or its scale is missing", FIRST + i);
        in[FIRST + i] = mgx_quantize_undo(n, x, scale, n->in[ZEROS + i], 0);
    }
    in[7] = n->in[7];
    struct mgx_node plain = *n;
    plain.in = in;
    plain.in_count = 8;
    return mgx_node_status(n) == MGX_OK ? embed_layer(&plain) : mgx_node_status(n);
}
const struct mgx_onnx_op mgx_onnx_ms_qembed = {.name = "QEmbedLayerNormalization",
                                               .domain = "com.microsoft",
                                               .import = quantized_embed_layer,
                                               .result = "8i8"};

// --- GroupNorm, SkipGroupNorm ---

// Channels are the last axis (channels_last, the default) or the second.
static enum mgx_status normalize_groups(struct mgx_node *n, struct mgx_ins *x)
{
    const int64_t groups = mgx_onnx_int(n, "groups", 0);
    const bool last = mgx_onnx_int(n, "channels_last", 1) != 0;
    const struct mgx_shape s = x->shape;
    const int axis = last ? s.rank - 1 : 1;
    if (s.rank < 3 || groups < 1 || s.lens[axis] % groups != 0)
        return mgx_node_invalid(n, "%lld groups in an input of rank %d", (long long)groups, s.rank);
    const int64_t each = s.lens[axis] / groups;
    const int64_t folded[4] = {s.lens[0], last ? -1 : groups, last ? groups : each,
                               last ? each : -1};
    struct mgx_ins *y = mgx_build_reshape(n, widen(n, x), folded, 4);
    const int64_t axes[2] = {last ? 1 : 2, 3};
    y = mgx_build_standardize(n, y, axes, 2, mgx_onnx_real(n, "epsilon", 1e-5), NULL, NULL);
    y = mgx_build_reshape_like(n, y, &s);
    struct mgx_ins *gamma = widen(n, n->in[1]), *beta = widen(n, n->in[2]);
    y = mgx_build_mul(n, y, mgx_build_per_axis(n, gamma, axis, s.rank));
    y = mgx_build_add(n, y, mgx_build_per_axis(n, beta, axis, s.rank));
    if (mgx_onnx_int(n, "activation", 0) == 1)
        y = mgx_build_mul(n, y, mgx_build_sigmoid(n, y));
    n->out[0] = mgx_build_convert(n, y, s.type);
    return MGX_OK;
}

static enum mgx_status group_norm(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    return normalize_groups(n, n->in[0]);
}
const struct mgx_onnx_op mgx_onnx_ms_group_norm = {
    .name = "GroupNorm", .domain = "com.microsoft", .import = group_norm};

// The skip connection is of x's shape or (N, 1, 1, C) or (N, C); channels are last.
static enum mgx_status skip_group_norm(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 4, 5));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0], *other = n->in[3];
    if (other->shape.rank == 2 && x->shape.rank == 4)
        other = mgx_build_unsqueeze(n, other, (int64_t[]){1, 2}, 2);
    x = sum(n, mgx_build_add(n, x, other), mgx_node_in(n, 4));
    if (!x)
        return MGX_OK;
    if (n->out_count > 1)
        n->out[1] = x;
    return normalize_groups(n, x);
}
const struct mgx_onnx_op mgx_onnx_ms_skip_group_norm = {
    .name = "SkipGroupNorm", .domain = "com.microsoft", .import = skip_group_norm};
