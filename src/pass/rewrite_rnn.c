// SPDX-License-Identifier: MIT
// Replaces what reads the end of a recurrent layer without saying which end, as MIGraphX writes it.
//
//     rnn_last_hs_output(r)          =>  rnn_var_sl_last_output[direction of r](r, lengths of r)
//     rnn_var_sl_last_output(r)      =>  slice[the last step; the first, if in reverse](r)
//     rnn_last_cell_output(lstm(..)) =>  lstm_last_cell(..)
//
// where r is an rnn, gru, lstm or quant_lstm, and likewise of the last. The left sides know neither
// the direction nor the cell states; the right sides are computed by any target. Without lengths
// every sequence ends at one step, and its states are looked at where they lie. Every target runs
// this, so programs built by hand mean the same everywhere.
//
// And an lstm that is asked for its hidden states and for its last cell state, as by whoever hands
// both on to the next run, runs once:
//
//     lstm(..), lstm_last_cell(..)   =>  all = lstm_states(..); slice[:-1](all), all[-1]
#include "op/lstm.h"
#include "pass/engine/emit.h"

enum { LENGTHS = 4 }; // input of the recurrent operators

static bool is_recurrent(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_rnn || ins->op == &mgx_op_gru || ins->op == &mgx_op_lstm ||
           ins->op == &mgx_op_quant_lstm;
}

// Behind element-wise work on its states: quantizing to 16 bits clips and converts them.
static const struct mgx_ins *layer_behind(const struct mgx_ins *ins)
{
    while (ins->op->flags & MGX_OP_POINTWISE && ins->in_count > 0)
        ins = ins->in[0];
    return ins;
}

// The states of the step that all sequences end with; NULL where lengths or two directions say
// otherwise.
static struct mgx_ins *last_step(struct mgx_ins *at, struct mgx_ins *states, int64_t direction,
                                 const struct mgx_ins *lengths)
{
    const struct mgx_shape *x = &states->shape;
    if ((lengths && lengths->op != &mgx_op_undefined) || direction == MGX_RNN_BIDIRECTIONAL ||
        !mgx_shape_is_static(x) || x->rank != 4 || x->lens[0] < 1)
        return NULL;
    const int64_t step = direction == MGX_RNN_REVERSE ? 0 : x->lens[0] - 1;
    struct mgx_ins *y = mgx_emit_slice(at, states, 0, step, step + 1);
    return y ? mgx_emit_reshape(at, y, x->lens + 1, 3) : NULL;
}

static struct mgx_ins *last_hidden(struct mgx_ins *ins, const struct mgx_ins *layer)
{
    const int64_t direction = mgx_ins_int(layer, "direction");
    struct mgx_ins *step = last_step(ins, ins->in[0], direction,
                                     layer->in_count > LENGTHS ? layer->in[LENGTHS] : NULL);
    if (step)
        return step;
    const struct mgx_attr *attrs = MGX_ATTRS(mgx_int("direction", direction));
    if (layer->in_count > LENGTHS)
        return mgx_emit_before(ins, &mgx_op_rnn_var_sl_last_output, attrs,
                               MGX_IN(ins->in[0], layer->in[LENGTHS]));
    return mgx_emit_before(ins, &mgx_op_rnn_var_sl_last_output, attrs, MGX_IN(ins->in[0]));
}

// A replacement for `ins`, or NULL.
static struct mgx_ins *rewrite(struct mgx_module *m, struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_rnn_last_hs_output && is_recurrent(layer_behind(ins->in[0])))
        return last_hidden(ins, layer_behind(ins->in[0]));
    if (ins->op == &mgx_op_rnn_var_sl_last_output)
        return last_step(ins, ins->in[0], mgx_ins_int(ins, "direction"),
                         ins->in_count > 1 ? ins->in[1] : NULL);
    const struct mgx_ins *lstm = ins->op == &mgx_op_rnn_last_cell_output ? ins->in[0] : NULL;
    const struct mgx_op *cell = !lstm                            ? NULL
                                : lstm->op == &mgx_op_lstm       ? &mgx_op_lstm_last_cell
                                : lstm->op == &mgx_op_quant_lstm ? &mgx_op_quant_lstm_last_cell
                                                                 : NULL;
    return cell ? mgx_insert(m, ins, cell, lstm->attr, lstm->in, lstm->in_count, NULL, 0) : NULL;
}

static bool same_layer(const struct mgx_ins *a, const struct mgx_ins *b)
{
    bool same = a->owner == b->owner && a->in_count == b->in_count &&
                mgx_rnn_is_of_bytes(a->op) == mgx_rnn_is_of_bytes(b->op) &&
                mgx_attr_equal(a->op, a->attr, b->attr);
    for (int i = 0; same && i < a->in_count; i++)
        same = a->in[i] == b->in[i];
    return same;
}

// The lstm that gives the hidden states whose last cell state this is, or NULL.
static struct mgx_ins *find_layer(const struct mgx_ins *last_cell)
{
    for (const struct mgx_use *use = last_cell->in[0]->uses; use; use = use->next)
        if ((use->user->op == &mgx_op_lstm || use->user->op == &mgx_op_quant_lstm) &&
            use->user->uses && same_layer(use->user, last_cell))
            return use->user;
    return NULL;
}

// Of one that stands before the other; it is left without readers, and so is the other.
static void join(struct mgx_ins *layer, struct mgx_ins *last_cell)
{
    struct mgx_ins *at = layer->index < last_cell->index ? layer : last_cell;
    const struct mgx_op *op =
        mgx_rnn_is_of_bytes(layer->op) ? &mgx_op_quant_lstm_states : &mgx_op_lstm_states;
    struct mgx_ins *all =
        mgx_insert(at->owner, at, op, layer->attr, layer->in, layer->in_count, NULL, 0);
    const int64_t steps = layer->shape.lens[0];
    struct mgx_ins *hidden = mgx_emit_slice(at, all, 0, 0, steps);
    struct mgx_ins *cell = mgx_emit_slice(at, all, 0, steps, steps + 1);
    cell = mgx_emit_reshape(at, cell, last_cell->shape.lens, last_cell->shape.rank);
    if (!hidden || !cell)
        return;
    mgx_replace_uses(layer, hidden);
    mgx_replace_uses(last_cell, cell);
}

static void join_states(struct mgx_pass_call *c, struct mgx_module *m)
{
    mgx_module_number(m);
    MGX_EACH (ins, m) {
        const bool cell = mgx_rnn_gives(ins->op) == MGX_RNN_LAST_CELL && ins->uses;
        struct mgx_ins *layer = cell ? find_layer(ins) : NULL;
        if (layer && mgx_shape_is_static(&layer->shape)) {
            join(layer, ins);
            c->changed = true;
        }
    }
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct mgx_ins *by = rewrite(m, ins);
        if (!by)
            continue;
        mgx_replace_uses(ins, by);
        mgx_remove(ins);
        c->changed = true;
    }
    join_states(c, m);
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_rewrite_rnn = {
    .name = "rewrite_rnn",
    .meaning = "reads the last states of recurrent layers by direction and lengths, runs them once",
    .module = run,
};
