// SPDX-License-Identifier: MIT
// CausalConvWithState: a depthwise convolution over time behind the inputs of the steps before that
// it still sees, (k - 1) * dilation of them, the last ones of which are handed on.
//
// Batch and steps may be open. With channels_last time is the second axis; the convolution sees it
// as the last one all the same.
#include <string.h>

#include "onnx/build.h"

struct conv {
    int64_t channels, before, dilation; // before: steps of the state
    bool last;                          // channels are the last axis
};

static struct mgx_ins *convolve(struct mgx_node *n, const struct conv *c, struct mgx_ins *x)
{
    const int64_t none[2] = {0, 0}, one[1] = {1}, dilation[1] = {c->dilation};
    struct mgx_ins *y =
        mgx_build_emit(n, &mgx_op_convolution,
                       MGX_ATTRS(mgx_ints("padding", none, 2), mgx_ints("stride", one, 1),
                                 mgx_ints("dilation", dilation, 1), mgx_int("group", c->channels)),
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

static enum mgx_status refuse_variants(struct mgx_node *n)
{
    static const char *const none[] = {"state_window", "state_update_capacity", "state_length",
                                       "input_channels", "input_channel_offset"};
    for (int i = 0; i < 5; i++)
        if (mgx_onnx_int(n, none[i], 0))
            return mgx_node_unsupported(n, "%s", none[i]);
    if (mgx_onnx_int(n, "ndim", 1) != 1)
        return mgx_node_unsupported(n, "ndim %lld", (long long)mgx_onnx_int(n, "ndim", 1));
    return MGX_OK;
}

// Input, weights and state are batch, channels and steps.
static enum mgx_status check_ranks(struct mgx_node *n)
{
    static const struct {
        int at;
        const char *name;
    } operands[] = {{0, "input"}, {1, "weight"}, {3, "past_state"}};
    for (int i = 0; i < 3; i++) {
        const struct mgx_ins *x = mgx_node_in(n, operands[i].at);
        if (x && x->shape.rank != 3)
            return mgx_node_invalid(n, "%s, input %d, has rank %d, not 3", operands[i].name,
                                    operands[i].at, x->shape.rank);
    }
    return n->in[1]->shape.lens[2] >= 1 ? MGX_OK : mgx_node_invalid(n, "the weight has no steps");
}

static enum mgx_status read(struct mgx_node *n, struct conv *c)
{
    const struct mgx_shape *w = &n->in[1]->shape;
    *c = (struct conv){.dilation = mgx_onnx_int(n, "dilation", 1),
                       .last = mgx_onnx_int(n, "channels_last", 0) != 0};
    TRY(check_ranks(n));
    if (c->dilation < 1 || c->dilation > INT32_MAX || w->lens[2] > INT32_MAX)
        return mgx_node_invalid(n, "dilation is %lld", (long long)c->dilation);
    c->channels = w->lens[0];
    c->before = (w->lens[2] - 1) * c->dilation;
    return MGX_OK;
}

static struct mgx_ins *turn(struct mgx_node *n, const struct conv *c, struct mgx_ins *x)
{
    return c->last && x ? mgx_build_transpose(n, x, (int64_t[]){0, 2, 1}, 3) : x;
}

// The last steps of x; how many there are may be open.
static struct mgx_ins *last_steps(struct mgx_node *n, const struct conv *c, struct mgx_ins *x)
{
    if (c->before == 0 || mgx_build_fixed_dim(x, 2)) {
        const int64_t length = c->before ? x->shape.lens[2] : 0;
        return mgx_build_slice(n, x, 2, length - c->before, length);
    }
    return mgx_build_slice(n, x, 2, -c->before, INT64_MAX);
}

static enum mgx_status import(struct mgx_node *n)
{
    struct conv c;
    TRY(mgx_node_need(n, 2, 4));
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[1]))
        return mgx_onnx_defer(n);
    TRY(refuse_variants(n));
    TRY(read(n, &c));
    const int64_t pads[6] = {0, 0, c.before, 0, 0, 0};
    struct mgx_ins *past = turn(n, &c, mgx_node_in(n, 3)), *x = turn(n, &c, n->in[0]);
    struct mgx_ins *whole = past ? mgx_build_concat(n, 2, (struct mgx_ins *const[]){past, x}, 2)
                                 : mgx_build_pad(n, x, pads, 0);
    struct mgx_ins *y = convolve(n, &c, whole);
    TRY(activate(n, &y));
    n->out[0] = turn(n, &c, y);
    if (n->out_count > 1 && whole)
        n->out[1] = turn(n, &c, last_steps(n, &c, whole));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_causal_conv = {.name = "CausalConvWithState", .import = import};
const struct mgx_onnx_op mgx_onnx_ms_causal_conv = {
    .name = "CausalConvWithState", .domain = "com.microsoft", .import = import};
