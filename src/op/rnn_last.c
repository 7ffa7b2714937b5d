// SPDX-License-Identifier: MIT
// What becomes of hidden states {steps, dirs, batch, hidden} behind an rnn, gru or lstm.
//
//     rnn_last_hs_output        the last step of each direction {dirs, batch, hidden}: step 0 for
//                               the second direction
//     rnn_last_cell_output      of an lstm alone: the cell state is not among the hidden states, so
//                               this is a name for lstm_last_cell on the lstm's own inputs, and
//                               exists only until that has been put in its place
//     rnn_var_sl_last_output    the last step of sequences of given lengths (all, without lengths)
//     rnn_var_sl_shift_output   states of a reverse run over sequences aligned at the end, aligned
//                               at the start again, 0 beyond the lengths
//     rnn_var_sl_shift_sequence x {steps, batch, in} aligned at the end, 0 before
#include <inttypes.h>

#include "op/op.h"
#include "op/reference/rnn.h"

struct last {
    int64_t direction;
};

struct shift {
    const char *output_name;
    int64_t direction;
};

static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
static const struct mgx_field last_fields[] = {MGX_ENUM(struct last, direction, directions), {0}};
static const struct mgx_field shift_fields[] = {
    MGX_TEXT(struct shift, output_name), MGX_ENUM(struct shift, direction, directions), {0}};
static const struct shift shift_defaults = {.output_name = "hidden_states"};

// --- shapes ---

// The lengths, input 1, match the batch axis of input 0.
static enum mgx_status check_lengths(struct mgx_shape_call *c, int batch_axis)
{
    if (c->in_count < 2 || mgx_shape_is_absent(c->in[1]))
        return MGX_OK;
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 1, 1, 1));
    struct mgx_dim batch = mgx_shape_dim(c->in[0], batch_axis);
    return mgx_require_length(c, 1, 0, &batch);
}

static enum mgx_status last_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, 4, 4));
    TRY(check_lengths(c, 2));
    const struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(c->in[0]->type, 3, dims + 1);
    if (dims[0].max == 0 && mgx_shape_is_static(out) && mgx_shape_elements(out) > 0)
        return mgx_fail(c->diag, MGX_INVALID, "%s: there are no steps", c->op->name);
    return MGX_OK;
}

static enum mgx_status shift_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const int rank = c->op == &mgx_op_rnn_var_sl_shift_sequence ? 3 : 4;
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, rank, rank));
    TRY(check_lengths(c, rank - 2));
    const struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], rank);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(c->in[0]->type, rank, dims);
    return MGX_OK;
}

// --- computes ---

// Checked lengths of `batch` sequences; all `steps` when none are given.
static enum mgx_status read_lengths(struct mgx_compute_call *c, int64_t steps, int64_t batch,
                                    int64_t **out)
{
    const bool given = c->in_count > 1 && !mgx_shape_is_absent(&c->in[1]->shape);
    int64_t *v = given ? mgx_scratch_ints(c, c->in[1]) : MGX_NEW_ARRAY(c->scratch, int64_t, batch);
    if (!v)
        return mgx_fail_memory(c->diag);
    for (int64_t b = 0; b < batch; b++) {
        v[b] = given ? v[b] : steps;
        if (v[b] < 0 || v[b] > steps)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: sequence length %" PRId64 " is out of range 0..%" PRId64,
                            c->op->name, v[b], steps);
    }
    *out = v;
    return MGX_OK;
}

static bool runs_backwards(const struct mgx_compute_call *c, int64_t dir)
{
    const int64_t direction = c->op == &mgx_op_rnn_last_hs_output
                                  ? MGX_RNN_FORWARD
                                  : ((const struct last *)c->attr)->direction;
    return direction == MGX_RNN_REVERSE || dir == 1;
}

// The part of t at a position of its leading axes, borrowed: the rest is a row.
static struct mgx_tensor row_at(const struct mgx_tensor *t, int leading, const int64_t *at)
{
    const struct mgx_shape *s = &t->shape;
    int64_t offset = 0;
    for (int i = 0; i < leading; i++)
        offset += at[i] * s->strides[i];
    return (struct mgx_tensor){.shape = mgx_shape_strided(s->type, s->rank - leading,
                                                          s->lens + leading, s->strides + leading),
                               .data = (char *)t->data + offset * (int64_t)mgx_type_size(s->type)};
}

