// SPDX-License-Identifier: MIT
// Gather, GatherElements, GatherND, Compress, ReverseSequence: reading at computed places.
#include "base/size.h"
#include "onnx/build.h"

static enum mgx_status gather(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), mgx_build_rank(n->in[0]), &axis));
    n->out[0] = mgx_build_gather(n, n->in[0], n->in[1], axis);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_gather = {
    .name = "Gather", .import = gather, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status gather_nd(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    n->out[0] = mgx_build_emit(n, &mgx_op_gathernd,
                               MGX_ATTRS(mgx_int("batch_dims", mgx_onnx_int(n, "batch_dims", 0))),
                               MGX_IN(n->in[0], n->in[1]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_gather_nd = {
    .name = "GatherND", .import = gather_nd, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- GatherElements ---

// For each index its place in the flat data but for the part that the index itself gives.
static enum mgx_status base_offsets(struct mgx_node *n, const struct mgx_shape *data,
                                    const struct mgx_shape *index, int axis, struct mgx_ins **out)
{
    const int64_t count = mgx_shape_elements(index);
    int64_t *values = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    if (!values)
        return mgx_fail_memory(n->diag);
    int64_t at[MGX_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        for (int a = 0; a < index->rank; a++)
            values[i] += a == axis ? 0 : at[a] * data->strides[a];
        mgx_shape_next(index, at);
    }
    const struct mgx_shape shape = mgx_shape_make(MGX_INT64, index->rank, index->lens);
    *out = mgx_build_ints(n, &shape, values);
    return MGX_OK;
}

// Indices below 0 count from the end; then each is as far as its axis steps in the flat data.
static struct mgx_ins *axis_offsets(struct mgx_node *n, int64_t length, int64_t step)
{
    struct mgx_ins *i = mgx_build_convert(n, n->in[1], MGX_INT64);
    struct mgx_ins *wrapped = mgx_build_with(n, &mgx_op_add, i, (double)length);
    i = mgx_build_where(n, mgx_build_less(n, i, mgx_build_like(n, i, 0)), wrapped, i);
    return mgx_build_with(n, &mgx_op_mul, i, (double)step);
}

static enum mgx_status require_inside(struct mgx_node *n, const struct mgx_shape *data,
                                      const struct mgx_shape *index, int axis)
{
    for (int i = 0; i < data->rank; i++)
        if (i != axis && index->lens[i] > data->lens[i])
            return mgx_node_invalid(n, "indices have length %lld on axis %d, the data %lld",
                                    (long long)index->lens[i], i, (long long)data->lens[i]);
    return MGX_OK;
}

// x over lengths of the run: repeated to fit `like`, whose lengths and names the result has.
static struct mgx_ins *combine(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *like,
                               struct mgx_ins *x)
{
    struct mgx_ins *wide =
        x ? mgx_build_emit(n, &mgx_op_multibroadcast, NULL, MGX_IN(x, like)) : NULL;
    return mgx_build_emit(n, op, NULL, MGX_IN(like, wide));
}

// How far the flat data goes on from one entry of an axis to the next, as a vector of one.
static struct mgx_ins *step_of(struct mgx_node *n, int axis)
{
    const int64_t one = 1;
    struct mgx_ins *step = mgx_build_literal_ints(n, &one, 1);
    for (int i = axis + 1; i < mgx_build_rank(n->in[0]); i++)
        step = mgx_build_mul(n, step, mgx_build_dim(n, n->in[0], i));
    return step;
}

// The same as below where lengths are open.
static enum mgx_status gather_open(struct mgx_node *n, int axis)
{
    struct mgx_ins *x = n->in[0], *place = mgx_build_convert(n, n->in[1], MGX_INT64);
    const int rank = mgx_build_rank(x);
    struct mgx_ins *length = mgx_build_dim(n, x, axis), *zero = mgx_build_scalar(n, MGX_INT64, 0);
    struct mgx_ins *below = combine(n, &mgx_op_less, place, zero);
    struct mgx_ins *wrapped = combine(n, &mgx_op_add, place, length);
    below = mgx_build_convert(n, below, MGX_BOOL);
    place = mgx_build_emit(n, &mgx_op_where, NULL, MGX_IN(below, wrapped, place));
    place = combine(n, &mgx_op_mul, place, step_of(n, axis));
    for (int i = 0; i < rank; i++) {
        if (i == axis)
            continue;
        struct mgx_ins *at = mgx_build_mul(n, mgx_build_indices(n, n->in[1], i), step_of(n, i));
        place = combine(n, &mgx_op_add, place, at ? mgx_build_per_axis(n, at, i, rank) : NULL);
    }
    n->out[0] = mgx_build_gather(n, mgx_build_reshape(n, x, (int64_t[]){-1}, 1), place, 0);
    return MGX_OK;
}

// One flat gather: place = base + index * stride of the axis, negative indices from the end.
static enum mgx_status gather_elements(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0], *base = NULL;
    int axis = 0;
    if (mgx_build_rank(x) != mgx_build_rank(n->in[1]))
        return mgx_node_invalid(n, "data has rank %d, indices %d", mgx_build_rank(x),
                                mgx_build_rank(n->in[1]));
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), mgx_build_rank(x), &axis));
    if (!mgx_build_static(n))
        return gather_open(n, axis);
    const struct mgx_shape data = mgx_shape_make(x->shape.type, x->shape.rank, x->shape.lens);
    const struct mgx_shape index = n->in[1]->shape;
    TRY(require_inside(n, &data, &index, axis));
    if (mgx_shape_elements(&index) == 0) {
        const struct mgx_shape empty = mgx_shape_make(x->shape.type, index.rank, index.lens);
        n->out[0] = mgx_build_doubles(n, &empty, NULL);
        return MGX_OK;
    }
    TRY(base_offsets(n, &data, &index, axis, &base));
    struct mgx_ins *place =
        mgx_build_add(n, base, axis_offsets(n, data.lens[axis], data.strides[axis]));
    n->out[0] = mgx_build_gather(n, mgx_build_reshape(n, x, (int64_t[]){-1}, 1), place, 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_gather_elements = {
    .name = "GatherElements", .import = gather_elements, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- Compress ---

// The places of what is not 0 in a constant condition.
static enum mgx_status chosen_places(struct mgx_node *n, struct mgx_ints condition,
                                     struct mgx_ins **out)
{
    int64_t *chosen = MGX_NEW_ARRAY(n->scratch, int64_t, condition.count);
    if (!chosen)
        return mgx_fail_memory(n->diag);
    int count = 0;
    for (int i = 0; i < condition.count; i++)
        if (condition.v[i])
            chosen[count++] = i;
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, count);
    *out = mgx_build_ints(n, &shape, chosen);
    return MGX_OK;
}

// The slices whose condition is true; where the condition is not constant their number is known at
// run time only.
static enum mgx_status compress(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    int axis = 0;
    if (mgx_onnx_has(n, "axis"))
        TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), mgx_build_rank(x), &axis));
    else
        x = mgx_build_reshape(n, x, (int64_t[]){-1}, 1);
    struct mgx_ints condition = {0};
    struct mgx_ins *places = NULL;
    if (mgx_node_constant_ints(n, 1, &condition))
        TRY(chosen_places(n, condition, &places));
    else
        places =
            mgx_build_reshape(n, mgx_build_unary(n, &mgx_op_nonzero, n->in[1]), (int64_t[]){-1}, 1);
    n->out[0] = mgx_build_gather(n, x, places, axis);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_compress = {
    .name = "Compress", .import = compress, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- ReverseSequence ---

static enum mgx_status require_axes(struct mgx_node *n, int rank, int64_t *batch_axis)
{
    *batch_axis = mgx_onnx_int(n, "batch_axis", 1);
    const int64_t time_axis = mgx_onnx_int(n, "time_axis", 0);
    if (rank < 2 || (*batch_axis != 0 && *batch_axis != 1) || time_axis != 1 - *batch_axis)
        return mgx_node_invalid(n, "rank %d with batch_axis %lld and time_axis %lld", rank,
                                (long long)*batch_axis, (long long)time_axis);
    return MGX_OK;
}

static struct mgx_ins *sequence_lengths(struct mgx_node *n)
{
    const struct mgx_ints listed = mgx_onnx_ints(n, "sequence_lens"); // not in any version
    struct mgx_ins *length = mgx_node_in(n, 1);
    return length ? mgx_build_convert(n, length, MGX_INT64)
                  : mgx_build_literal_ints(n, listed.v, listed.count);
}

// Beside the row of an axis: a column.
static struct mgx_ins *column(struct mgx_node *n, struct mgx_ins *v)
{
    return v ? mgx_build_per_axis(n, v, 0, 2) : NULL;
}

// Where each entry is read, batch and time merged as they come:
// t < length ? length - 1 - t : t along time.
static struct mgx_ins *reversed_places(struct mgx_node *n, int64_t batch, int64_t time,
                                       bool time_first)
{
    struct mgx_ins *t = mgx_build_iota(n, MGX_INT64, time);
    struct mgx_ins *b = mgx_build_iota(n, MGX_INT64, batch);
    struct mgx_ins *length = sequence_lengths(n);
    if (time_first) {
        t = column(n, t);
    } else {
        b = column(n, b);
        length = column(n, length);
    }
    struct mgx_ins *back = mgx_build_sub(n, mgx_build_with(n, &mgx_op_sub, length, 1), t);
    t = mgx_build_where(n, mgx_build_less(n, t, length), back, t);
    return time_first ? mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, t, (double)batch), b)
                      : mgx_build_add(n, mgx_build_with(n, &mgx_op_mul, b, (double)time), t);
}

