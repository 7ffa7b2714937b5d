// SPDX-License-Identifier: MIT
// gather: y[.., i.., ..] = x[.., indices[i..], ..] along axis. A scalar index removes the axis.
// Negative indices count from the end; an index outside the axis fails at run time.
#include "op/rule/rule.h"

#include <assert.h>

struct gather {
    int64_t axis;
};

static const struct mgx_field fields[] = {MGX_INT(struct gather, axis), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct gather *a = c->attr;
    const struct mgx_shape *s = c->in[0], *at = c->in[1];
    int axis;
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_normalize_axis(c, a->axis, s->rank, &axis));
    const int rank = s->rank - 1 + at->rank;
    if (rank > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "gather: %d dimensions are above the limit of %d", rank,
                        MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < rank; i++) {
        if (i < axis)
            dims[i] = mgx_shape_dim(s, i);
        else if (i < axis + at->rank)
            dims[i] = mgx_shape_dim(at, i - axis);
        else
            dims[i] = mgx_shape_dim(s, i - at->rank + 1);
    }
    *out = mgx_shape_from_dims(s->type, rank, dims);
    return MGX_OK;
}

// For each index the slab of x that it picks is copied to the slab of y at its place.
static enum mgx_status compute(struct mgx_compute_call *c)
{
    assert(c->out->shape.rank == c->in[0]->shape.rank - 1 + c->in[1]->shape.rank);
    const struct gather *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape, *at = &c->in[1]->shape, *to = &c->out->shape;
    const int axis = mgx_wrap_axis(a->axis, s->rank);
    assert(axis >= 0 && axis < s->rank); // the shape rule looked
    const int64_t *index = mgx_scratch_ints(c, c->in[1]);
    if (!index)
        return MGX_NO_MEMORY;
    struct mgx_shape from_slab = {.type = s->type}, to_slab = {.type = s->type};
    for (int i = 0; i < s->rank; i++) {
        if (i == axis)
            continue;
        const int j = i < axis ? i : i - 1 + at->rank, k = from_slab.rank++;
        from_slab.lens[k] = to_slab.lens[k] = s->lens[i];
        from_slab.strides[k] = s->strides[i];
        to_slab.strides[k] = to->strides[j];
    }
    assert(from_slab.rank == s->rank - 1);
    to_slab.rank = from_slab.rank;
    struct mgx_shape places = *at; // of the slabs in y
    for (int i = 0; i < at->rank; i++)
        places.strides[i] = to->strides[axis + i];
    const int64_t count = mgx_shape_elements(at);
    for (int64_t i = 0; i < count; i++) {
        int64_t p;
        TRY(mgx_wrap_index(c, index[i], axis, s->lens[axis], &p));
        const struct mgx_tensor from = mgx_tensor_part(c->in[0], &from_slab, p * s->strides[axis]);
        struct mgx_tensor slab = mgx_tensor_part(c->out, &to_slab, mgx_shape_index(&places, i));
        mgx_tensor_copy(&from, &slab);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_gather = {
    .name = "gather",
    .meaning = "slabs of x picked by indices along axis",
    .fields = fields,
    .attr_size = sizeof(struct gather),
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_BLIND,
    .shape = shape,
    .compute = compute,
};
