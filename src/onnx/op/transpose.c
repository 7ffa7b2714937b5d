// SPDX-License-Identifier: MIT
// Transpose: the axes reversed unless `perm` says otherwise.
#include "onnx/build.h"

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0)
        return mgx_onnx_defer(n);
    int64_t normal[MGX_MAX_RANK];
    const struct mgx_ints perm = mgx_onnx_ints(n, "perm");
    if (mgx_onnx_has(n, "perm") && perm.count != rank)
        return mgx_node_invalid(n, "perm has %d entries for rank %d", perm.count, rank);
    if (perm.count)
        TRY(mgx_build_axes(n, perm, rank, normal));
    else
        for (int i = 0; i < rank; i++)
            normal[i] = rank - 1 - i;
    n->out[0] = mgx_build_transpose(n, n->in[0], normal, rank);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_transpose_ = {
    .name = "Transpose", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
