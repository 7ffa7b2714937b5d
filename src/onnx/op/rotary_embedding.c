// SPDX-License-Identifier: MIT
// RotaryEmbedding: pairs of entries of a head turn by an angle that depends on the token's
// position.
//
//     (x1, x2) -> (cos * x1 - sin * x2, sin * x1 + cos * x2)
//
// x1, x2 are the two halves of the rotated part, or its even and odd entries when interleaved. On
// (batch, heads, tokens, size); the caches become (batch, 1, tokens, size/2).
#include "onnx/build.h"

// The angle's function per token and pair, from the cache at the positions, if any are given.
static struct mgx_ins *per_token(struct mgx_node *n, struct mgx_ins *cache)
{
    struct mgx_ins *positions = mgx_node_in(n, 3);
    struct mgx_ins *rows = positions ? mgx_build_gather(n, cache, positions, 0) : cache;
    return mgx_build_unsqueeze(n, rows, (int64_t[]){1}, 1);
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 4));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    const int64_t heads = mgx_onnx_int(n, "num_heads", 0);
    if (rank != 3 && rank != 4)
        return mgx_node_invalid(n, "input has rank %d, not 3 or 4", rank);
    if (!mgx_build_fixed_dim(x, rank - 1))
        return mgx_onnx_defer(n);
    if (rank == 3 && (heads < 1 || x->shape.lens[2] % heads != 0))
        return mgx_node_invalid(n, "%lld channels with %lld heads", (long long)x->shape.lens[2],
                                (long long)heads);
    if (rank == 3)
        x = mgx_build_split_heads(n, x, heads);
    if (!x)
        return MGX_OK;
    const int64_t size = x->shape.lens[3], asked = mgx_onnx_int(n, "rotary_embedding_dim", 0);
    const int64_t part = asked ? asked : size;
    if (part < 2 || part > size || part % 2 != 0)
        return mgx_node_invalid(n, "%lld of %lld entries cannot be rotated", (long long)part,
                                (long long)size);
    x = mgx_build_rotate(n, x, per_token(n, n->in[1]), per_token(n, n->in[2]), part,
                         mgx_onnx_int(n, "interleaved", 0) != 0);
    n->out[0] = rank == 3 ? mgx_build_merge_heads(n, x) : x;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_rotary_embedding = {
    .name = "RotaryEmbedding", .since = 23, .import = import};