// Along time the first `length` entries of each batch entry turn round: one gather over batch and
// time merged.
static enum mgx_status reverse_sequence(struct mgx_node *n)
{
    TRY(mgx_node_need(n, mgx_onnx_ints(n, "sequence_lens").count ? 1 : 2, 2));
    struct mgx_ins *x = n->in[0], *length = mgx_node_in(n, 1);
    int64_t batch_axis;
    if (!mgx_build_is_static(x) || (length && !mgx_build_is_static(length)))
        return mgx_onnx_defer(n);
    const int rank = x->shape.rank;
    TRY(require_axes(n, rank, &batch_axis));
    const int64_t batch = x->shape.lens[batch_axis], time = x->shape.lens[1 - batch_axis];
    if (mgx_shape_elements(&x->shape) == 0) {
        n->out[0] = mgx_build_unary(n, &mgx_op_identity, x);
        return MGX_OK;
    }
    struct mgx_ins *place = reversed_places(n, batch, time, batch_axis == 1);
    int64_t merged[MGX_MAX_RANK] = {batch * time};
    for (int i = 2; i < rank; i++)
        merged[i - 1] = x->shape.lens[i];
    n->out[0] = mgx_build_gather(n, mgx_build_reshape(n, x, merged, rank - 1), place, 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_reverse_sequence = {.name = "ReverseSequence",
                                                      .import = reverse_sequence,
                                                      .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
