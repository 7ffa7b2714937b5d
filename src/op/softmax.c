// SPDX-License-Identifier: MIT
// softmax, logsoftmax along an axis:
//
//     softmax:     y = exp(x - m) / s            with m = max x and s = sum exp(x - m)
//     logsoftmax:  y = x - m - log(s)
//
// The maximum is taken out first, so nothing overflows; a lane of minus infinities is NaN.
#include <assert.h>
#include <math.h>

#include "op/reference/lanes.h"

struct softmax {
    int64_t axis;
};

static const struct mgx_field fields[] = {MGX_INT(struct softmax, axis), {0}};
static const struct softmax defaults = {.axis = 1};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_float(c, 0));
    int axis;
    TRY(mgx_normalize_axis(c, ((const struct softmax *)c->attr)->axis, c->in[0]->rank, &axis));
    *out = mgx_pointwise_shape(c, c->in[0]->type);
    return MGX_OK;
}

static void soften(double *v, int64_t n, bool logarithm)
{
    assert(n >= 0);
    double m = v[0], s = 0;
    for (int64_t i = 1; i < n; i++)
        m = v[i] > m || isnan(v[i]) ? v[i] : m;
    for (int64_t i = 0; i < n; i++)
        s += exp(v[i] - m);
    const double log_s = log(s);
    for (int64_t i = 0; i < n; i++)
        v[i] = logarithm ? v[i] - m - log_s : exp(v[i] - m) / s;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const int64_t axis = ((const struct softmax *)c->attr)->axis;
    const struct mgx_shape *x = &c->in[0]->shape;
    if (mgx_shape_elements(x) == 0)
        return MGX_OK;
    bool along[MGX_MAX_RANK] = {false};
    along[mgx_wrap_axis(axis, x->rank)] = true;
    struct mgx_lanes lanes;
    double *v = mgx_lanes_doubles(c, c->in[0], along, &lanes);
    if (!v)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < lanes.count; i++)
        soften(v + i * lanes.length, lanes.length, c->op->user != NULL);
    mgx_lanes_write_doubles(c->out, along, v);
    return MGX_OK;
}

#define SOFTMAX(name_, meaning_, user_)                                                            \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .fields = fields, .attr_size = sizeof(struct softmax), \
        .defaults = &defaults, .in_min = 1, .in_max = 1, .shape = shape, .compute = compute,       \
        .user = user_                                                                              \
    }

static const char logarithm_mark;

const struct mgx_op mgx_op_softmax = SOFTMAX("softmax", "y = exp(x) / sum of exp(x)", NULL);
const struct mgx_op mgx_op_logsoftmax =
    SOFTMAX("logsoftmax", "y = log(exp(x) / sum of exp(x))", &logarithm_mark);
