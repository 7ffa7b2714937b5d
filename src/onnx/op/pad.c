// SPDX-License-Identifier: MIT
// Pad: pads as attribute `paddings` (opset 1), `pads` (2) or input (11), for some axes only since
// opset 18. Amounts and value that are not constant stay operands of the IR's pad.
#include <string.h>

#include "onnx/build.h"

static enum mgx_status read_mode(struct mgx_node *n, int64_t *mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = mgx_onnx_text(n, "mode", "constant");
    for (*mode = 0; *mode < 4; (*mode)++)
        if (strcmp(names[*mode], name) == 0)
            return MGX_OK;
    return mgx_node_invalid(n, "mode \"%s\" is not one of constant, reflect, edge, wrap", name);
}

// The amounts of all axes: begins, then ends.
static enum mgx_status read_pads(struct mgx_node *n, struct mgx_ints pads,
                                 const struct mgx_ints *axes, int64_t *all)
{
    const int rank = mgx_build_rank(n->in[0]), count = axes ? axes->count : rank;
    int64_t normal[MGX_MAX_RANK];
    if (pads.count != 2 * count)
        return mgx_node_invalid(n, "%d pads for %d axes", pads.count, count);
    if (axes)
        TRY(mgx_build_axes(n, *axes, rank, normal));
    for (int i = 0; i < count; i++) {
        const int64_t axis = axes ? normal[i] : i;
        all[axis] = pads.v[i];
        all[axis + rank] = pads.v[i + count];
    }
    return MGX_OK;
}

// Some exporters leave out the value and put the axes in its place: a list of integers where the
// padded values are others.
static bool axes_come_third(const struct mgx_node *n)
{
    const struct mgx_ins *third = mgx_node_in(n, 2);
    return n->opset >= 18 && third && !mgx_node_in(n, 3) && mgx_build_rank(third) == 1 &&
           mgx_type_is_integral(third->shape.type) && third->shape.type != n->in[0]->shape.type;
}

// Amounts and value that are known are attributes; `all` is NULL, and `filler` is not, where they
// are operands.
static struct mgx_ins *emit_pad(struct mgx_node *n, int64_t mode, double value, const int64_t *all,
                                struct mgx_ins *filler)
{
    const int count = 2 * mgx_build_rank(n->in[0]);
    if (all && !filler)
        return mgx_build_emit(n, &mgx_op_pad,
                              MGX_ATTRS(mgx_int("mode", mode), mgx_ints("pads", all, count),
                                        mgx_real("value", value)),
                              MGX_IN(n->in[0]));
    struct mgx_ins *in[3] = {n->in[0], all ? mgx_build_literal_ints(n, all, count) : n->in[1],
                             filler};
    return mgx_build_emit_n(n, &mgx_op_pad,
                            MGX_ATTRS(mgx_int("mode", mode), mgx_real("value", value)), in,
                            filler ? 3 : 2);
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 4));
    const bool third = axes_come_third(n);
    bool given = false, known = false, some = false, axes_known = false;
    struct mgx_ints pads = {0}, axes = {0};
    int64_t mode = 0, all[2 * MGX_MAX_RANK] = {0};
    TRY(mgx_onnx_ints_or_input(n, n->opset < 2 ? "paddings" : "pads", 1, &given, &known, &pads));
    TRY(mgx_onnx_ints_or_input(n, "axes", third ? 2 : 3, &some, &axes_known, &axes));
    TRY(read_mode(n, &mode));
    if (!given)
        return mgx_node_invalid(n, "no pads given");
    if (mgx_build_rank(n->in[0]) < 0 || !axes_known || (!known && some))
        return mgx_onnx_defer(n);
    double value = mgx_onnx_real(n, "value", 0); // an input since opset 11
    struct mgx_ins *filler = third ? NULL : mgx_node_in(n, 2);
    if (filler && mgx_build_constant_double(n, 2, &value))
        filler = NULL;
    if (known)
        TRY(read_pads(n, pads, some ? &axes : NULL, all));
    n->out[0] = emit_pad(n, mode, value, known ? all : NULL, filler);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_pad = {
    .name = "Pad", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
