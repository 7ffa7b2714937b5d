// SPDX-License-Identifier: MIT
// broadcast: x laid along axes axis, axis+1, ... of the result, repeated over all others. Unlike
// multibroadcast its own lengths must match. A view: repeated axes have stride 0.
//
// One input: the result's lengths are out_lens (or the ranges out_dyn_dims). Two inputs: those of
// the second, which is read for its shape only.
#include <assert.h>
#include <inttypes.h>

#include "op/rule/rule.h"

struct broadcast {
    int64_t axis;
    struct mgx_ints out_lens;
    struct mgx_dims out_dyn_dims;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct broadcast, axis),
    MGX_INTS(struct broadcast, out_lens),
    MGX_DIMS(struct broadcast, out_dyn_dims),
    {0},
};

static enum mgx_status put_axis(struct mgx_shape_call *c, struct mgx_dim *dims, int at,
                                struct mgx_dim d)
{
    assert(at >= 0);
    const int64_t want = dims[at].max;
    if (d.max < dims[at].min || dims[at].max < d.min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "broadcast: when broadcasting, succeeding sizes must match: axis %d is "
                        "%" PRId64 ", the input has %" PRId64,
                        at, want, d.max);
    mgx_dim_meet(&dims[at], d);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct broadcast *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    struct mgx_dim *dims;
    int rank, axis;
    TRY(mgx_target_dims(c, a->out_lens, a->out_dyn_dims, &dims, &rank));
    TRY(mgx_normalize_axis(c, a->axis, rank, &axis));
    if (rank - axis < s->rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "broadcast: (broadcast ndims - axis) is less than the input's ndims: "
                        "%d - %d is less than %d",
                        rank, axis, s->rank);
    for (int i = 0; i < s->rank; i++)
        TRY(put_axis(c, dims, axis + i, mgx_shape_dim(s, i)));
    *out = mgx_shape_from_dims(s->type, rank, dims);
    if (!mgx_shape_is_static(out) || !mgx_shape_is_static(s))
        return MGX_OK;
    for (int i = 0; i < rank; i++)
        out->strides[i] = i >= axis && i < axis + s->rank ? s->strides[i - axis] : 0;
    return MGX_OK;
}

const struct mgx_op mgx_op_broadcast = {
    .name = "broadcast",
    .meaning = "x repeated over all axes but axis, axis+1, ...",
    .fields = fields,
    .attr_size = sizeof(struct broadcast),
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = mgx_compute_view,
};
