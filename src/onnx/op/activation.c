// SPDX-License-Identifier: MIT
// Activations with attributes, and those the IR composes: each rule is the operator's equation.
#include <string.h>

#include "onnx/build.h"

static enum mgx_status elu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] =
        mgx_build_emit(n, &mgx_op_elu, MGX_ATTRS(mgx_real("alpha", mgx_onnx_real(n, "alpha", 1))),
                       MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_elu = {.name = "Elu", .import = elu};

static enum mgx_status leaky_relu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_emit(n, &mgx_op_leaky_relu,
                               MGX_ATTRS(mgx_real("alpha", mgx_onnx_real(n, "alpha", 0.01))),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_leaky_relu = {.name = "LeakyRelu", .import = leaky_relu};

// max(x, 0) + min(alpha * (exp(x / divisor) - 1), 0)
static struct mgx_ins *exponential_unit(struct mgx_node *n, struct mgx_ins *x, double alpha,
                                        double divisor)
{
    struct mgx_ins *scaled = divisor == 1 ? x : mgx_build_with(n, &mgx_op_div, x, divisor);
    struct mgx_ins *rise = mgx_build_with(n, &mgx_op_sub, mgx_build_exp(n, scaled), 1);
    struct mgx_ins *below =
        mgx_build_with(n, &mgx_op_min, mgx_build_with(n, &mgx_op_mul, rise, alpha), 0);
    return mgx_build_add(n, mgx_build_with(n, &mgx_op_max, x, 0), below);
}

// Types narrower than float are computed in it, and rounded once.
static struct mgx_ins *at_least_float(struct mgx_node *n, struct mgx_ins *x)
{
    const bool narrow = mgx_type_is_float(x->shape.type) && mgx_type_size(x->shape.type) < 4;
    return narrow ? mgx_build_convert(n, x, MGX_FLOAT) : x;
}

static enum mgx_status selu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const bool first = n->opset < 6;
    const double alpha = mgx_onnx_real(n, "alpha", first ? 1.6732 : 1.67326319217681884765625);
    const double gamma = mgx_onnx_real(n, "gamma", first ? 1.0507 : 1.05070102214813232421875);
    struct mgx_ins *y = exponential_unit(n, at_least_float(n, n->in[0]), alpha, 1);
    n->out[0] =
        mgx_build_convert(n, mgx_build_with(n, &mgx_op_mul, y, gamma), n->in[0]->shape.type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_selu = {.name = "Selu", .import = selu};

static enum mgx_status celu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const double alpha = mgx_onnx_real(n, "alpha", 1);
    struct mgx_ins *y = exponential_unit(n, at_least_float(n, n->in[0]), alpha, alpha);
    n->out[0] = mgx_build_convert(n, y, n->in[0]->shape.type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_celu = {.name = "Celu", .import = celu};

// clip(alpha * x + beta, 0, 1)
static struct mgx_ins *hard_sigmoid(struct mgx_node *n, struct mgx_ins *x, double alpha,
                                    double beta)
{
    struct mgx_ins *line =
        mgx_build_with(n, &mgx_op_add, mgx_build_with(n, &mgx_op_mul, x, alpha), beta);
    return mgx_build_clamp(n, line, 0, 1);
}

static enum mgx_status import_hard_sigmoid(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] =
        hard_sigmoid(n, n->in[0], mgx_onnx_real(n, "alpha", 0.2), mgx_onnx_real(n, "beta", 0.5));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_hard_sigmoid = {.name = "HardSigmoid",
                                                  .import = import_hard_sigmoid};

static enum mgx_status hard_swish(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_mul(n, n->in[0], hard_sigmoid(n, n->in[0], 1.0 / 6, 0.5));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_hard_swish = {.name = "HardSwish", .import = hard_swish};

static enum mgx_status thresholded_relu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    struct mgx_ins *alpha = mgx_build_like(n, x, mgx_onnx_real(n, "alpha", 1));
    n->out[0] = mgx_build_where(n, mgx_build_greater(n, x, alpha), x, mgx_build_like(n, x, 0));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_thresholded_relu = {.name = "ThresholdedRelu",
                                                      .import = thresholded_relu};

// x + bias below -lambd, x - bias above lambd, else 0. Integers go through double: -lambd and
// x - bias need not exist in their type.
static enum mgx_status shrink(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const double bias = mgx_onnx_real(n, "bias", 0), lambd = mgx_onnx_real(n, "lambd", 0.5);
    const enum mgx_type type = n->in[0]->shape.type;
    struct mgx_ins *x =
        mgx_type_is_float(type) ? n->in[0] : mgx_build_convert(n, n->in[0], MGX_DOUBLE);
    struct mgx_ins *above =
        mgx_build_where(n, mgx_build_greater(n, x, mgx_build_like(n, x, lambd)),
                        mgx_build_with(n, &mgx_op_sub, x, bias), mgx_build_like(n, x, 0));
    struct mgx_ins *y = mgx_build_where(n, mgx_build_less(n, x, mgx_build_like(n, x, -lambd)),
                                        mgx_build_with(n, &mgx_op_add, x, bias), above);
    n->out[0] = mgx_build_convert(n, y, type);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_shrink = {.name = "Shrink", .import = shrink};

static enum mgx_status softplus(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_softplus(n, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_softplus = {.name = "Softplus", .import = softplus};

static enum mgx_status mish(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_mul(n, n->in[0], mgx_build_tanh(n, mgx_build_softplus(n, n->in[0])));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_mish = {.name = "Mish", .import = mish};

static enum mgx_status softsign(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    n->out[0] = mgx_build_div(n, x, mgx_build_with(n, &mgx_op_add, mgx_build_abs(n, x), 1));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_softsign = {.name = "Softsign", .import = softsign};

// x * sigmoid(alpha * x)
static struct mgx_ins *swish(struct mgx_node *n, struct mgx_ins *x)
{
    const double alpha = mgx_onnx_real(n, "alpha", 1);
    struct mgx_ins *inner = alpha == 1 ? x : mgx_build_with(n, &mgx_op_mul, x, alpha);
    return mgx_build_mul(n, x, mgx_build_sigmoid(n, inner));
}

static enum mgx_status import_swish(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = swish(n, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_swish = {.name = "Swish", .import = import_swish};

static enum mgx_status swiglu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    n->out[0] = mgx_build_mul(n, swish(n, n->in[0]), n->in[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_swiglu = {.name = "SwiGLU", .import = swiglu};

static enum mgx_status gelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_node_need_floats(n, 1));
    const char *form = mgx_onnx_text(n, "approximate", "none");
    if (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)
        return mgx_node_invalid(n, "approximate is \"%s\", not none or tanh", form);
    n->out[0] = mgx_build_gelu(n, n->in[0], form[0] == 't');
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_gelu = {.name = "Gelu", .import = gelu};

// Before opset 7 a slope of one value per channel lies along axis 1.
static enum mgx_status prelu(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0], *slope = n->in[1];
    const bool per_channel = n->opset < 7 && mgx_build_rank(slope) == 1 &&
                             !(mgx_build_is_static(slope) && slope->shape.lens[0] == 1);
    if (per_channel && mgx_build_rank(x) > 1)
        slope = mgx_build_per_axis(n, slope, 1, mgx_build_rank(x));
    n->out[0] = mgx_build_binary(n, &mgx_op_prelu, x, slope);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_prelu = {.name = "PRelu", .import = prelu};

// --- clip ---

// The bound at input i, else attribute `name` (its place before opset 11), else NULL: no bound.
static struct mgx_ins *bound(struct mgx_node *n, const char *name, int i)
{
    struct mgx_ins *given = mgx_node_in(n, i);
    if (given && mgx_type_is_number(given->shape.type))
        return mgx_build_convert(n, given, n->in[0]->shape.type);
    if (given)
        return given; // refused where its type meets the others
    return mgx_onnx_has(n, name) ? mgx_build_like(n, n->in[0], mgx_onnx_real(n, name, 0)) : NULL;
}

static enum mgx_status clip(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *v[3] = {n->in[0], bound(n, "min", 1), bound(n, "max", 2)};
    if (v[1] && v[2]) {
        TRY(mgx_build_broadcast(n, v, 3));
        n->out[0] = mgx_build_emit_n(n, &mgx_op_clip, NULL, v, 3);
    } else if (v[1]) {
        n->out[0] = mgx_build_max(n, v[0], v[1]);
    } else if (v[2]) {
        n->out[0] = mgx_build_min(n, v[0], v[2]);
    } else {
        n->out[0] = mgx_build_unary(n, &mgx_op_identity, v[0]);
    }
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_clip = {.name = "Clip", .import = clip};
