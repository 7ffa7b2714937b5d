// SPDX-License-Identifier: MIT
// scan: a body run once per slice of its sequences (ONNX Scan from opset 9).
//
//     for (t = 0; t < T; t++)  (state..., row...) = body(state..., x[t]...)
//     y = (state..., rows stacked along their axes...)
//
// Inputs: states, then num_scan_inputs sequences cut along scan_input_axes (default 0), backwards
// where the direction is 1. Rows stack along scan_output_axes in scan_output_directions.
#include "op/rule/body.h"

#include <assert.h>

struct scan {
    int64_t num_scan_inputs;
    struct mgx_ints scan_input_axes, scan_input_directions, scan_output_axes,
        scan_output_directions;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct scan, num_scan_inputs),         MGX_INTS(struct scan, scan_input_axes),
    MGX_INTS(struct scan, scan_input_directions),  MGX_INTS(struct scan, scan_output_axes),
    MGX_INTS(struct scan, scan_output_directions), {0}};

static int64_t pick(struct mgx_ints list, int i)
{
    return i < list.count ? list.v[i] : 0;
}

// Length of the sequences, as far as known; *states is how many inputs are not sequences.
static enum mgx_status sequence_length(struct mgx_shape_call *c, int *states,
                                       struct mgx_dim *length)
{
    const struct scan *a = c->attr;
    if (a->num_scan_inputs < 0 || a->num_scan_inputs > c->in_count)
        return mgx_fail(c->diag, MGX_INVALID, "scan: num_scan_inputs is %lld, there are %d inputs",
                        (long long)a->num_scan_inputs, c->in_count);
    *states = c->in_count - (int)a->num_scan_inputs;
    *length = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    for (int i = *states; i < c->in_count; i++) {
        if (c->in[i]->unranked)
            continue;
        int axis;
        TRY(mgx_normalize_axis(c, pick(a->scan_input_axes, i - *states), c->in[i]->rank, &axis));
        const struct mgx_dim d = mgx_shape_dim(c->in[i], axis);
        if (d.min > length->max || d.max < length->min)
            return mgx_fail(c->diag, MGX_INVALID, "scan: sequences have lengths %lld and %lld",
                            (long long)length->min, (long long)d.min);
        mgx_dim_meet(length, d);
    }
    return MGX_OK;
}

static enum mgx_status row_shape(struct mgx_shape_call *c, const struct mgx_shape *row,
                                 int64_t axis_value, const struct mgx_dim *length,
                                 struct mgx_shape *out)
{
    if (row->type == MGX_SEQUENCE || row->type == MGX_TUPLE)
        return mgx_fail(c->diag, MGX_INVALID, "scan: rows are tensors, the body makes one a %s",
                        mgx_type_name(row->type));
    if (row->unranked) {
        *out = *row;
        return MGX_OK;
    }
    int axis;
    if (row->rank == MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "scan: rows of rank %d cannot be stacked", row->rank);
    TRY(mgx_normalize_axis(c, axis_value, row->rank + 1, &axis));
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, row->rank + 1);
    if (!dims)
        return mgx_fail_memory(c->diag);
    for (int i = 0, j = 0; i <= row->rank; i++)
        dims[i] = i == axis ? *length : mgx_shape_dim(row, j++);
    *out = mgx_shape_from_dims(row->type, row->rank + 1, dims);
    return MGX_OK;
}

// A sequence without its axis; of unknown rank as it is.
static enum mgx_status slice_shape(struct mgx_shape_call *c, const struct mgx_shape *s,
                                   int64_t axis_value, struct mgx_shape *out)
{
    *out = *s;
    if (s->unranked)
        return MGX_OK;
    int axis;
    TRY(mgx_normalize_axis(c, axis_value, s->rank, &axis));
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, s->rank);
    if (!dims)
        return mgx_fail_memory(c->diag);
    for (int i = 0, j = 0; i < s->rank; i++)
        if (i != axis)
            dims[j++] = mgx_shape_dim(s, i);
    *out = mgx_shape_from_dims(s->type, s->rank - 1, dims);
    return MGX_OK;
}

