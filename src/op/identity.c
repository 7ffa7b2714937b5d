// SPDX-License-Identifier: MIT
// identity: y = x, the same bytes; further inputs are not read. contiguous: y = x in row-major
// order.
#include "op/rule/rule.h"

static enum mgx_status identity_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    *out = *c->in[0];
    return MGX_OK;
}

static enum mgx_status identity_compute(struct mgx_compute_call *c)
{
    *c->out = mgx_tensor_share(c->in[0]);
    return MGX_OK;
}

const struct mgx_op mgx_op_identity = {
    .name = "identity",
    .meaning = "y = x",
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_VIEW | MGX_OP_ANY_STRIDE | MGX_OP_BLIND,
    .shape = identity_shape,
    .compute = identity_compute,
};

static enum mgx_status contiguous_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    *out = mgx_shape_is_standard(s) ? *s : mgx_shape_retype(s, s->type);
    return MGX_OK;
}

static enum mgx_status contiguous_compute(struct mgx_compute_call *c)
{
    mgx_tensor_copy(c->in[0], c->out);
    return MGX_OK;
}

const struct mgx_op mgx_op_contiguous = {
    .name = "contiguous",
    .meaning = "y = x in row-major order",
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_POINTWISE | MGX_OP_ANY_STRIDE | MGX_OP_BLIND,
    .shape = contiguous_shape,
    .compute = contiguous_compute,
};
