// SPDX-License-Identifier: MIT
// inverse: of the square matrices in the last two axes, by elimination with row exchange in double.
// A matrix that has none gives infinities or NaN. Cost: 2 n^3 per matrix.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "op/rule/rule.h"

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim *m = &dims[x->rank - 2], *n = &dims[x->rank - 1];
    if (m->min > n->max || m->max < n->min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: matrices of %" PRId64 " by %" PRId64 " are not square", c->op->name,
                        m->max, n->max);
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    return MGX_OK;
}

static void exchange(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; a != b && i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

// row -= factor * by, or row *= factor where they are one
static void subtract(double *row, const double *by, double factor, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        row[j] = row == by ? row[j] * factor : row[j] - factor * by[j];
}

// Makes the n x n matrix m one, and y its inverse.
static void invert(double *m, double *y, int64_t n)
{
    assert(n >= 0);
    for (int64_t i = 0; i < n * n; i++)
        y[i] = i / n == i % n;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        exchange(m + pivot * n, m + k * n, n);
        exchange(y + pivot * n, y + k * n, n);
        const double one = 1 / m[k * n + k];
        subtract(m + k * n, m + k * n, one, n);
        subtract(y + k * n, y + k * n, one, n);
        for (int64_t i = 0; i < n; i++) {
            const double factor = m[i * n + k];
            if (i == k || factor == 0)
                continue;
            subtract(m + i * n, m + k * n, factor, n);
            subtract(y + i * n, y + k * n, factor, n);
        }
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape;
    const int64_t n = x->lens[x->rank - 1], all = mgx_shape_elements(x);
    double *m = mgx_scratch_doubles(c, c->in[0]);
    double *y = MGX_NEW_ARRAY(c->scratch, double, all);
    if (!m || !y)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; n && i < all; i += n * n)
        invert(m + i, y + i, n);
    mgx_write_doubles(c->out, y);
    return MGX_OK;
}

const struct mgx_op mgx_op_inverse = {
    .name = "inverse",
    .meaning = "y = inverse of the matrices in the last two axes",
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
