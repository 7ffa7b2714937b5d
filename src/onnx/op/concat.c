// SPDX-License-Identifier: MIT
// Concat. Opset 1 has axis 1 as default, later ones require it.
#include "onnx/build.h"

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (n->opset >= 4 && !mgx_onnx_has(n, "axis"))
        return mgx_node_invalid(n, "no axis given");
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 1), mgx_build_rank(n->in[0]), &axis));
    n->out[0] = mgx_build_concat(n, axis, n->in, n->in_count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_concat = {
    .name = "Concat", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
