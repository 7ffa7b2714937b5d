// SPDX-License-Identifier: MIT
// dft: the discrete Fourier transform along one axis (ONNX DFT).
//
//     Y[k] = sum over t of x[t] * exp(-2 pi i k t / n)      inverse: + in the exponent, and / n
//
// The last axis of x holds real numbers (length 1) or real and imaginary parts (length 2), that of
// y both; n is the second input, else the length of the axis, which is cut or filled with zeros.
// onesided keeps the n / 2 + 1 values that determine the rest of a real signal's transform; inverse
// and onesided together take those and give the real signal (n is 2 * (length - 1) by default).
// Any n, by splitting it into its prime factors. Cost: n times the sum of its prime factors.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/reference/lanes.h"

struct dft {
    int64_t axis;
    bool inverse, onesided;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct dft, axis), MGX_FLAG(struct dft, inverse), MGX_FLAG(struct dft, onesided), {0}};
static const struct dft defaults = {.axis = 1};

enum { LENGTH_MAX = 1 << 28 };

// --- shape ---

static int64_t default_length(const struct dft *a, int64_t length)
{
    assert(length >= 0);
    return a->inverse && a->onesided ? 2 * (length - 1) : length;
}

static int64_t out_length(const struct dft *a, int64_t n)
{
    return a->onesided && !a->inverse ? n / 2 + 1 : n;
}

