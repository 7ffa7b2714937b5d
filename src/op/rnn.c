// SPDX-License-Identifier: MIT
// rnn: the simple recurrent cell, h' = f(x W' + h R' + bias). See reference/rnn.h for inputs and
// result.
#include "op/reference/rnn.h"

struct rnn {
    struct mgx_rnn_attr common;
};

static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
static const struct mgx_field fields[] = {MGX_INT(struct mgx_rnn_attr, hidden_size),
                                          MGX_TEXTS(struct mgx_rnn_attr, actv_func),
                                          MGX_ENUM(struct mgx_rnn_attr, direction, directions),
                                          MGX_REAL(struct mgx_rnn_attr, clip),
                                          MGX_REALS(struct mgx_rnn_attr, actv_alpha),
                                          MGX_REALS(struct mgx_rnn_attr, actv_beta),
                                          {0}};
static const char *const funcs[] = {"tanh", "tanh"};
static const struct rnn defaults = {.common = {.hidden_size = 1, .actv_func = {funcs, 2}}};

static void step(const struct mgx_rnn *r, const double *from, const double *back, double *h,
                 double *c)
{
    (void)c;
    for (int64_t j = 0; j < r->hidden; j++)
        h[j] = mgx_rnn_apply(r, 0, from[j] + back[j]);
}

static const struct mgx_rnn_cell cell = {.gates = 1, .funcs = 1, .step = step};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    return mgx_rnn_shape(c, &((const struct rnn *)c->attr)->common, &cell, MGX_RNN_HIDDEN, out);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    return mgx_rnn_compute(c, &((const struct rnn *)c->attr)->common, &cell, MGX_RNN_HIDDEN);
}

const struct mgx_op mgx_op_rnn = {
    .name = "rnn",
    .meaning = "h' = f(x W' + h R' + bias), all hidden states",
    .fields = fields,
    .attr_size = sizeof(struct rnn),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 6,
    .shape = shape,
    .compute = compute,
};
