// SPDX-License-Identifier: MIT
// gru: the gated recurrent unit, gates in the order z, r, h.
//
//     z = f(x Wz' + h Rz' + bias)             h~ = g(x Wh' + bias + (r * h) Rh' + bias)
//     r = f(x Wr' + h Rr' + bias)             h' = (1 - z) * h~ + z * h
//
// With linear_before_reset h~ = g(x Wh' + bias + r * (h Rh' + bias)). See reference/rnn.h for
// inputs and result.
#include "op/reference/rnn.h"

#include <assert.h>

struct gru {
    struct mgx_rnn_attr common;
    int64_t linear_before_reset;
};

static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
static const struct mgx_field fields[] = {MGX_INT(struct mgx_rnn_attr, hidden_size),
                                          MGX_TEXTS(struct mgx_rnn_attr, actv_func),
                                          MGX_ENUM(struct mgx_rnn_attr, direction, directions),
                                          MGX_REAL(struct mgx_rnn_attr, clip),
                                          MGX_INT(struct gru, linear_before_reset),
                                          MGX_REALS(struct mgx_rnn_attr, actv_alpha),
                                          MGX_REALS(struct mgx_rnn_attr, actv_beta),
                                          {0}};
static const char *const funcs[] = {"sigmoid", "tanh"};
static const struct gru defaults = {.common = {.hidden_size = 1, .actv_func = {funcs, 2}}};

// to += (r * h) Rh', where Rh' is the last third of the columns of back_weights.
static void add_reset(const struct mgx_rnn *r, const double *reset, const double *h, double *to)
{
    const int64_t n = r->hidden;
    for (int64_t k = 0; k < n; k++) {
        const double x = reset[k] * h[k];
        const double *weights = r->back_weights + k * 3 * n + 2 * n;
        for (int64_t j = 0; j < n; j++)
            to[j] += x * weights[j];
    }
}

static void step(const struct mgx_rnn *r, const double *from, const double *back, double *h,
                 double *reset)
{
    const struct gru *a = r->attr;
    const int64_t n = r->hidden;
    double *sum = r->spare; // of the candidate h~
    for (int64_t j = 0; j < n; j++) {
        reset[j] = mgx_rnn_apply(r, 0, from[n + j] + back[n + j]);
        sum[j] = from[2 * n + j];
        sum[j] += a->linear_before_reset ? reset[j] * back[2 * n + j] : r->back_bias[2 * n + j];
    }
    if (!a->linear_before_reset)
        add_reset(r, reset, h, sum);
    for (int64_t j = 0; j < n; j++) {
        const double z = mgx_rnn_apply(r, 0, from[j] + back[j]);
        h[j] = (1 - z) * mgx_rnn_apply(r, 1, sum[j]) + z * h[j];
    }
}

static const struct mgx_rnn_cell cell = {.gates = 3, .funcs = 2, .step = step};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    return mgx_rnn_shape(c, &((const struct gru *)c->attr)->common, &cell, MGX_RNN_HIDDEN, out);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    return mgx_rnn_compute(c, &((const struct gru *)c->attr)->common, &cell, MGX_RNN_HIDDEN);
}

const struct mgx_op mgx_op_gru = {
    .name = "gru",
    .meaning = "h' = (1 - z) * g(x Wh' + (r * h) Rh' + bias) + z * h, all hidden states",
    .fields = fields,
    .attr_size = sizeof(struct gru),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 6,
    .shape = shape,
    .compute = compute,
};
