// SPDX-License-Identifier: MIT
// byte_range: how floats become bytes by the range that they have with 0 in it, as
// DynamicQuantizeLinear says it: {scale, zero point, 1 / (255 scale), zero point / 255}.
//
//     scale = (high - low) / 255, or 1 where that is 0          low <= 0 <= high, of all values
//     zero  = clamp(nearest(-low / scale), 0, 255)              as a float
//
// By the last two x is a share of the bytes' range: x times the one plus the other.
// A value that is no number makes the scale none, and the zero point 0. Cost: x is read once.
#include <math.h>

#include "op/op.h"
#include "op/rule/rule.h"

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->in[0]->type != MGX_FLOAT)
        return mgx_fail(c->diag, MGX_INVALID, "byte_range: type %s is not float",
                        mgx_type_name(c->in[0]->type));
    *out = mgx_shape_vector(MGX_FLOAT, 4);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const double *x = mgx_scratch_doubles(c, c->in[0]);
    const int64_t elements = mgx_shape_elements(&c->in[0]->shape);
    double low = 0, high = 0;
    if (!x)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < elements; i++) {
        low = isnan(x[i]) || x[i] < low ? x[i] : low;
        high = isnan(x[i]) || x[i] > high ? x[i] : high;
    }
    float *out = c->out->data, scale = ((float)high - (float)low) / 255;
    scale = scale == 0 ? 1 : scale;
    const float zero = rintf(-(float)low / scale);
    out[0] = scale;
    out[1] = zero > 0 ? fminf(zero, 255) : 0;
    out[2] = 1 / (255 * scale);
    out[3] = out[1] / 255;
    return MGX_OK;
}

const struct mgx_op mgx_op_byte_range = {
    .name = "byte_range",
    .meaning = "scale and zero point of bytes that have the range of x with 0 in it, 1 / (255 "
               "scale), zero point / 255",
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
