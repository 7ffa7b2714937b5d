// SPDX-License-Identifier: MIT
// RNN, GRU, LSTM: the IR's operators of the same names, and what is read of their hidden states.
// With layout=1 the batch comes first outside, steps inside as ever. LSTM serves quant_lstm too,
// whose four inputs more are those of the IR already.
#include <string.h>
#include <strings.h>

#include "onnx/build.h"

struct kind {
    const char *const *functions; // per direction, by MIGraphX's names
    int function_count;
    int inputs; // of the operator
};

static int directions(const char *direction)
{
    return strcmp(direction, "bidirectional") == 0 ? 2 : 1;
}

// Inputs in the IR's order, absent ones as `undefined`; layout=1 puts steps before the batch.
static void operands(struct mgx_node *n, const struct kind *k, bool batch_first,
                     struct mgx_ins **in)
{
    const int64_t swap[3] = {1, 0, 2};
    for (int i = 0; i < k->inputs; i++) {
        in[i] = mgx_node_in(n, i);
        const bool has_batch = i == 0 || i == 5 || i == 6; // x, initial h, initial c
        if (!in[i])
            in[i] = mgx_build_undefined(n);
        else if (batch_first && has_batch)
            in[i] = mgx_build_transpose(n, in[i], swap, 3);
    }
}

static enum mgx_status check(struct mgx_node *n, const char *direction, int functions,
                             const struct kind *k)
{
    static const int ranks[] = {3, 3, 3, 2, 1, 3, 3, 2, 2, 2, 2, 2};
    for (int i = 0; i < k->inputs; i++)
        if (mgx_node_in(n, i) && mgx_build_rank(n->in[i]) != ranks[i])
            return mgx_node_invalid(n, "input %d has rank %d, not %d", i, mgx_build_rank(n->in[i]),
                                    ranks[i]);
    if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 &&
        strcmp(direction, "bidirectional") != 0)
        return mgx_node_invalid(n, "direction is \"%s\"", direction);
    if (functions > k->function_count * directions(direction)) // fewer are repeated
        return mgx_node_invalid(n, "%d activations, expected %d", functions,
                                k->function_count * directions(direction));
    return MGX_OK;
}

// Steps, directions, batch, hidden to batch, steps, directions, hidden where layout asks for it.
static void results(struct mgx_node *n, struct mgx_ins *states, struct mgx_ins *last,
                    struct mgx_ins *cell, bool batch_first)
{
    const int64_t all[4] = {2, 0, 1, 3}, one[3] = {1, 0, 2};
    struct mgx_ins *v[3] = {states, last, cell};
    for (int i = 0; i < 3 && i < n->out_count; i++)
        n->out[i] = !batch_first || !v[i] ? v[i]
                    : i == 0              ? mgx_build_transpose(n, v[i], all, 4)
                                          : mgx_build_transpose(n, v[i], one, 3);
}

// Are these the usual functions of both directions, as the standard's default of RNN lists them
// whatever the direction? Hosts that fill defaults in give them to nodes of one.
static bool are_usual_of_both(struct mgx_strings given, const struct kind *k)
{
    bool same = given.count == 2 * k->function_count;
    for (int i = 0; same && i < given.count; i++)
        same = strcasecmp(given.v[i], k->functions[i % k->function_count]) == 0;
    return same;
}

// The functions by name, or the usual ones; `usual` is room for those of both directions.
static struct mgx_strings functions_of(const struct mgx_node *n, const struct kind *k,
                                       const char *direction, const char **usual)
{
    const struct mgx_strings given = mgx_onnx_texts(n, "activations");
    for (int i = 0; i < 2 * k->function_count; i++)
        usual[i] = k->functions[i % k->function_count];
    return given.count && !are_usual_of_both(given, k)
               ? given
               : (struct mgx_strings){usual, k->function_count * directions(direction)};
}