static void zero_row(struct mgx_tensor *row)
{
    const int64_t n = mgx_shape_elements(&row->shape);
    for (int64_t i = 0; i < n; i++)
        mgx_store_int(row->shape.type, row->data, mgx_shape_index(&row->shape, i), 0);
}

static enum mgx_status last_compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    int64_t *lengths;
    TRY(read_lengths(c, x->lens[0], x->lens[2], &lengths));
    for (int64_t d = 0; d < x->lens[1]; d++)
        for (int64_t b = 0; b < x->lens[2]; b++) {
            const int64_t to_at[] = {d, b};
            struct mgx_tensor to = row_at(c->out, 2, to_at);
            const int64_t at[] = {runs_backwards(c, d) ? 0 : lengths[b] - 1, d, b};
            if (lengths[b] == 0) {
                zero_row(&to);
                continue;
            }
            const struct mgx_tensor from = row_at(c->in[0], 3, at);
            mgx_tensor_copy(&from, &to);
        }
    return MGX_OK;
}

// Row of step t comes from step t + offset while both are inside the sequence.
static void shift_row(struct mgx_compute_call *c, int leading, const int64_t *at, int64_t from_step,
                      bool inside)
{
    struct mgx_tensor to = row_at(c->out, leading, at);
    if (!inside) {
        zero_row(&to);
        return;
    }
    int64_t from_at[3] = {from_step, at[1], leading == 3 ? at[2] : 0};
    const struct mgx_tensor from = row_at(c->in[0], leading, from_at);
    mgx_tensor_copy(&from, &to);
}

static enum mgx_status shift_output_compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const bool reverse = ((const struct shift *)c->attr)->direction == MGX_RNN_REVERSE;
    if (mgx_shape_elements(x) == 0)
        return MGX_OK;
    int64_t *lengths, at[3];
    TRY(read_lengths(c, x->lens[0], x->lens[2], &lengths));
    for (at[0] = 0; at[0] < x->lens[0]; at[0]++)
        for (at[1] = 0; at[1] < x->lens[1]; at[1]++)
            for (at[2] = 0; at[2] < x->lens[2]; at[2]++) {
                const int64_t n = lengths[at[2]];
                const int64_t offset = reverse || at[1] == 1 ? x->lens[0] - n : 0;
                shift_row(c, 3, at, at[0] + offset, at[0] < n);
            }
    return MGX_OK;
}

static enum mgx_status shift_sequence_compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    if (mgx_shape_elements(x) == 0)
        return MGX_OK;
    int64_t *lengths, at[2];
    TRY(read_lengths(c, x->lens[0], x->lens[1], &lengths));
    for (at[0] = 0; at[0] < x->lens[0]; at[0]++)
        for (at[1] = 0; at[1] < x->lens[1]; at[1]++) {
            const int64_t from = at[0] - (x->lens[0] - lengths[at[1]]);
            shift_row(c, 2, at, from, from >= 0);
        }
    return MGX_OK;
}

const struct mgx_op mgx_op_rnn_last_hs_output = {
    .name = "rnn_last_hs_output",
    .meaning = "y = hidden states of the last step",
    .in_min = 1,
    .in_max = 1,
    .shape = last_shape,
    .compute = last_compute,
};

const struct mgx_op mgx_op_rnn_last_cell_output = {
    .name = "rnn_last_cell_output",
    .meaning = "y = cell states of the last step; the input is an lstm",
    .in_min = 1,
    .in_max = 1,
    .shape = last_shape,
};

const struct mgx_op mgx_op_rnn_var_sl_last_output = {
    .name = "rnn_var_sl_last_output",
    .meaning = "y = states of the last step of each sequence, by lengths",
    .fields = last_fields,
    .attr_size = sizeof(struct last),
    .in_min = 1,
    .in_max = 2,
    .shape = last_shape,
    .compute = last_compute,
};

const struct mgx_op mgx_op_rnn_var_sl_shift_output = {
    .name = "rnn_var_sl_shift_output",
    .meaning = "y = states aligned at the start again, by lengths",
    .fields = shift_fields,
    .attr_size = sizeof(struct shift),
    .defaults = &shift_defaults,
    .in_min = 2,
    .in_max = 2,
    .shape = shift_shape,
    .compute = shift_output_compute,
};

const struct mgx_op mgx_op_rnn_var_sl_shift_sequence = {
    .name = "rnn_var_sl_shift_sequence",
    .meaning = "y = sequences aligned at the end, by lengths",
    .in_min = 2,
    .in_max = 2,
    .shape = shift_shape,
    .compute = shift_sequence_compute,
};
