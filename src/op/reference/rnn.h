// SPDX-License-Identifier: MIT
// What rnn, gru and lstm share: inputs, activations, directions, sequence lengths, the walk in
// time.
//
//     inputs   x {steps, batch, in}, w {dirs, gates * hidden, in},
//              r {dirs, gates * hidden, hidden},
//              bias {dirs, 2 * gates * hidden}, lengths {batch}, h0 {dirs, batch, hidden},
//              c0 {dirs, batch, hidden}, peepholes {dirs, 3 * hidden}; the last five may be absent
//     result   all hidden states {steps, dirs, batch, hidden}, 0 beyond a sequence's length
//     bytes    w and r are bytes, and four inputs more say what these stand for, (q - zero) * scale:
//              scale and zero of w, scale and zero of r, {dirs, 1} or {dirs, gates * hidden} each;
//              the zeros may be absent. What w and r are multiplied by becomes bytes too, as
//              DynamicQuantizeLinear makes them: x with one scale for all its steps up to the
//              longest length, the states with one for all sequences that have this step
//
// Everything is computed in double and rounded once, on writing. A cell is one function from the
// sums of its gates to the next state. Activations are given per direction or once for all, too few
// of a direction are filled with its last, by MIGraphX's names or ONNX's; actv_alpha and actv_beta
// hold one value for each activation that takes one, in order, as ONNX has it.
#pragma once

#include "op/rule/rule.h"

enum mgx_rnn_direction { MGX_RNN_FORWARD, MGX_RNN_REVERSE, MGX_RNN_BIDIRECTIONAL };

struct mgx_rnn_attr {
    int64_t hidden_size;
    struct mgx_strings actv_func;
    int64_t direction;
    double clip; // 0 = none
    struct mgx_doubles actv_alpha, actv_beta;
};

enum { MGX_RNN_MAX_FUNCS = 3 };

// Which of the `given` activations (at least one) stands at place i of all directions, `once` each.
int mgx_rnn_func_at(int given, int once, int i);

struct mgx_rnn_func {
    double (*apply)(double x, double alpha, double beta);
    double alpha, beta;
};

struct mgx_rnn;

struct mgx_rnn_cell {
    bool bytes; // as above
    int gates;
    int funcs; // activations per direction
    // One batch row, one step: from[] = x W' + its bias, back[] = h R' + its bias (gates * hidden
    // each) to new h and c (hidden each).
    void (*step)(const struct mgx_rnn *r, const double *from, const double *back, double *h,
                 double *c);
};

struct mgx_rnn {
    const struct mgx_rnn_cell *cell;
    const void *attr; // of the operator itself
    double clip;
    int64_t hidden;
    struct mgx_rnn_func funcs[2 * MGX_RNN_MAX_FUNCS];
    // Of the direction that runs:
    const struct mgx_rnn_func *func; // its activations
    const double *back_weights;      // R transposed: {hidden, gates * hidden}
    const double *back_bias;         // gates * hidden
    const double *peepholes;         // 3 * hidden, or NULL
    double *spare;                   // hidden
};

// What a layer gives: all hidden states {steps, directions, batch, hidden}, the last cell states
// {directions, batch, hidden}, or both, these as one step more.
enum mgx_rnn_gives { MGX_RNN_HIDDEN = 1, MGX_RNN_LAST_CELL = 2, MGX_RNN_STATES = 3 };

// Shape rule: checks everything, gives the shape of the result.
enum mgx_status mgx_rnn_shape(struct mgx_shape_call *c, const struct mgx_rnn_attr *a,
                              const struct mgx_rnn_cell *cell, enum mgx_rnn_gives gives,
                              struct mgx_shape *out) MGX_NODISCARD;
// Compute: runs the cell, writes what the operator gives.
enum mgx_status mgx_rnn_compute(struct mgx_compute_call *c, const struct mgx_rnn_attr *a,
                                const struct mgx_rnn_cell *cell,
                                enum mgx_rnn_gives gives) MGX_NODISCARD;

// An activation with clipping before it.
static inline double mgx_rnn_apply(const struct mgx_rnn *r, int func, double x)
{
    if (r->clip > 0)
        x = x > r->clip ? r->clip : x < -r->clip ? -r->clip : x;
    const struct mgx_rnn_func *f = &r->func[func];
    return f->apply(x, f->alpha, f->beta);
}
