// SPDX-License-Identifier: MIT
// lrn: local response normalisation across channels.
//
//     y[n, c, ...] = x[n, c, ...] / (bias + alpha / size * sum of x[n, i, ...]^2)^beta
//
// with i from c - (size - 1) / 2 (rounded down) to c + (size - 1) / 2 (rounded up), within the
// channels. Cost: size additions per element.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/reference/lanes.h"

struct lrn {
    double alpha, beta, bias;
    int64_t size;
};

static const struct mgx_field fields[] = {MGX_REAL(struct lrn, alpha),
                                          MGX_REAL(struct lrn, beta),
                                          MGX_REAL(struct lrn, bias),
                                          MGX_INT(struct lrn, size),
                                          {0}};
static const struct lrn defaults = {.alpha = 0.0001, .beta = 0.75, .bias = 1, .size = 1};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct lrn *a = c->attr;
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    if (a->size < 1 || a->size > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: size %" PRId64 " is out of range 1..%d",
                        c->op->name, a->size, INT32_MAX);
    *out = mgx_pointwise_shape(c, c->in[0]->type);
    return MGX_OK;
}

static void normalize(const struct lrn *a, const double *x, double *squares, int64_t n, double *y)
{
    assert(n >= 0 && a->size > 0);
    const int64_t before = (a->size - 1) / 2, after = a->size / 2;
    for (int64_t i = 0; i < n; i++)
        squares[i] = x[i] * x[i];
    for (int64_t i = 0; i < n; i++) {
        // Summed anew each time: taking terms off a running sum would lose small ones.
        const int64_t last = mgx_min_i64(n - 1, i + after);
        double sum = 0;
        for (int64_t k = mgx_max_i64(0, i - before); k <= last; k++)
            sum += squares[k];
        y[i] = x[i] / pow(a->bias + a->alpha / (double)a->size * sum, a->beta);
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    if (mgx_shape_elements(s) == 0)
        return MGX_OK;
    const bool along[MGX_MAX_RANK] = {false, true};
    struct mgx_lanes lanes;
    const double *x = mgx_lanes_doubles(c, c->in[0], along, &lanes);
    double *y = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(s));
    double *squares = MGX_NEW_ARRAY(c->scratch, double, lanes.length);
    if (!x || !y || !squares)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < lanes.count; i++)
        normalize(c->attr, x + i * lanes.length, squares, lanes.length, y + i * lanes.length);
    mgx_lanes_write_doubles(c->out, along, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_lrn = {
    .name = "lrn",
    .meaning = "y = x / (bias + alpha / size * sum of squares of near channels)^beta",
    .fields = fields,
    .attr_size = sizeof(struct lrn),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_CHANNELS_LAST_4D,
    .shape = shape,
    .compute = compute,
};
