// SPDX-License-Identifier: MIT
// layout: the same elements stored in another order of axes, slowest first: {0, 2, 3, 1} is NHWC
// over NCHW lengths.
#include "op/rule/rule.h"

struct layout {
    struct mgx_ints permutation;
};

static const struct mgx_field fields[] = {MGX_INTS(struct layout, permutation), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct layout *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    TRY(mgx_require_permutation(c, a->permutation, s->rank));
    *out = mgx_shape_retype(s, s->type);
    if (!mgx_shape_is_static(s))
        return MGX_OK;
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        const int64_t axis = a->permutation.v[i];
        out->strides[axis] = stride;
        stride *= s->lens[axis];
    }
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    mgx_tensor_copy(c->in[0], c->out);
    return MGX_OK;
}

const struct mgx_op mgx_op_layout = {
    .name = "layout",
    .meaning = "y = x stored in another order of axes",
    .fields = fields,
    .attr_size = sizeof(struct layout),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_POINTWISE | MGX_OP_ANY_STRIDE | MGX_OP_BLIND,
    .shape = shape,
    .compute = compute,
};
