// SPDX-License-Identifier: MIT
// DecoderMaskedMultiHeadAttention of com.microsoft: MultiHeadAttention of one token, with its
// inputs in another order. Queries may hold keys and values too; keys with heads are those of a
// cross-attention. A search by beams, which says whose cache each token is read from, is refused.
#include "base/size.h"
#include "onnx/build.h"

enum {
    QUERY,
    KEY,
    VALUE,
    MASK,
    SCORES,
    PAST_KEY,
    PAST_VALUE,
    PAST_LENGTH,
    BEAMS,
    INDIRECTION,
    BIAS
};

// Queries, keys and values side by side: the latter as wide as what the bias has left.
static enum mgx_status split_packed(struct mgx_node *n, struct mgx_ins **in)
{
    const struct mgx_shape *q = &n->in[QUERY]->shape;
    const struct mgx_ins *bias = mgx_node_in(n, BIAS), *past = mgx_node_in(n, PAST_KEY);
    const int64_t heads = mgx_onnx_int(n, "num_heads", 0);
    if (q->rank != 3 || heads < 1 || mgx_node_in(n, VALUE))
        return mgx_node_invalid(n, "queries of rank %d with values, without keys", q->rank);
    int64_t width = q->lens[2] / 3;
    if (past && past->shape.rank == 4 && past->shape.lens[3] < q->lens[2] / heads)
        width = past->shape.lens[3] * heads;
    if (width < 1 || q->lens[2] <= 2 * width || (bias && bias->shape.rank != 1))
        return mgx_node_invalid(n, "%lld channels of queries, keys and values",
                                (long long)q->lens[2]);
    in[0] = mgx_build_slice(n, n->in[QUERY], 2, 0, width);
    in[1] = mgx_build_slice(n, n->in[QUERY], 2, width, 2 * width);
    in[2] = mgx_build_slice(n, n->in[QUERY], 2, 2 * width, q->lens[2]);
    return mgx_node_status(n);
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 11));
    if (mgx_node_in(n, INDIRECTION))
        return mgx_node_unsupported(n, "cache_indirection, of a search by beams");
    int64_t past;
    const bool known =
        !mgx_node_in(n, PAST_LENGTH) || mgx_build_constant_int(n, PAST_LENGTH, &past);
    if (!known || !mgx_build_static(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *in[9] = {n->in[QUERY],
                             mgx_node_in(n, KEY),
                             mgx_node_in(n, VALUE),
                             mgx_node_in(n, BIAS),
                             mgx_node_in(n, MASK),
                             mgx_node_in(n, SCORES),
                             mgx_node_in(n, PAST_KEY),
                             mgx_node_in(n, PAST_VALUE),
                             mgx_node_in(n, PAST_LENGTH)};
    if (!in[1])
        TRY(split_packed(n, in));
    struct mgx_node plain = *n;
    plain.in = in;
    plain.in_count = MGX_COUNT(in);
    return mgx_onnx_ms_multi_head_attention.import(&plain);
}
const struct mgx_onnx_op mgx_onnx_ms_decoder_masked = {
    .name = "DecoderMaskedMultiHeadAttention", .domain = "com.microsoft", .import = import};
