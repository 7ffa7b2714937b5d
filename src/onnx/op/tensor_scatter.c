// SPDX-License-Identifier: MIT
// TensorScatter: writes new entries into a cache, from a place per batch entry on.
//
// With the sequence axis moved next to the batch it is one scatternd_none whose indices are
// (batch, first + i), the latter modulo the cache's length in circular mode.
#include <string.h>

#include "onnx/build.h"

// (batch, count, 2): where each entry goes, of updates along `axis`.
static struct mgx_ins *places(struct mgx_node *n, int axis)
{
    const bool circular = strcmp(mgx_onnx_text(n, "mode", "linear"), "circular") == 0;
    struct mgx_ins *b = mgx_build_indices(n, n->in[0], 0), *first = mgx_node_in(n, 2);
    struct mgx_ins *i = mgx_build_indices(n, n->in[1], axis);
    b = b ? mgx_build_per_axis(n, b, 0, 2) : NULL;
    if (first) // one for all entries, or one each
        i = mgx_build_add(n, i,
                          mgx_build_per_axis(n, mgx_build_convert(n, first, MGX_INT64), 0, 2));
    if (circular)
        i = mgx_build_mod(n, i, mgx_build_dim(n, n->in[0], axis));
    struct mgx_ins *none = mgx_build_with(n, &mgx_op_mul, i, 0);
    struct mgx_ins *both[2] = {mgx_build_add(n, b, none),
                               mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, b, 0), i)};
    for (int k = 0; k < 2; k++)
        both[k] = mgx_build_unsqueeze(n, both[k], (int64_t[]){2}, 1);
    return mgx_build_concat(n, 2, both, 2);
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const struct mgx_shape *cache = &n->in[0]->shape, *update = &n->in[1]->shape;
    const struct mgx_ins *first = mgx_node_in(n, 2);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", -2), cache->rank, &axis));
    if (axis == 0 || update->rank != cache->rank)
        return mgx_node_invalid(n, "axis %d of rank %d, update of rank %d", axis, cache->rank,
                                update->rank);
    if (first && mgx_build_rank(first) != 1)
        return mgx_node_invalid(n, "write_indices have rank %d, not 1", mgx_build_rank(first));
    int64_t perm[MGX_MAX_RANK] = {0, axis}, back[MGX_MAX_RANK];
    for (int i = 1, at = 2; i < cache->rank; i++)
        if (i != axis)
            perm[at++] = i;
    for (int i = 0; i < cache->rank; i++)
        back[perm[i]] = i;
    struct mgx_ins *in[3] = {mgx_build_transpose(n, n->in[0], perm, cache->rank), places(n, axis),
                             mgx_build_transpose(n, n->in[1], perm, cache->rank)};
    struct mgx_ins *y = mgx_build_emit_n(n, &mgx_op_scatternd_none, NULL, in, 3);
    n->out[0] = mgx_build_transpose(n, y, back, cache->rank);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_tensor_scatter = {
    .name = "TensorScatter", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