// The hidden states of the last step.
static struct mgx_ins *last_states(struct mgx_node *n, const char *direction,
                                   struct mgx_ins *states, struct mgx_ins *lengths)
{
    const struct mgx_attr *way = MGX_ATTRS(mgx_text("direction", direction));
    if (mgx_node_in(n, 4))
        return mgx_build_emit(n, &mgx_op_rnn_var_sl_last_output, way, MGX_IN(states, lengths));
    if (strcmp(direction, "reverse") == 0) // ends at step 0
        return mgx_build_emit(n, &mgx_op_rnn_var_sl_last_output, way, MGX_IN(states));
    return mgx_build_emit(n, &mgx_op_rnn_last_hs_output, NULL, MGX_IN(states));
}

static enum mgx_status recurrent(struct mgx_node *n, const struct kind *k,
                                 const struct mgx_op *last_cell, struct mgx_attr extra)
{
    TRY(mgx_node_need(n, 3, k->inputs));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const char *direction = mgx_onnx_text(n, "direction", "forward"), *usual[6];
    const struct mgx_strings functions = functions_of(n, k, direction, usual);
    TRY(check(n, direction, functions.count, k));
    const struct mgx_doubles alpha = mgx_onnx_reals(n, "activation_alpha");
    const struct mgx_doubles beta = mgx_onnx_reals(n, "activation_beta");
    const int64_t hidden = n->in[2]->shape.lens[2];
    const struct mgx_attr attrs[] = {
        mgx_int("hidden_size", mgx_onnx_int(n, "hidden_size", hidden)),
        mgx_texts("actv_func", functions.v, functions.count),
        mgx_text("direction", direction),
        mgx_real("clip", mgx_onnx_real(n, "clip", 0)),
        mgx_reals("actv_alpha", alpha.v, alpha.count),
        mgx_reals("actv_beta", beta.v, beta.count),
        extra, // ends the list where the operator has nothing of its own
        {0},
    };
    struct mgx_ins *in[12], *last = NULL, *cell = NULL;
    const bool batch_first = mgx_onnx_int(n, "layout", 0) != 0;
    operands(n, k, batch_first, in);
    struct mgx_ins *states = mgx_build_emit_n(n, n->rule->op, attrs, in, k->inputs);
    if (n->out_count > 1)
        last = last_states(n, direction, states, in[4]);
    if (n->out_count > 2 && last_cell)
        cell = mgx_build_emit_n(n, last_cell, attrs, in, k->inputs);
    results(n, states, last, cell, batch_first);
    return MGX_OK;
}

static enum mgx_status rnn(struct mgx_node *n)
{
    static const char *const functions[] = {"tanh"};
    static const struct kind kind = {functions, 1, 6};
    return recurrent(n, &kind, NULL, (struct mgx_attr){0});
}
const struct mgx_onnx_op mgx_onnx_rnn = {.name = "RNN", .import = rnn, .op = &mgx_op_rnn};

static enum mgx_status gru(struct mgx_node *n)
{
    static const char *const functions[] = {"sigmoid", "tanh"};
    static const struct kind kind = {functions, 2, 6};
    return recurrent(n, &kind, NULL,
                     mgx_int("linear_before_reset", mgx_onnx_int(n, "linear_before_reset", 0)));
}
const struct mgx_onnx_op mgx_onnx_gru = {.name = "GRU", .import = gru, .op = &mgx_op_gru};

static enum mgx_status lstm(struct mgx_node *n)
{
    static const char *const functions[] = {"sigmoid", "tanh", "tanh"};
    static const struct kind floats = {functions, 3, 8}, bytes = {functions, 3, 12};
    const bool quantized = n->rule->op == &mgx_op_quant_lstm;
    return recurrent(n, quantized ? &bytes : &floats,
                     quantized ? &mgx_op_quant_lstm_last_cell : &mgx_op_lstm_last_cell,
                     mgx_int("input_forget", mgx_onnx_int(n, "input_forget", 0)));
}
const struct mgx_onnx_op mgx_onnx_lstm = {.name = "LSTM", .import = lstm, .op = &mgx_op_lstm};
