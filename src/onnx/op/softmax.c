// SPDX-License-Identifier: MIT
// Softmax, LogSoftmax, Hardmax. Before opset 13 the axes from `axis` on are taken together as one.
#include "onnx/build.h"

#include <assert.h>

static struct mgx_ins *hardmax(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    if (!x)
        return NULL;
    struct mgx_ins *best =
        mgx_build_emit(n, &mgx_op_argmax, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x));
    struct mgx_ins *index = mgx_build_iota(n, MGX_INT64, x->shape.lens[axis]);
    index = index ? mgx_build_per_axis(n, index, axis, x->shape.rank) : NULL;
    return mgx_build_convert(n, mgx_build_equal(n, index, best), x->shape.type);
}

static struct mgx_ins *apply(struct mgx_node *n, struct mgx_ins *x, int axis)
{
    if (!n->rule->op)
        return hardmax(n, x, axis);
    return mgx_build_emit(n, n->rule->op, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x));
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", n->opset < 13 ? 1 : -1), rank ? rank : 1, &axis));
    const bool together = n->opset < 13 && axis != rank - 1;
    bool known = n->rule->op || (!together && mgx_build_fixed_dim(x, axis));
    known |= mgx_build_is_static(x);
    if (!known)
        return mgx_onnx_defer(n);
    if (rank == 0) { // one value: itself the largest, its share 1
        n->out[0] = mgx_build_like(n, x, n->rule->op == &mgx_op_logsoftmax ? 0 : 1);
        return MGX_OK;
    }
    if (!together) {
        n->out[0] = apply(n, x, axis);
        return MGX_OK;
    }
    struct mgx_build_len lens[MGX_MAX_RANK];
    for (int i = 0; i < rank; i++)
        lens[i] = (struct mgx_build_len){x, i};
    struct mgx_ins *flat =
        mgx_build_emit(n, &mgx_op_flatten, MGX_ATTRS(mgx_int("axis", axis)), MGX_IN(x));
    n->out[0] = mgx_build_reshape_to(n, apply(n, flat, 1), lens, rank);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_softmax = {
    .name = "Softmax", .import = import, .op = &mgx_op_softmax};
const struct mgx_onnx_op mgx_onnx_log_softmax = {
    .name = "LogSoftmax", .import = import, .op = &mgx_op_logsoftmax};
const struct mgx_onnx_op mgx_onnx_hardmax = {.name = "Hardmax", .import = import};
