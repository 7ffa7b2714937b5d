// SPDX-License-Identifier: MIT
// shorten: x with only the first n of an axis, n being known at run time only.
//
// Behind operators whose results have room for as many as there may be (nonzero_list and its like),
// so that all before it has fixed sizes. Passes put it there.
#include <assert.h>
#include <inttypes.h>

#include "op/rule/rule.h"

struct shorten {
    int64_t axis;
};

static const struct mgx_field fields[] = {MGX_INT(struct shorten, axis), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct shorten *a = c->attr;
    int axis;
    bool known;
    struct mgx_ints n;
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_normalize_axis(c, a->axis, c->in[0]->rank, &axis));
    TRY(mgx_known_ints(c, 1, &known, &n));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], c->in[0]->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    if (known && (n.count != 1 || n.v[0] < 0 || n.v[0] > dims[axis].max))
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " of at most %" PRId64 " along axis %d", c->op->name,
                        n.count ? n.v[0] : 0, dims[axis].max, axis);
    dims[axis] = known ? (struct mgx_dim){.min = n.v[0], .max = n.v[0]}
                       : (struct mgx_dim){.min = 0, .max = dims[axis].max};
    *out = mgx_shape_from_dims(c->in[0]->type, c->in[0]->rank, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const int axis = mgx_wrap_axis(((const struct shorten *)c->attr)->axis, x->rank);
    int64_t n;
    TRY(mgx_scalar_int(c, 1, &n));
    if (n < 0 || n > x->lens[axis])
        return mgx_fail(c->diag, MGX_INVALID, "%s: %" PRId64 " of %" PRId64 " along axis %d",
                        c->op->name, n, x->lens[axis], axis);
    struct mgx_shape front = *x;
    front.lens[axis] = n;
    if (!mgx_shape_is_static(c->out_shape)) {
        *c->out = mgx_tensor_view(c->in[0], &front, 0);
        return MGX_OK;
    }
    const struct mgx_tensor part = mgx_tensor_part(c->in[0], &front, 0);
    if (mgx_shape_elements(&front))
        mgx_tensor_copy(&part, c->out);
    return MGX_OK;
}

const struct mgx_op mgx_op_shorten = {
    .name = "shorten",
    .meaning = "the first n of x along an axis",
    .fields = fields,
    .attr_size = sizeof(struct shorten),
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_HANDS_ON,
    .shape = shape,
    .compute = compute,
};