// The body is handed the states and a slice of each sequence.
static enum mgx_status check_parameters(struct mgx_shape_call *c, int states)
{
    const struct scan *a = c->attr;
    struct mgx_shape *slices = MGX_NEW_ARRAY(c->arena, struct mgx_shape, c->in_count);
    const struct mgx_shape **given = MGX_NEW_ARRAY(c->arena, const struct mgx_shape *, c->in_count);
    if (!slices || !given)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++) {
        given[i] = i < states ? c->in[i] : &slices[i];
        if (i >= states)
            TRY(slice_shape(c, c->in[i], pick(a->scan_input_axes, i - states), &slices[i]));
    }
    return mgx_body_takes(c, c->mod[0], given, c->in_count);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct scan *a = c->attr;
    int states = 0;
    struct mgx_dim length;
    if (c->mod_count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "scan: takes one module, given %d", c->mod_count);
    TRY(sequence_length(c, &states, &length));
    TRY(check_parameters(c, states));
    const int count = mgx_module_result_count(c->mod[0]);
    if (count < states)
        return mgx_fail(c->diag, MGX_INVALID, "scan: body has %d results, needs at least %d", count,
                        states);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *body = mgx_body_result(c->mod[0], i);
        if (i >= states)
            TRY(row_shape(c, body, pick(a->scan_output_axes, i - states), &length, &sub[i]));
        else if (c->in[i]->type != body->type || !mgx_shape_join(c->arena, c->in[i], body, &sub[i]))
            return mgx_fail(c->diag, MGX_INVALID, "scan: state %d is %s, the body makes it %s", i,
                            mgx_type_name(c->in[i]->type), mgx_type_name(body->type));
    }
    *out = mgx_shape_tuple(sub, count);
    return MGX_OK;
}

// --- the run ---

struct state {
    struct mgx_tensor *args, *out; // states and slices; results as they grow
    int states, rows;
    int64_t length;
};

// The shape of input i without its axis, which *at is.
static struct mgx_shape part_of(const struct mgx_compute_call *c, const struct state *s, int i,
                                int *at)
{
    const struct scan *a = c->attr;
    const struct mgx_shape *x = &c->in[i]->shape;
    *at = mgx_wrap_axis(pick(a->scan_input_axes, i - s->states), x->rank);
    struct mgx_shape part = {.type = x->type};
    for (int k = 0; k < x->rank; k++)
        if (k != *at) {
            part.lens[part.rank] = x->lens[k];
            part.strides[part.rank++] = x->strides[k];
        }
    return part;
}

// Position t of input i as a tensor without its axis; a share of the input.
static struct mgx_tensor slice(const struct mgx_compute_call *c, const struct state *s, int i,
                               int64_t t)
{
    assert(i >= 0);
    const struct scan *a = c->attr;
    const struct mgx_tensor *x = c->in[i];
    int axis;
    const struct mgx_shape part = part_of(c, s, i, &axis);
    if (pick(a->scan_input_directions, i - s->states) == 1)
        t = s->length - 1 - t;
    return mgx_tensor_view(x, &part,
                           t * x->shape.strides[axis] * (int64_t)mgx_type_size(part.type));
}

static enum mgx_status make_rows(struct mgx_compute_call *c, const struct mgx_shape *row,
                                 int64_t axis, int64_t length, struct mgx_tensor *out)
{
    int64_t lens[MGX_MAX_RANK];
    if (row->rank >= MGX_MAX_RANK || axis < 0 || axis > row->rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "scan: rows of rank %d cannot be stacked along axis %lld", row->rank,
                        (long long)axis);
    for (int i = 0, j = 0; i <= row->rank; i++)
        lens[i] = i == axis ? length : row->lens[j++];
    const struct mgx_shape shape = mgx_shape_make(row->type, row->rank + 1, lens);
    return mgx_tensor_create(out, &shape, c->diag);
}

// The shape of a row's place among all rows; false if its lengths are others.
static bool row_slot(const struct mgx_shape *rows, int64_t axis, struct mgx_shape *slot)
{
    bool same = rows->rank == slot->rank + 1;
    for (int i = 0, j = 0; same && i < rows->rank; i++)
        if (i != axis) {
            same = slot->lens[j] == rows->lens[i];
            slot->strides[j++] = rows->strides[i];
        }
    return same;
}

// Where row t of output r goes; makes the output when the first row shows its shape.
static enum mgx_status store_row(struct mgx_compute_call *c, struct state *s, int r, int64_t t,
                                 const struct mgx_tensor *row)
{
    assert(r >= 0 && t >= 0);
    const struct scan *a = c->attr;
    struct mgx_tensor *out = &s->out[s->states + r];
    int64_t axis = pick(a->scan_output_axes, r);
    axis += axis < 0 ? row->shape.rank + 1 : 0;
    if (!out->storage)
        TRY(make_rows(c, &row->shape, axis, s->length, out));
    struct mgx_shape slot = mgx_shape_make(row->shape.type, row->shape.rank, row->shape.lens);
    if (!row_slot(&out->shape, axis, &slot))
        return mgx_fail(c->diag, MGX_INVALID, "scan: rows 0 and %lld differ in shape",
                        (long long)t);
    if (pick(a->scan_output_directions, r) == 1)
        t = s->length - 1 - t;
    struct mgx_tensor to = mgx_tensor_part(out, &slot, t * out->shape.strides[axis]);
    mgx_tensor_copy(row, &to);
    return MGX_OK;
}

