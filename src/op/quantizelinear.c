// SPDX-License-Identifier: MIT
// quantizelinear: y = saturate(round(x / scale) + zero_point), element by element.
//
// All inputs have equal lengths: per tensor, per axis and blocked scales are broadcast first. The
// quotient is rounded to the type of x, as every other implementation has it, then to the nearest
// integer, ties to even. fp8 and fp4 results saturate at their largest value and have no zero
// point but 0. The result's type is out_type, else that of the zero point, else uint8.
#include <assert.h>
#include <math.h>

#include "base/half.h"
#include "op/rule/rule.h"

struct quantizelinear {
    int64_t out_type; // MGX_NONE: by the zero point
};

static const struct mgx_field fields[] = {MGX_OPTIONAL_TYPE(struct quantizelinear, out_type), {0}};
static const struct quantizelinear defaults = {.out_type = MGX_NONE};

static enum mgx_type result_type(const struct mgx_shape_call *c)
{
    const int64_t given = ((const struct quantizelinear *)c->attr)->out_type;
    if (given >= 0 && given < MGX_TYPE_COUNT)
        return (enum mgx_type)given;
    return c->in_count == 3 ? c->in[2]->type : MGX_UINT8;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type type = result_type(c);
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_same_lens(c));
    if (!mgx_type_is_number(type) || type == MGX_BOOL || type == MGX_UINT64)
        return mgx_fail(c->diag, MGX_INVALID, "%s: cannot quantize to %s", c->op->name,
                        mgx_type_name(type));
    if (c->in_count == 3 && c->in[2]->type != type)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Types do not match: zero point is %s, the result %s", c->op->name,
                        mgx_type_name(c->in[2]->type), mgx_type_name(type));
    *out = mgx_pointwise_shape(c, type);
    return MGX_OK;
}

// A double as the nearest value of a float type.
static double round_to(enum mgx_type type, double v)
{
    switch (type) {
    case MGX_FLOAT:
        return (float)v;
    case MGX_HALF:
        return mgx_half_to_float(mgx_half_from_double(v));
    case MGX_BF16:
        return mgx_bf16_to_float(mgx_bf16_from_double(v));
    default:
        return v;
    }
}

static double clamp(double v, double low, double high)
{
    assert(low <= high);
    return v < low ? low : v > high ? high : v;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const enum mgx_type type = c->out->shape.type, from = c->in[0]->shape.type;
    const bool ints = mgx_type_is_integral(type);
    const int64_t count = mgx_shape_elements(&c->out->shape);
    double *x = mgx_scratch_doubles(c, c->in[0]);
    const double *scale = mgx_scratch_doubles(c, c->in[1]);
    const double *zero = c->in_count == 3 ? mgx_scratch_doubles(c, c->in[2]) : NULL;
    if (!x || !scale || (c->in_count == 3 && !zero))
        return MGX_NO_MEMORY;
    // All integers up to 32 bits are exact in a double, so are their sums; of 64 bits the clamp
    // keeps the result in range.
    const double low = mgx_type_lowest(type), high = mgx_type_highest(type);
    for (int64_t i = 0; i < count; i++) {
        double q = round_to(mgx_type_is_float(from) ? from : MGX_FLOAT, x[i] / scale[i]);
        if (ints)
            q = nearbyint(q) + (zero ? zero[i] : 0);
        else
            q += zero ? zero[i] : 0;
        x[i] = isnan(q) && ints ? low : clamp(q, low, high);
    }
    mgx_write_doubles(c->out, x);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return result_type(c);
}

const struct mgx_op mgx_op_quantizelinear = {
    .name = "quantizelinear",
    .meaning = "y = saturate(round(x / scale) + zero_point)",
    .fields = fields,
    .attr_size = sizeof(struct quantizelinear),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 3,
    .flags = MGX_OP_POINTWISE,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
