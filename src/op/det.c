// SPDX-License-Identifier: MIT
// det: determinants of the square matrices in the last two axes, by elimination with row exchange
// in double. That of a 0 x 0 matrix is 1. Cost: n^3 / 3 per matrix.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "op/rule/rule.h"

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    const struct mgx_dim m = mgx_shape_dim(x, x->rank - 2), n = mgx_shape_dim(x, x->rank - 1);
    if (m.min > n.max || m.max < n.min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: matrices of %" PRId64 " by %" PRId64 " are not square", c->op->name,
                        m.max, n.max);
    const struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(x->type, x->rank - 2, dims);
    return MGX_OK;
}

static void exchange(double *a, double *b, int64_t n)
{
    assert(n > 0 && a != b);
    for (int64_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

// Destroys the n x n matrix m.
static double determinant(double *m, int64_t n)
{
    assert(n >= 0);
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        if (m[pivot * n + k] == 0)
            return 0;
        if (pivot != k) {
            exchange(m + pivot * n, m + k * n, n);
            det = -det;
        }
        det *= m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return det;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const int64_t count = mgx_shape_elements(&c->out->shape), n = x->lens[x->rank - 1];
    double *m = mgx_scratch_doubles(c, c->in[0]);
    double *det = MGX_NEW_ARRAY(c->scratch, double, count);
    if (!m || !det)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++)
        det[i] = determinant(m + i * n * n, n);
    mgx_write_doubles(c->out, det);
    return MGX_OK;
}

const struct mgx_op mgx_op_det = {
    .name = "det",
    .meaning = "y = determinant of the last two axes",
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