static enum mgx_status run_round(struct mgx_compute_call *c, struct state *s, int64_t t)
{
    assert(t >= 0);
    TRY(mgx_eval_round(c));
    for (int i = s->states; i < c->in_count; i++) {
        mgx_tensor_release(&s->args[i]);
        s->args[i] = slice(c, s, i, t);
    }
    struct mgx_tensor *results;
    int count;
    TRY(mgx_body_run(c, 0, s->args, c->in_count, &results, &count));
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < s->states; i++) {
        mgx_tensor_release(&s->args[i]);
        s->args[i] = results[i];
        results[i] = (struct mgx_tensor){0};
    }
    for (int r = 0; r < s->rows && status == MGX_OK; r++)
        status = store_row(c, s, r, t, &results[s->states + r]);
    mgx_tensors_release(results, count);
    return status;
}

// What a row would be, if there were one: of states as they begin, and of a slice of each sequence.
static enum mgx_status foresee(struct mgx_compute_call *c, const struct state *s,
                               const struct mgx_shape **results)
{
    struct mgx_shape *slices = MGX_NEW_ARRAY(c->scratch, struct mgx_shape, c->in_count);
    const struct mgx_shape **given =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_shape *, c->in_count);
    if (!slices || !given)
        return mgx_fail_memory(c->diag);
    for (int i = 0, axis; i < c->in_count; i++) {
        given[i] = &slices[i];
        slices[i] = i < s->states ? c->in[i]->shape : part_of(c, s, i, &axis);
    }
    return mgx_body_foresee(c, 0, given, results);
}

// Sequences of length 0 leave rows with nothing in them.
static enum mgx_status empty_rows(struct mgx_compute_call *c, struct state *s)
{
    const struct scan *a = c->attr;
    const struct mgx_shape **body =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_shape *, s->states + s->rows);
    if (!body)
        return mgx_fail_memory(c->diag);
    TRY(foresee(c, s, body));
    for (int r = 0; r < s->rows; r++) {
        struct mgx_shape row = *body[s->states + r];
        for (int i = 0; i < row.rank; i++)
            row.lens[i] = mgx_shape_dim(&row, i).min;
        int64_t axis = pick(a->scan_output_axes, r);
        axis += axis < 0 ? row.rank + 1 : 0;
        TRY(make_rows(c, &row, axis, 0, &s->out[s->states + r]));
    }
    return MGX_OK;
}

static enum mgx_status run_all(struct mgx_compute_call *c, struct state *s)
{
    for (int i = 0; i < s->states; i++)
        s->args[i] = mgx_tensor_share(c->in[i]);
    if (s->length == 0)
        TRY(empty_rows(c, s));
    for (int64_t t = 0; t < s->length; t++)
        TRY(run_round(c, s, t));
    for (int i = 0; i < s->states; i++)
        s->out[i] = mgx_tensor_share(&s->args[i]);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct scan *a = c->attr;
    const int count = mgx_module_result_count(c->mod[0]);
    struct state s = {.states = c->in_count - (int)a->num_scan_inputs};
    s.rows = count - s.states;
    s.args = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    s.out = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, count);
    if (!s.args || !s.out)
        return mgx_fail_memory(c->diag);
    if (s.states < c->in_count) {
        const struct mgx_shape *x = &c->in[s.states]->shape;
        const int64_t axis = pick(a->scan_input_axes, 0);
        s.length = x->lens[mgx_wrap_axis(axis, x->rank)];
    }
    enum mgx_status status = run_all(c, &s);
    mgx_tensors_release(s.args, c->in_count);
    if (status == MGX_OK)
        return mgx_body_give(c, s.out, count);
    mgx_tensors_release(s.out, count);
    return status;
}

const struct mgx_op mgx_op_scan = {
    .name = "scan",
    .meaning = "body run over slices of sequences, its rows stacked",
    .fields = fields,
    .attr_size = sizeof(struct scan),
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = shape,
    .compute = compute,
};
