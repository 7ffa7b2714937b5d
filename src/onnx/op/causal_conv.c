// SPDX-License-Identifier: MIT
// CausalConvWithState: a depthwise convolution over time behind the last k-1 inputs of the step
// before, whose own last k-1 inputs are handed on.
#include <string.h>

#include "onnx/build.h"

static struct mgx_ins *convolve(struct mgx_node *n, struct mgx_ins *x, int64_t channels)
{
    const int64_t none[2] = {0, 0}, one[1] = {1};
    struct mgx_ins *y =
        mgx_build_emit(n, &mgx_op_convolution,
                       MGX_ATTRS(mgx_ints("padding", none, 2), mgx_ints("stride", one, 1),
                                 mgx_ints("dilation", one, 1), mgx_int("group", channels)),
                       MGX_IN(x, n->in[1]));
    return mgx_node_in(n, 2) ? mgx_build_add(n, y, mgx_build_per_axis(n, n->in[2], 1, 3)) : y;
}

static enum mgx_status activate(struct mgx_node *n, struct mgx_ins **y)
{
    const char *name = mgx_onnx_text(n, "activation", "none");
    if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0)
        *y = mgx_build_mul(n, *y, mgx_build_sigmoid(n, *y));
    else if (strcmp(name, "none") != 0)
        return mgx_node_invalid(n, "activation \"%s\" is not one of none, silu, swish", name);
    return MGX_OK;
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 4));
    if (!mgx_build_is_static(n->in[0]) || !mgx_build_is_static(n->in[1]))
        return mgx_onnx_defer(n);
    const struct mgx_shape *x = &n->in[0]->shape, *w = &n->in[1]->shape;
    if (x->rank != 3 || w->rank != 3 || w->lens[2] < 1)
        return mgx_node_invalid(n, "input has rank %d and weights have rank %d, not 3", x->rank,
                                w->rank);
    const int64_t before = w->lens[2] - 1, pads[6] = {0, 0, before, 0, 0, 0};
    struct mgx_ins *past = mgx_node_in(n, 3);
    struct mgx_ins *whole =
        past ? mgx_build_concat(n, 2, (struct mgx_ins *const[]){past, n->in[0]}, 2)
             : mgx_build_pad(n, n->in[0], pads, 0);
    n->out[0] = convolve(n, whole, x->lens[1]);
    TRY(activate(n, &n->out[0]));
    if (n->out_count > 1 && whole)
        n->out[1] =
            mgx_build_slice(n, whole, 2, whole->shape.lens[2] - before, whole->shape.lens[2]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_causal_conv = {.name = "CausalConvWithState", .import = import};
