// SPDX-License-Identifier: MIT
// split_to_sequence and concat_from_sequence: between one tensor and a sequence of its parts along
// an axis.
//
// split: a scalar is the size of every part but the last, a vector their sizes, none means 1; parts
// of size 1 lose the axis when keepdims is 0 and no split was given. Parts are views of the input.
// new_axis stacks instead of joining.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct split {
    int64_t axis, keepdims;
};

static const struct mgx_field split_fields[] = {
    MGX_INT(struct split, axis), MGX_INT(struct split, keepdims), {0}};
static const struct split split_defaults = {.keepdims = 1};

static enum mgx_status split_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    int axis = 0;
    if (c->in_count == 2)
        TRY(mgx_require_integral(c, 1));
    if (!c->in[0]->unranked)
        TRY(mgx_normalize_axis(c, ((const struct split *)c->attr)->axis, c->in[0]->rank, &axis));
    if (c->in_count == 2)
        TRY(mgx_require_integral(c, 1));
    struct mgx_shape *member = MGX_NEW(c->arena, struct mgx_shape);
    if (!member)
        return mgx_fail_memory(c->diag);
    *member = mgx_shape_unranked(c->in[0]->type);
    *out = mgx_shape_sequence(member);
    return MGX_OK;
}

// Sizes as a list gives them.
static enum mgx_status listed_sizes(struct mgx_compute_call *c, int64_t length, int64_t **sizes,
                                    int64_t *count)
{
    *count = mgx_shape_elements(&c->in[1]->shape);
    *sizes = mgx_scratch_ints(c, c->in[1]);
    int64_t sum = 0;
    for (int64_t i = 0; *sizes && i < *count; i++) {
        if ((*sizes)[i] < 0 || (*sizes)[i] > length - sum)
            return mgx_fail(c->diag, MGX_INVALID,
                            "split_to_sequence: part %lld of size %lld does not fit into %lld",
                            (long long)i, (long long)(*sizes)[i], (long long)length);
        sum += (*sizes)[i];
    }
    if (*sizes && sum != length)
        return mgx_fail(c->diag, MGX_INVALID, "split_to_sequence: parts add up to %lld of %lld",
                        (long long)sum, (long long)length);
    return *sizes ? MGX_OK : MGX_NO_MEMORY;
}

// Parts of `step`, the last one may be smaller.
static enum mgx_status equal_sizes(struct mgx_compute_call *c, int64_t length, int64_t step,
                                   int64_t **sizes, int64_t *count)
{
    if (step <= 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "split_to_sequence: size %lld of a part is not positive", (long long)step);
    *count = length / step + (length % step != 0);
    *sizes = MGX_NEW_ARRAY(c->scratch, int64_t, *count);
    if (!*sizes)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < *count; i++)
        (*sizes)[i] = mgx_min_i64(step, length - i * step);
    return MGX_OK;
}

// Sizes of the parts in the scratch arena.
static enum mgx_status part_sizes(struct mgx_compute_call *c, int64_t length, int64_t **sizes,
                                  int64_t *count)
{
    assert(length >= 0);
    int64_t step = 1;
    if (c->in_count == 2 && c->in[1]->shape.rank > 0)
        return listed_sizes(c, length, sizes, count);
    if (c->in_count == 2)
        TRY(mgx_scalar_int(c, 1, &step));
    return equal_sizes(c, length, step, sizes, count);
}

static struct mgx_tensor part(const struct mgx_tensor *x, int axis, int64_t at, int64_t size,
                              bool drop_axis)
{
    assert(axis >= 0 && axis < x->shape.rank && at >= 0 && size >= 0);
    struct mgx_shape shape = x->shape;
    const int64_t offset = at * shape.strides[axis] * (int64_t)mgx_type_size(shape.type);
    shape.lens[axis] = size;
    if (drop_axis) {
        shape.rank--;
        memmove(shape.lens + axis, shape.lens + axis + 1,
                sizeof *shape.lens * (size_t)(shape.rank - axis));
        memmove(shape.strides + axis, shape.strides + axis + 1,
                sizeof *shape.strides * (size_t)(shape.rank - axis));
    }
    return mgx_tensor_view(x, &shape, offset);
}

