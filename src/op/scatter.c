// SPDX-License-Identifier: MIT
// scatter_*: y = x, then y[.., indices[i], ..] (op)= updates[i] along axis, in row-major order of
// the updates. scatternd_*: the last axis of the indices holds positions along the leading axes of
// x, and whole slabs are updated. none replaces; add, mul, min and max combine.
//
// Negative indices count from the end. An index outside its axis fails at run time, or is passed
// over with skip_out_of_bounds.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/rule/rule.h"

// --- combining ---

enum combine { NONE, ADD, MUL, MIN, MAX };

static double combine_real(enum combine how, double a, double b)
{
    switch (how) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MIN:
        return a != a || a < b ? a : b;
    case MAX:
        return a != a || a > b ? a : b;
    default:
        return b;
    }
}

static int64_t combine_int(enum combine how, int64_t a, int64_t b, bool is_unsigned)
{
    assert(how >= 0);
    const bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (how) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN:
        return less ? a : b;
    case MAX:
        return less ? b : a;
    default:
        return b;
    }
}

// One element of y at offset `to` with one of the updates at offset `from`. `sum` holds y in double
// for floats, so that many updates of one place round once.
static void update(struct mgx_tensor *y, double *sum, int64_t to, const struct mgx_tensor *u,
                   int64_t from, enum combine how)
{
    assert(to >= 0);
    const enum mgx_type type = y->shape.type;
    const size_t size = mgx_type_size(type);
    if (how == NONE)
        memcpy((char *)y->data + (size_t)to * size, (const char *)u->data + (size_t)from * size,
               size);
    else if (sum)
        sum[to] = combine_real(how, sum[to], mgx_load_double(type, u->data, from));
    else
        mgx_store_int(type, y->data, to,
                      combine_int(how, mgx_load_int(type, y->data, to),
                                  mgx_load_int(type, u->data, from), mgx_type_is_unsigned(type)));
}

// y = x; the doubles to combine in, or NULL for integers and replacing. False: no memory.
static bool start(struct mgx_compute_call *c, enum combine how, double **sum)
{
    *sum = NULL;
    mgx_tensor_copy(c->in[0], c->out);
    if (how == NONE || mgx_computes_as_int(c->out->shape.type))
        return true;
    struct mgx_tensor flat = *c->out; // elements in the order of memory
    const int64_t count = mgx_shape_elements(&c->out->shape);
    flat.shape = mgx_shape_vector(c->out->shape.type, count);
    *sum = mgx_scratch_doubles(c, &flat);
    return *sum != NULL;
}

static void finish(struct mgx_compute_call *c, const double *sum)
{
    const int64_t count = mgx_shape_elements(&c->out->shape);
    for (int64_t i = 0; sum && i < count; i++)
        mgx_store_double(c->out->shape.type, c->out->data, i, sum[i]);
}

static enum mgx_status check_types(struct mgx_shape_call *c, enum combine how)
{
    const enum mgx_type type = c->in[0]->type;
    TRY(mgx_require_integral(c, 1));
    if (c->in[2]->type != type)
        return mgx_fail(c->diag, MGX_INVALID, "%s: Types do not match: %s and updates of %s",
                        c->op->name, mgx_type_name(type), mgx_type_name(c->in[2]->type));
    if (how != NONE && !mgx_type_is_number(type))
        return mgx_fail(c->diag, MGX_INVALID, "%s: type %s is not a number", c->op->name,
                        mgx_type_name(type));
    return MGX_OK;
}

// A packed x keeps its layout (its elements fill their space: offsets index `sum`).
static struct mgx_shape result_of(const struct mgx_shape *x)
{
    return mgx_shape_is_packed(x) ? *x : mgx_shape_retype(x, x->type);
}

static enum combine how_of(const struct mgx_op *op)
{
    return *(const enum combine *)op->user;
}

static const enum combine none = NONE, add = ADD, mul = MUL, min = MIN, max = MAX;

// --- along one axis ---

struct scatter {
    int64_t axis;
    bool skip_out_of_bounds;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct scatter, axis), MGX_FLAG(struct scatter, skip_out_of_bounds), {0}};

static enum mgx_status axis_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct scatter *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    int axis;
    TRY(check_types(c, how_of(c->op)));
    TRY(mgx_normalize_axis(c, a->axis, s->rank, &axis));
    if (c->in[1]->rank != s->rank || !mgx_shape_may_match(c->in[1], c->in[2]))
        return mgx_fail_lens(c, c->in[1]->rank != s->rank ? 0 : 1,
                             c->in[1]->rank != s->rank ? 1 : 2);
    for (int i = 0; i < s->rank; i++)
        if (i != axis && mgx_shape_dim(c->in[1], i).min > mgx_shape_dim(s, i).max)
            return mgx_fail_lens(c, 0, 1);
    *out = result_of(s);
    return MGX_OK;
}

