// SPDX-License-Identifier: MIT
// Einsum: the equation says it all.
#include "onnx/build.h"

static enum mgx_status import(struct mgx_node *n)
{
    bool later = false;
    TRY(mgx_node_need_all(n));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(mgx_build_einsum(n, mgx_onnx_text(n, "equation", ""), &later));
    return later ? mgx_onnx_defer(n) : MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_einsum = {.name = "Einsum", .import = import};
