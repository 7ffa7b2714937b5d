// SPDX-License-Identifier: MIT
// dequantizelinear: y = (x - zero_point) * scale, element by element, in the type of the scale.
//
// All inputs have equal lengths: per tensor, per axis and blocked scales are broadcast first. x may
// be any integer or float type; it and the zero point have the same one.
#include "op/rule/rule.h"

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_same_lens(c));
    if (c->in_count == 3 && c->in[2]->type != c->in[0]->type)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Types do not match: zero point is %s, input 0 %s", c->op->name,
                        mgx_type_name(c->in[2]->type), mgx_type_name(c->in[0]->type));
    *out = mgx_pointwise_shape(c, c->in[1]->type);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const int64_t count = mgx_shape_elements(&c->out->shape);
    double *x = mgx_scratch_doubles(c, c->in[0]);
    const double *scale = mgx_scratch_doubles(c, c->in[1]);
    const double *zero = c->in_count == 3 ? mgx_scratch_doubles(c, c->in[2]) : NULL;
    if (!x || !scale || (c->in_count == 3 && !zero))
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - (zero ? zero[i] : 0)) * scale[i];
    mgx_write_doubles(c->out, x);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return c->in[1]->type;
}

const struct mgx_op mgx_op_dequantizelinear = {
    .name = "dequantizelinear",
    .meaning = "y = (x - zero_point) * scale",
    .in_min = 2,
    .in_max = 3,
    .flags = MGX_OP_POINTWISE,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