// The range of n.
static enum mgx_status find_length(struct mgx_shape_call *c, struct mgx_dim in, struct mgx_dim *n)
{
    const struct dft *a = c->attr;
    bool known = true;
    struct mgx_ints given = {0};
    const bool has = c->in_count > 1 && !mgx_shape_is_absent(c->in[1]);
    if (has)
        TRY(mgx_known_ints(c, 1, &known, &given));
    if (!known) {
        *n = (struct mgx_dim){.min = 1, .max = LENGTH_MAX};
        return MGX_OK;
    }
    if (has && given.count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: input 1 has %d values, not 1", c->op->name,
                        given.count);
    if (has)
        *n = (struct mgx_dim){.min = given.v[0], .max = given.v[0]};
    else
        *n = (struct mgx_dim){.min = mgx_max_i64(default_length(a, in.min), 1),
                              .max = default_length(a, mgx_min_i64(in.max, LENGTH_MAX))};
    if (n->max < 1 || n->min > LENGTH_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: length %" PRId64 " is out of range 1..%d",
                        c->op->name, n->max, LENGTH_MAX);
    n->max = mgx_min_i64(n->max, LENGTH_MAX);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct dft *a = c->attr;
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    int axis;
    TRY(mgx_normalize_axis(c, a->axis, x->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim *parts = &dims[x->rank - 1];
    if (axis == x->rank - 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: axis %d holds the parts of a number",
                        c->op->name, axis);
    if (parts->min > 2 || parts->max < 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: numbers have %" PRId64 " parts, not 1 or 2",
                        c->op->name, parts->max);
    struct mgx_dim n;
    TRY(find_length(c, dims[axis], &n));
    dims[axis] = (struct mgx_dim){.min = out_length(a, n.min), .max = out_length(a, n.max)};
    const int64_t out_parts = a->inverse && a->onesided ? 1 : 2;
    *parts = (struct mgx_dim){.min = out_parts, .max = out_parts};
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    return MGX_OK;
}

// --- transform ---

struct complex {
    double re, im;
};

struct plan {
    int64_t n;
    struct complex *roots; // exp(-+2 pi i k / n)
    struct complex *spare; // one factor's worth
};

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static int64_t least_factor(int64_t n)
{
    assert(n > 1);
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

// Transform of x[0], x[stride], ... (n of them) into y[0 .. n). The depth is the number of prime
// factors, at most 28.
static void transform(const struct plan *plan, int64_t n, const struct complex *x, int64_t stride,
                      struct complex *y)
{
    assert(n >= 1 && stride >= 1);
    if (n == 1) {
        *y = *x;
        return;
    }
    const int64_t p = least_factor(n), m = n / p, step = plan->n / n;
    for (int64_t r = 0; r < p; r++)
        transform(plan, m, x + r * stride, stride * p, y + r * m);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < p; q++) {
            struct complex sum = y[k];
            for (int64_t r = 1; r < p; r++) {
                const int64_t turn = r * (k + q * m) % n * step;
                const struct complex part = times(y[r * m + k], plan->roots[turn]);
                sum.re += part.re;
                sum.im += part.im;
            }
            plan->spare[q] = sum;
        }
        for (int64_t q = 0; q < p; q++)
            y[k + q * m] = plan->spare[q];
    }
}

static enum mgx_status make_plan(struct mgx_compute_call *c, int64_t n, struct plan *plan)
{
    const double sign = ((const struct dft *)c->attr)->inverse ? 1 : -1;
    plan->n = n;
    plan->roots = MGX_NEW_ARRAY(c->scratch, struct complex, n);
    plan->spare = MGX_NEW_ARRAY(c->scratch, struct complex, n);
    if (!plan->roots || !plan->spare)
        return mgx_fail_memory(c->diag);
    for (int64_t k = 0; k < n; k++) {
        const double angle = sign * 2 * M_PI * (double)k / (double)n;
        plan->roots[k] = (struct complex){cos(angle), sin(angle)};
    }
    return MGX_OK;
}

// --- compute ---

// A lane of `length` numbers of `parts` parts into n complex ones.
static void load(const double *x, int64_t length, int64_t parts, int64_t n, struct complex *out)
{
    assert(parts == 1 || parts == 2);
    for (int64_t k = 0; k < n; k++) {
        out[k] = (struct complex){0, 0};
        if (k < length)
            out[k] = (struct complex){x[k * parts], parts == 2 ? x[k * parts + 1] : 0};
    }
}

// Completes a transform of which 0 .. n / 2 are given, so that its signal is real.
static void mirror(struct complex *x, int64_t n)
{
    assert(n >= 1);
    x[0].im = 0;
    if (n % 2 == 0)
        x[n / 2].im = 0;
    for (int64_t k = n / 2 + 1; k < n; k++)
        x[k] = (struct complex){x[n - k].re, -x[n - k].im};
}

static void store(const struct dft *a, const struct complex *y, int64_t n, double *out)
{
    const double scale = a->inverse ? 1 / (double)n : 1;
    const int64_t count = out_length(a, n);
    for (int64_t k = 0; k < count; k++) {
        *out++ = y[k].re * scale;
        if (!(a->inverse && a->onesided))
            *out++ = y[k].im * scale;
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct dft *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape, *s = &c->out->shape;
    if (mgx_shape_elements(s) == 0)
        return MGX_OK;
    const int axis = mgx_wrap_axis(a->axis, x->rank);
    const int64_t length = x->lens[axis], parts = x->lens[x->rank - 1];
    int64_t n = default_length(a, length);
    if (c->in_count > 1 && !mgx_shape_is_absent(&c->in[1]->shape))
        mgx_tensor_to_ints(c->in[1], &n);
    bool along[MGX_MAX_RANK] = {false};
    along[axis] = along[x->rank - 1] = true;
    struct plan plan;
    TRY(make_plan(c, n, &plan));
    struct mgx_lanes lanes, out_lanes;
    const double *from = mgx_lanes_doubles(c, c->in[0], along, &lanes);
    mgx_lanes_shape(s, along, &out_lanes);
    double *to = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(s));
    struct complex *in = MGX_NEW_ARRAY(c->scratch, struct complex, n);
    struct complex *out = MGX_NEW_ARRAY(c->scratch, struct complex, n);
    if (!from || !to || !in || !out)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < out_lanes.count; i++) {
        load(from + i * lanes.length, length, parts, n, in);
        if (a->inverse && a->onesided)
            mirror(in, n);
        transform(&plan, n, in, 1, out);
        store(a, out, n, to + i * out_lanes.length);
    }
    mgx_lanes_write_doubles(c->out, along, to);
    return MGX_OK;
}

const struct mgx_op mgx_op_dft = {
    .name = "dft",
    .meaning = "Y[k] = sum of x[t] * exp(-2 pi i k t / n)",
    .fields = fields,
    .attr_size = sizeof(struct dft),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 2,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_rest,
};
