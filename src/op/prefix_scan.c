// SPDX-License-Identifier: MIT
// prefix_scan_sum, prefix_scan_prod: running sums and products along an axis.
//
//     y[i] = x[0] + ... + x[i];   exclusive leaves x[i] out;   reverse starts from the end
//
// Floats run in double, integers in 64 bits that wrap.
#include "op/reference/lanes.h"

#include <assert.h>

struct scan {
    int64_t axis;
    bool exclusive, reverse;
};

static const struct mgx_field fields[] = {MGX_INT(struct scan, axis),
                                          MGX_FLAG(struct scan, exclusive),
                                          MGX_FLAG(struct scan, reverse),
                                          {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    int axis;
    TRY(mgx_normalize_axis(c, ((const struct scan *)c->attr)->axis, c->in[0]->rank, &axis));
    *out = mgx_pointwise_shape(c, c->in[0]->type);
    return MGX_OK;
}

static void scan_doubles(double *v, int64_t n, const struct scan *a, bool product)
{
    double run = product ? 1 : 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = a->reverse ? n - 1 - k : k;
        const double before = run;
        run = product ? run * v[i] : run + v[i];
        v[i] = a->exclusive ? before : run;
    }
}

static void scan_ints(int64_t *v, int64_t n, const struct scan *a, bool product)
{
    uint64_t run = product ? 1 : 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = a->reverse ? n - 1 - k : k;
        const uint64_t before = run, x = (uint64_t)v[i];
        run = product ? run * x : run + x;
        v[i] = (int64_t)(a->exclusive ? before : run);
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct scan *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape;
    const bool product = c->op->user != NULL;
    if (mgx_shape_elements(x) == 0)
        return MGX_OK;
    bool along[MGX_MAX_RANK] = {false};
    along[mgx_wrap_axis(a->axis, x->rank)] = true;
    struct mgx_lanes lanes;
    if (mgx_computes_as_int(x->type)) {
        int64_t *v = mgx_lanes_ints(c, c->in[0], along, &lanes);
        if (!v)
            return MGX_NO_MEMORY;
        for (int64_t i = 0; i < lanes.count; i++)
            scan_ints(v + i * lanes.length, lanes.length, a, product);
        mgx_lanes_write_ints(c->out, along, v);
        return MGX_OK;
    }
    double *v = mgx_lanes_doubles(c, c->in[0], along, &lanes);
    if (!v)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < lanes.count; i++)
        scan_doubles(v + i * lanes.length, lanes.length, a, product);
    mgx_lanes_write_doubles(c->out, along, v);
    return MGX_OK;
}

#define SCAN(name_, meaning_, user_)                                                               \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .fields = fields, .attr_size = sizeof(struct scan),    \
        .in_min = 1, .in_max = 1, .shape = shape, .compute = compute, .user = user_                \
    }

static const char product_mark;

const struct mgx_op mgx_op_prefix_scan_sum = SCAN("prefix_scan_sum", "y = running sum of x", NULL);
const struct mgx_op mgx_op_prefix_scan_prod =
    SCAN("prefix_scan_prod", "y = running product of x", &product_mark);
