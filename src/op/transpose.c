// SPDX-License-Identifier: MIT
// transpose: axis i of the result is axis permutation[i] of x. A view: strides are permuted.
#include "op/rule/rule.h"

struct transpose {
    struct mgx_ints permutation;
};

static const struct mgx_field fields[] = {MGX_INTS(struct transpose, permutation), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct transpose *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    TRY(mgx_require_permutation(c, a->permutation, s->rank));
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < s->rank; i++)
        dims[i] = mgx_shape_dim(s, (int)a->permutation.v[i]);
    *out = mgx_shape_from_dims(s->type, s->rank, dims);
    for (int i = 0; mgx_shape_is_static(out) && i < s->rank; i++)
        out->strides[i] = s->strides[a->permutation.v[i]];
    return MGX_OK;
}

const struct mgx_op mgx_op_transpose = {
    .name = "transpose",
    .meaning = "axis i of y is axis permutation[i] of x",
    .fields = fields,
    .attr_size = sizeof(struct transpose),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = mgx_compute_view,
};