static enum mgx_status axis_compute(struct mgx_compute_call *c)
{
    const struct scatter *a = c->attr;
    const struct mgx_shape *to = &c->out->shape, *at = &c->in[1]->shape;
    const enum combine how = how_of(c->op);
    const int axis = mgx_wrap_axis(a->axis, to->rank);
    const int64_t *index = mgx_scratch_ints(c, c->in[1]), count = mgx_shape_elements(at);
    double *sum;
    if (!index || !start(c, how, &sum))
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = to->lens[axis];
        int64_t place[MGX_MAX_RANK];
        mgx_shape_multi(at, i, place);
        const int64_t from = mgx_shape_offset(&c->in[2]->shape, place);
        if (a->skip_out_of_bounds && (index[i] < -n || index[i] >= n))
            continue;
        TRY(mgx_wrap_index(c, index[i], axis, n, &place[axis]));
        update(c->out, sum, mgx_shape_offset(to, place), c->in[2], from, how);
    }
    finish(c, sum);
    return MGX_OK;
}

#define SCATTER(name_, how, text)                                                                  \
    {                                                                                              \
        .name = name_, .meaning = text, .fields = fields, .attr_size = sizeof(struct scatter),     \
        .in_min = 3, .in_max = 3, .shape = axis_shape, .compute = axis_compute, .user = &how       \
    }

const struct mgx_op mgx_op_scatter_none =
    SCATTER("scatter_none", none, "x with updates put in place along axis");
const struct mgx_op mgx_op_scatter_add =
    SCATTER("scatter_add", add, "x with updates added along axis");
const struct mgx_op mgx_op_scatter_mul =
    SCATTER("scatter_mul", mul, "x with updates multiplied along axis");
const struct mgx_op mgx_op_scatter_min =
    SCATTER("scatter_min", min, "x with the minimum of updates along axis");
const struct mgx_op mgx_op_scatter_max =
    SCATTER("scatter_max", max, "x with the maximum of updates along axis");

// --- slabs ---

static enum mgx_status nd_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0], *at = c->in[1], *u = c->in[2];
    TRY(check_types(c, how_of(c->op)));
    TRY(mgx_require_rank(c, 1, 1, MGX_MAX_RANK));
    *out = result_of(s);
    const struct mgx_dim depth = mgx_shape_dim(at, at->rank - 1);
    if (depth.min != depth.max)
        return MGX_OK;
    if (depth.max > s->rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: indices of %" PRId64 " places for %d axes",
                        c->op->name, depth.max, s->rank);
    const int skip = (int)depth.max, rank = at->rank - 1 + s->rank - skip;
    if (u->rank != rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: updates have %d dimensions, expected %d",
                        c->op->name, u->rank, rank);
    for (int i = 0; i < rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(u, i);
        const struct mgx_dim want =
            i < at->rank - 1 ? mgx_shape_dim(at, i) : mgx_shape_dim(s, i - at->rank + 1 + skip);
        if (d.max < want.min || want.max < d.min)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: Dimensions do not match: axis %d of the updates is %" PRId64
                            ", expected %" PRId64,
                            c->op->name, i, d.max, want.max);
    }
    return MGX_OK;
}

static void update_slab(struct mgx_compute_call *c, double *sum, int skip, int64_t to,
                        int64_t number)
{
    assert(skip >= 0 && to >= 0);
    const struct mgx_shape *y = &c->out->shape;
    const struct mgx_shape slab =
        mgx_shape_strided(y->type, y->rank - skip, y->lens + skip, y->strides + skip);
    const int64_t count = mgx_shape_elements(&slab);
    for (int64_t i = 0; i < count; i++)
        update(c->out, sum, to + mgx_shape_index(&slab, i), c->in[2],
               mgx_shape_index(&c->in[2]->shape, number * count + i), how_of(c->op));
}

static enum mgx_status nd_compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *to = &c->out->shape, *at = &c->in[1]->shape;
    const int skip = (int)at->lens[at->rank - 1];
    const int64_t *index = mgx_scratch_ints(c, c->in[1]);
    double *sum;
    if (!index || !start(c, how_of(c->op), &sum))
        return MGX_NO_MEMORY;
    const struct mgx_shape places = mgx_shape_make(MGX_INT64, at->rank - 1, at->lens);
    const int64_t count = mgx_shape_elements(&places);
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = 0;
        for (int axis = 0; axis < skip; axis++) {
            int64_t p;
            TRY(mgx_wrap_index(c, index[i * skip + axis], axis, to->lens[axis], &p));
            offset += p * to->strides[axis];
        }
        update_slab(c, sum, skip, offset, i);
    }
    finish(c, sum);
    return MGX_OK;
}

#define SCATTERND(name_, how, text)                                                                \
    {                                                                                              \
        .name = name_, .meaning = text, .in_min = 3, .in_max = 3, .shape = nd_shape,               \
        .compute = nd_compute, .user = &how                                                        \
    }

const struct mgx_op mgx_op_scatternd_none =
    SCATTERND("scatternd_none", none, "x with slabs put in place");
const struct mgx_op mgx_op_scatternd_add = SCATTERND("scatternd_add", add, "x with slabs added");
const struct mgx_op mgx_op_scatternd_mul =
    SCATTERND("scatternd_mul", mul, "x with slabs multiplied");
const struct mgx_op mgx_op_scatternd_min =
    SCATTERND("scatternd_min", min, "x with the minimum of slabs");
const struct mgx_op mgx_op_scatternd_max =
    SCATTERND("scatternd_max", max, "x with the maximum of slabs");
