// SPDX-License-Identifier: MIT
// RotaryEmbedding of com.microsoft: its positions are input 1, of which one number may stand for
// all.
#include <assert.h>

#include "onnx/build.h"

// Rows of a cache {positions, half} at {batch, tokens}, ready for mgx_build_rotate.
static struct mgx_ins *rows_at(struct mgx_node *n, struct mgx_ins *cache, struct mgx_ins *at)
{
    return mgx_build_unsqueeze(n, mgx_build_gather(n, cache, at, 0), (int64_t[]){1}, 1);
}

// {batch, tokens}: given as such, or one number for the first token.
static struct mgx_ins *positions_of(struct mgx_node *n, int64_t tokens)
{
    assert(tokens >= 0);
    struct mgx_ins *at = n->in[1];
    if (at->shape.rank == 2)
        return at;
    struct mgx_ins *i = mgx_build_iota(n, at->shape.type, tokens);
    return mgx_build_unsqueeze(n, mgx_build_add(n, i, at), (int64_t[]){0}, 1);
}

static enum mgx_status check_rotary(struct mgx_node *n)
{
    const struct mgx_shape *at = &n->in[1]->shape, *cos = &n->in[2]->shape, *sin = &n->in[3]->shape;
    const int rank = n->in[0]->shape.rank;
    if ((rank != 3 && rank != 4) || cos->rank != 2 || sin->rank != 2)
        return mgx_node_invalid(n, "input of rank %d, caches of rank %d and %d", rank, cos->rank,
                                sin->rank);
    if (!mgx_shape_same_lens(cos, sin))
        return mgx_node_invalid(n, "caches of %lld and %lld positions, %lld and %lld wide",
                                (long long)cos->lens[0], (long long)sin->lens[0],
                                (long long)cos->lens[1], (long long)sin->lens[1]);
    if (at->rank > 2 || (at->rank == 1 && at->lens[0] != 1))
        return mgx_node_invalid(n, "positions of rank %d", at->rank);
    if (at->rank == 2 && (!mgx_build_may_agree(n->in[1], 0, n->in[0], 0) ||
                          !mgx_build_may_agree(n->in[1], 1, n->in[0], rank - 2)))
        return mgx_build_misfit(n, "positions", n->in[1], "an input of", n->in[0]);
    const int64_t part = mgx_onnx_int(n, "rotary_embedding_dim", 0);
    if (part && part != 2 * cos->lens[1])
        return mgx_node_invalid(n, "rotary_embedding_dim is %lld, but the caches turn %lld entries",
                                (long long)part, 2 * (long long)cos->lens[1]);
    return MGX_OK;
}

// How many heads channels make, of which `part` entries are rotated.
static enum mgx_status count_heads(struct mgx_node *n, int64_t part, int64_t *heads)
{
    const struct mgx_shape *x = &n->in[0]->shape;
    const int64_t asked = mgx_onnx_int(n, "num_heads", 0), width = x->lens[x->rank - 1];
    if (part < 2 || (x->rank == 3 && asked == 0 && width % part != 0))
        return mgx_node_invalid(n, "%lld channels with a cache of %lld", (long long)width,
                                (long long)part / 2);
    *heads = asked ? asked : width / part;
    if (x->rank == 3 && (*heads < 1 || width % *heads != 0))
        return mgx_node_invalid(n, "%lld channels do not make %lld heads", (long long)width,
                                (long long)*heads);
    return MGX_OK;
}

static enum mgx_status rotary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 4, 4));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(check_rotary(n));
    struct mgx_ins *x = n->in[0];
    const int rank = x->shape.rank;
    const int64_t part = 2 * n->in[2]->shape.lens[1];
    int64_t heads = 0;
    TRY(count_heads(n, part, &heads));
    x = rank == 3 ? mgx_build_split_heads(n, x, heads) : x;
    if (!x)
        return mgx_node_status(n);
    if (part > x->shape.lens[3])
        return mgx_node_invalid(n, "%lld of %lld entries cannot be rotated", (long long)part,
                                (long long)x->shape.lens[3]);
    struct mgx_ins *at = positions_of(n, x->shape.lens[2]);
    x = mgx_build_rotate(n, x, rows_at(n, n->in[2], at), rows_at(n, n->in[3], at), part,
                         mgx_onnx_int(n, "interleaved", 0) != 0);
    n->out[0] = rank == 3 ? mgx_build_merge_heads(n, x) : x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_rotary_embedding = {
    .name = "RotaryEmbedding", .domain = "com.microsoft", .import = rotary};
