// SPDX-License-Identifier: MIT
// gathernd: y[b.., i.., ..] = x[b.., indices[b.., i..], ..]: the last axis of the indices holds
// positions along the axes of x that follow the batch_dims leading ones. Negative indices count
// from the end; an index outside its axis fails at run time.
#include <assert.h>
#include <inttypes.h>

#include "op/rule/rule.h"

struct gathernd {
    int64_t batch_dims;
};

static const struct mgx_field fields[] = {MGX_INT(struct gathernd, batch_dims), {0}};

static enum mgx_status check(struct mgx_shape_call *c, int64_t *depth)
{
    const struct gathernd *a = c->attr;
    const struct mgx_shape *s = c->in[0], *at = c->in[1];
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 1, 1, MGX_MAX_RANK));
    const struct mgx_dim last = mgx_shape_dim(at, at->rank - 1);
    if (a->batch_dims < 0 || a->batch_dims >= at->rank || a->batch_dims > s->rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "gathernd: batch_dims %" PRId64 " is out of range for %d and %d dimensions",
                        a->batch_dims, s->rank, at->rank);
    *depth = last.min == last.max ? last.max : -1;
    if (*depth > s->rank - a->batch_dims)
        return mgx_fail(c->diag, MGX_INVALID,
                        "gathernd: indices of %" PRId64 " places for %" PRId64 " axes", *depth,
                        s->rank - a->batch_dims);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct gathernd *a = c->attr;
    const struct mgx_shape *s = c->in[0], *at = c->in[1];
    int64_t depth = -1;
    TRY(check(c, &depth));
    if (depth < 0) {
        *out = mgx_shape_unranked(s->type);
        return MGX_OK;
    }
    const int skip = (int)(a->batch_dims + depth), rank = at->rank - 1 + s->rank - skip;
    if (rank > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "gathernd: %d dimensions are above the limit of %d",
                        rank, MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, at, rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = skip; i < s->rank; i++)
        dims[at->rank - 1 + i - skip] = mgx_shape_dim(s, i);
    for (int i = 0; i < a->batch_dims; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        if (d.max < dims[i].min || dims[i].max < d.min)
            return mgx_fail_lens(c, 0, 1);
        mgx_dim_meet(&dims[i], d);
    }
    *out = mgx_shape_from_dims(s->type, rank, dims);
    return MGX_OK;
}

// Offset of the slab of x that the index tuple at `index` picks, for batch position `batch`.
static enum mgx_status slab_offset(struct mgx_compute_call *c, const int64_t *index, int64_t depth,
                                   const int64_t *batch, int64_t *out)
{
    assert(depth >= 0 && depth <= MGX_MAX_RANK);
    const int batch_dims = (int)((const struct gathernd *)c->attr)->batch_dims;
    const struct mgx_shape *s = &c->in[0]->shape;
    *out = 0;
    for (int i = 0; i < batch_dims; i++)
        *out += batch[i] * s->strides[i];
    for (int k = 0; k < depth; k++) {
        const int axis = batch_dims + k;
        int64_t p;
        TRY(mgx_wrap_index(c, index[k], axis, s->lens[axis], &p));
        *out += p * s->strides[axis];
    }
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct gathernd *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape, *at = &c->in[1]->shape;
    const int64_t depth = at->lens[at->rank - 1];
    const int skip = (int)(a->batch_dims + depth);
    assert(skip >= 0 && skip <= s->rank);
    const int64_t *index = mgx_scratch_ints(c, c->in[1]);
    if (!index)
        return MGX_NO_MEMORY;
    const struct mgx_shape places = mgx_shape_make(MGX_INT64, at->rank - 1, at->lens);
    const struct mgx_shape from =
        mgx_shape_strided(s->type, s->rank - skip, s->lens + skip, s->strides + skip);
    const struct mgx_shape to = mgx_shape_make(s->type, s->rank - skip, s->lens + skip);
    const int64_t count = mgx_shape_elements(&places), size = mgx_shape_elements(&to);
    for (int64_t i = 0; i < count; i++) {
        int64_t batch[MGX_MAX_RANK], offset;
        mgx_shape_multi(&places, i, batch);
        TRY(slab_offset(c, index + i * depth, depth, batch, &offset));
        const struct mgx_tensor source = mgx_tensor_part(c->in[0], &from, offset);
        struct mgx_tensor slab = mgx_tensor_part(c->out, &to, i * size);
        mgx_tensor_copy(&source, &slab);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_gathernd = {
    .name = "gathernd",
    .meaning = "slabs of x picked by tuples of indices",
    .fields = fields,
    .attr_size = sizeof(struct gathernd),
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_BLIND,
    .shape = shape,
    .compute = compute,
};
