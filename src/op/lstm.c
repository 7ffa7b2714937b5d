// SPDX-License-Identifier: MIT
// lstm: the long short-term memory cell, gates in the order i, o, f, c; P are peepholes (i, o, f).
//
//     i = f(x Wi' + h Ri' + Pi * c + bias)          c' = f * c + i * g(x Wc' + h Rc' + bias)
//     f = f(x Wf' + h Rf' + Pf * c + bias)          h' = o * h(c')
//     o = f(x Wo' + h Ro' + Po * c' + bias)         input_forget: f = 1 - i
//
// lstm gives all hidden states; lstm_last_cell, with the same attributes and inputs, the last c;
// lstm_states both, as passes make it of the two. quant_lstm and its like multiply bytes. See
// reference/rnn.h for inputs and results.
#include "op/lstm.h"

#include <assert.h>

#include "op/op.h"

struct lstm {
    struct mgx_rnn_attr common;
    int64_t input_forget;
};

static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
static const struct mgx_field fields[] = {MGX_INT(struct mgx_rnn_attr, hidden_size),
                                          MGX_TEXTS(struct mgx_rnn_attr, actv_func),
                                          MGX_ENUM(struct mgx_rnn_attr, direction, directions),
                                          MGX_REAL(struct mgx_rnn_attr, clip),
                                          MGX_INT(struct lstm, input_forget),
                                          MGX_REALS(struct mgx_rnn_attr, actv_alpha),
                                          MGX_REALS(struct mgx_rnn_attr, actv_beta),
                                          {0}};
static const char *const funcs[] = {"sigmoid", "tanh", "tanh"};
static const struct lstm defaults = {.common = {.hidden_size = 1, .actv_func = {funcs, 3}}};

static double peep(const struct mgx_rnn *r, int64_t at, double c)
{
    assert(at >= 0);
    return r->peepholes ? r->peepholes[at] * c : 0;
}

static void step(const struct mgx_rnn *r, const double *from, const double *back, double *h,
                 double *c)
{
    const bool couple = ((const struct lstm *)r->attr)->input_forget != 0;
    const int64_t n = r->hidden;
    for (int64_t j = 0; j < n; j++) {
        const int64_t o = n + j, f = 2 * n + j, g = 3 * n + j;
        const double in = mgx_rnn_apply(r, 0, from[j] + back[j] + peep(r, j, c[j]));
        const double forget =
            couple ? 1 - in : mgx_rnn_apply(r, 0, from[f] + back[f] + peep(r, f, c[j]));
        c[j] = forget * c[j] + in * mgx_rnn_apply(r, 1, from[g] + back[g]);
        const double out = mgx_rnn_apply(r, 0, from[o] + back[o] + peep(r, o, c[j]));
        const struct mgx_rnn_func *last = &r->func[2]; // no clipping here
        h[j] = out * last->apply(c[j], last->alpha, last->beta);
    }
}

static const struct mgx_rnn_cell cell = {.gates = 4, .funcs = 3, .step = step},
                                 byte_cell = {.bytes = true, .gates = 4, .funcs = 3, .step = step};

static const struct mgx_rnn_cell *cell_of(const struct mgx_op *op)
{
    return mgx_rnn_is_of_bytes(op) ? &byte_cell : &cell;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_rnn_attr *a = &((const struct lstm *)c->attr)->common;
    return mgx_rnn_shape(c, a, cell_of(c->op), mgx_rnn_gives(c->op), out);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_rnn_attr *a = &((const struct lstm *)c->attr)->common;
    return mgx_rnn_compute(c, a, cell_of(c->op), mgx_rnn_gives(c->op));
}

#define OF_LSTM                                                                                    \
    .fields = fields, .attr_size = sizeof(struct lstm), .defaults = &defaults, .shape = shape,     \
    .compute = compute

const struct mgx_op mgx_op_lstm = {
    .name = "lstm",
    .meaning = "c' = f * c + i * g(x Wc' + h Rc' + bias), h' = o * h(c'), all hidden states",
    .in_min = 3,
    .in_max = 8,
    OF_LSTM,
};

const struct mgx_op mgx_op_lstm_last_cell = {
    .name = "lstm_last_cell",
    .meaning = "the last cell state of an lstm with the same inputs and attributes",
    .in_min = 3,
    .in_max = 8,
    OF_LSTM,
};

const struct mgx_op mgx_op_lstm_states = {
    .name = "lstm_states",
    .meaning = "all hidden states of an lstm and, as one step more, its last cell state",
    .in_min = 3,
    .in_max = 8,
    OF_LSTM,
};

const struct mgx_op mgx_op_quant_lstm = {
    .name = "quant_lstm",
    .meaning = "lstm whose weights are bytes, times x and h rounded to bytes in the run",
    .in_min = 11,
    .in_max = 12,
    OF_LSTM,
};

const struct mgx_op mgx_op_quant_lstm_last_cell = {
    .name = "quant_lstm_last_cell",
    .meaning = "the last cell state of a quant_lstm with the same inputs and attributes",
    .in_min = 11,
    .in_max = 12,
    OF_LSTM,
};

const struct mgx_op mgx_op_quant_lstm_states = {
    .name = "quant_lstm_states",
    .meaning = "all hidden states of a quant_lstm and, as one step more, its last cell state",
    .in_min = 11,
    .in_max = 12,
    OF_LSTM,
};

enum mgx_rnn_gives mgx_rnn_gives(const struct mgx_op *op)
{
    if (op == &mgx_op_lstm_states || op == &mgx_op_quant_lstm_states)
        return MGX_RNN_STATES;
    return op == &mgx_op_lstm_last_cell || op == &mgx_op_quant_lstm_last_cell ? MGX_RNN_LAST_CELL
                                                                              : MGX_RNN_HIDDEN;
}

bool mgx_rnn_is_of_bytes(const struct mgx_op *op)
{
    return op == &mgx_op_quant_lstm || op == &mgx_op_quant_lstm_last_cell ||
           op == &mgx_op_quant_lstm_states;
}
