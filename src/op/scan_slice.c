// SPDX-License-Identifier: MIT
// scan_slice: position `index` of an axis, which stays with length 1; direction 1 counts from the
// end.
//
//     y = x[..., index : index + 1, ...]
#include "op/rule/rule.h"

struct scan_slice {
    int64_t axis, direction;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct scan_slice, axis), MGX_INT(struct scan_slice, direction), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct scan_slice *a = c->attr;
    int axis;
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_normalize_axis(c, a->axis, c->in[0]->rank, &axis));
    if (a->direction != 0 && a->direction != 1)
        return mgx_fail(c->diag, MGX_INVALID, "scan_slice: direction is %lld, not 0 or 1",
                        (long long)a->direction);
    *out = *c->in[0];
    if (!out->dims) {
        out->lens[axis] = 1;
        return MGX_OK;
    }
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], out->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[axis] = (struct mgx_dim){.min = 1, .max = 1};
    *out = mgx_shape_from_dims(out->type, out->rank, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct scan_slice *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape;
    const int axis = mgx_wrap_axis(a->axis, x->rank);
    int64_t index;
    TRY(mgx_scalar_int(c, 1, &index));
    TRY(mgx_wrap_index(c, index, axis, x->lens[axis], &index));
    if (a->direction == 1)
        index = x->lens[axis] - 1 - index;
    *c->out = mgx_tensor_view(c->in[0], c->out_shape,
                              index * x->strides[axis] * (int64_t)mgx_type_size(x->type));
    return MGX_OK;
}

const struct mgx_op mgx_op_scan_slice = {
    .name = "scan_slice",
    .meaning = "y = x[..., index : index + 1, ...]",
    .fields = fields,
    .attr_size = sizeof(struct scan_slice),
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = compute,
};
