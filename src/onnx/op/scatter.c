// SPDX-License-Identifier: MIT
// Scatter (deprecated), ScatterElements, ScatterND: one IR operator per kind of reduction.
#include <string.h>

#include "onnx/build.h"

struct kinds {
    const struct mgx_op *none, *add, *mul, *min, *max;
};

static enum mgx_status choose(struct mgx_node *n, const struct kinds *k, const struct mgx_op **out)
{
    const char *reduction = mgx_onnx_text(n, "reduction", "none");
    const struct {
        const char *name;
        const struct mgx_op *op;
    } rows[] = {
        {"none", k->none}, {"add", k->add}, {"mul", k->mul}, {"min", k->min}, {"max", k->max}};
    for (int i = 0; i < 5; i++)
        if (strcmp(rows[i].name, reduction) == 0) {
            *out = rows[i].op;
            return MGX_OK;
        }
    return mgx_node_invalid(n, "reduction \"%s\" is not one of none, add, mul, min, max",
                            reduction);
}

static enum mgx_status elements(struct mgx_node *n)
{
    static const struct kinds kinds = {&mgx_op_scatter_none, &mgx_op_scatter_add,
                                       &mgx_op_scatter_mul, &mgx_op_scatter_min,
                                       &mgx_op_scatter_max};
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const struct mgx_op *op = NULL;
    int axis = 0;
    TRY(choose(n, &kinds, &op));
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), mgx_build_rank(n->in[0]), &axis));
    n->out[0] = mgx_build_emit_n(n, op, MGX_ATTRS(mgx_int("axis", axis)), n->in, 3);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_scatter = {
    .name = "Scatter", .import = elements, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
const struct mgx_onnx_op mgx_onnx_scatter_elements = {
    .name = "ScatterElements", .import = elements, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status nd(struct mgx_node *n)
{
    static const struct kinds kinds = {&mgx_op_scatternd_none, &mgx_op_scatternd_add,
                                       &mgx_op_scatternd_mul, &mgx_op_scatternd_min,
                                       &mgx_op_scatternd_max};
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const struct mgx_op *op = NULL;
    TRY(choose(n, &kinds, &op));
    n->out[0] = mgx_build_emit_n(n, op, NULL, n->in, 3);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_scatter_nd = {
    .name = "ScatterND", .import = nd, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
