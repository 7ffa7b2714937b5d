// SPDX-License-Identifier: MIT
// What TensorFlow's own optimiser makes of a product or convolution and what follows it:
// _FusedConv2D, _FusedDepthwiseConv2dNative, _FusedMatMul. They are taken apart again.
#include <string.h>

#include "tf/node.h"

static struct mgx_ins *activation(struct mgx_node *n, const char *name, struct mgx_ins *x)
{
    static const struct {
        const char *name;
        const struct mgx_op *op;
    } rows[] = {{"Relu", &mgx_op_relu}, {"Sigmoid", &mgx_op_sigmoid}, {"Tanh", &mgx_op_tanh}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            return mgx_build_unary(n, rows[i].op, x);
    if (strcmp(name, "Relu6") == 0)
        return mgx_build_clamp(n, x, 0, 6);
    const bool leaky = strcmp(name, "LeakyRelu") == 0;
    if (leaky || strcmp(name, "Elu") == 0)
        return mgx_build_emit(
            n, leaky ? &mgx_op_leaky_relu : &mgx_op_elu,
            MGX_ATTRS(mgx_real("alpha", leaky ? mgx_tf_real(n, "leakyrelu_alpha", 0.2) : 1)),
            MGX_IN(x));
    mgx_node_unsupported(n, "\"%.40s\" fused into another operator", name);
    return NULL;
}

// The rest of the inputs belong to what follows, in order.
static enum mgx_status follow(struct mgx_node *n, struct mgx_ins *y, struct mgx_strings steps)
{
    bool last = true;
    int next = 2;
    TRY(mgx_tf_channels_last(n, &last));
    for (int i = 0; y && i < steps.count; i++) {
        if (strcmp(steps.v[i], "BiasAdd") != 0 && strcmp(steps.v[i], "Add") != 0) {
            y = activation(n, steps.v[i], y);
            continue;
        }
        struct mgx_ins *other = mgx_node_in(n, next++);
        if (!other)
            return mgx_node_invalid(n, "%s has no input", steps.v[i]);
        const bool bias = other->shape.rank == 1 && !last;
        y = mgx_build_add(n, y, bias ? mgx_build_per_axis(n, other, 1, y->shape.rank) : other);
    }
    n->out[0] = y;
    return n->diag->status;
}

// The first two inputs by the rule of the operator alone, then what follows.
static enum mgx_status fused(struct mgx_node *n, const struct mgx_tf_op *alone)
{
    struct mgx_node inner = *n;
    TRY(mgx_node_need(n, 2, -1));
    inner.in_count = 2;
    inner.tf_rule = alone;
    TRY(alone->import(&inner));
    return follow(n, inner.out[0], mgx_tf_texts(n, "fused_ops"));
}

static enum mgx_status convolution(struct mgx_node *n)
{
    return fused(n, &mgx_tf_conv2d);
}
const struct mgx_tf_op mgx_tf_fused_conv2d = {.name = "_FusedConv2D", .import = convolution};

static enum mgx_status depthwise(struct mgx_node *n)
{
    return fused(n, &mgx_tf_depthwise_conv2d);
}
const struct mgx_tf_op mgx_tf_fused_depthwise = {.name = "_FusedDepthwiseConv2dNative",
                                                 .import = depthwise};

static enum mgx_status product(struct mgx_node *n)
{
    return fused(n, &mgx_tf_mat_mul);
}
const struct mgx_tf_op mgx_tf_fused_mat_mul = {.name = "_FusedMatMul", .import = product};