static enum mgx_status split(struct mgx_compute_call *c)
{
    const struct split *a = c->attr;
    const struct mgx_tensor *x = c->in[0];
    const int axis = mgx_wrap_axis(a->axis, x->shape.rank);
    int64_t *sizes = NULL, count = 0, at = 0;
    TRY(part_sizes(c, x->shape.lens[axis], &sizes, &count));
    struct mgx_tensor *members =
        count < INT32_MAX ? MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, count) : NULL;
    if (!members)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++) {
        members[i] = part(x, axis, at, sizes[i], !a->keepdims && c->in_count == 1);
        at += sizes[i];
    }
    return mgx_tensor_group(c->out, members, (int)count, true, c->diag);
}

const struct mgx_op mgx_op_split_to_sequence = {
    .name = "split_to_sequence",
    .meaning = "a sequence of the parts of x along an axis",
    .fields = split_fields,
    .attr_size = sizeof(struct split),
    .defaults = &split_defaults,
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = split_shape,
    .compute = split,
    .sized_by = mgx_sized_by_rest,
};

// --- concat_from_sequence ---

struct join {
    int64_t axis, new_axis;
};

static const struct mgx_field join_fields[] = {
    MGX_INT(struct join, axis), MGX_INT(struct join, new_axis), {0}};

static enum mgx_status join_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->in[0]->type != MGX_SEQUENCE || !c->in[0]->sub_count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "concat_from_sequence: input 0 is no sequence of known type");
    *out = mgx_shape_unranked(c->in[0]->sub[0].type);
    return MGX_OK;
}

// Do members agree, but for the length along an axis that is joined?
static bool joins(const struct mgx_shape *x, const struct mgx_shape *first, int axis, bool new_axis)
{
    bool same = x->rank == first->rank && x->type == first->type;
    for (int i = 0; same && i < x->rank; i++)
        same = x->lens[i] == first->lens[i] || (!new_axis && i == axis);
    return same;
}

// Shape of the whole; members must agree in everything but the length along a joined axis.
static enum mgx_status joined_shape(struct mgx_compute_call *c, int *axis, struct mgx_shape *out)
{
    const struct join *a = c->attr;
    const struct mgx_tensor *s = c->in[0];
    if (!s->sub_count)
        return mgx_fail(c->diag, MGX_INVALID, "concat_from_sequence: the sequence is empty");
    const struct mgx_shape *first = &s->sub[0].shape;
    const int rank = first->rank + (a->new_axis ? 1 : 0);
    const int64_t at = a->axis < 0 ? a->axis + rank : a->axis;
    if (at < 0 || at >= rank || rank > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_INVALID,
                        "concat_from_sequence: axis %lld is out of range for rank %d",
                        (long long)a->axis, rank);
    int64_t lens[MGX_MAX_RANK];
    *axis = (int)at;
    for (int i = 0, j = 0; i < rank; i++)
        lens[i] = a->new_axis && i == *axis ? 1 : first->lens[j++];
    for (int m = 1; m < s->sub_count; m++) {
        const struct mgx_shape *x = &s->sub[m].shape;
        if (!joins(x, first, *axis, a->new_axis))
            return mgx_fail(c->diag, MGX_INVALID,
                            "concat_from_sequence: members 0 and %d differ in shape", m);
        lens[*axis] += a->new_axis ? 1 : x->lens[*axis];
    }
    *out = mgx_shape_make(first->type, rank, lens);
    return MGX_OK;
}

static enum mgx_status join(struct mgx_compute_call *c)
{
    const struct join *a = c->attr;
    struct mgx_shape shape;
    int axis = 0;
    TRY(joined_shape(c, &axis, &shape));
    TRY(mgx_eval_create(c, &shape));
    int64_t at = 0;
    for (int m = 0; m < c->in[0]->sub_count; m++) {
        const struct mgx_tensor *x = &c->in[0]->sub[m];
        struct mgx_shape slot = mgx_shape_make(x->shape.type, x->shape.rank, x->shape.lens);
        for (int i = 0, j = 0; i < shape.rank; i++)
            if (!a->new_axis || i != axis)
                slot.strides[j++] = shape.strides[i];
        struct mgx_tensor to = mgx_tensor_part(c->out, &slot, at * shape.strides[axis]);
        mgx_tensor_copy(x, &to);
        at += a->new_axis ? 1 : x->shape.lens[axis];
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_concat_from_sequence = {
    .name = "concat_from_sequence",
    .meaning = "the members of a sequence joined, or stacked, along an axis",
    .fields = join_fields,
    .attr_size = sizeof(struct join),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = join_shape,
    .compute = join,
};
