// SPDX-License-Identifier: MIT
// Replaces what reads the end of a recurrent layer without saying which end, as MIGraphX writes it.
//
//     rnn_last_hs_output(r)          =>  rnn_var_sl_last_output[direction of r](r, lengths of r)
//     rnn_last_cell_output(lstm(..)) =>  lstm_last_cell(..)
//
// where r is an rnn, gru, lstm or quant_lstm, and likewise of the last. The left sides know neither the direction nor the cell states;
// the right sides are computed by any target. Every target runs this, so programs built by hand
// mean the same everywhere.
#include "pass/pass.h"

enum { LENGTHS = 4 }; // input of the recurrent operators

static bool is_recurrent(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_rnn || ins->op == &mgx_op_gru || ins->op == &mgx_op_lstm ||
           ins->op == &mgx_op_quant_lstm;
}

static struct mgx_ins *last_hidden(struct mgx_ins *ins, struct mgx_ins *layer)
{
    const struct mgx_attr *attrs = MGX_ATTRS(mgx_int("direction", mgx_ins_int(layer, "direction")));
    if (layer->in_count > LENGTHS)
        return mgx_emit_before(ins, &mgx_op_rnn_var_sl_last_output, attrs,
                               MGX_IN(layer, layer->in[LENGTHS]));
    return mgx_emit_before(ins, &mgx_op_rnn_var_sl_last_output, attrs, MGX_IN(layer));
}

// A replacement for `ins`, or NULL.
static struct mgx_ins *rewrite(struct mgx_module *m, struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_rnn_last_hs_output && is_recurrent(ins->in[0]))
        return last_hidden(ins, ins->in[0]);
    const struct mgx_ins *lstm = ins->op == &mgx_op_rnn_last_cell_output ? ins->in[0] : NULL;
    const struct mgx_op *cell = !lstm                            ? NULL
                                : lstm->op == &mgx_op_lstm       ? &mgx_op_lstm_last_cell
                                : lstm->op == &mgx_op_quant_lstm ? &mgx_op_quant_lstm_last_cell
                                                                 : NULL;
    return cell ? mgx_insert(m, ins, cell, lstm->attr, lstm->in, lstm->in_count, NULL, 0) : NULL;
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
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_rewrite_rnn = {
    .name = "rewrite_rnn",
    .meaning = "reads the last states of recurrent layers by direction and lengths",
    .module = run,
};
