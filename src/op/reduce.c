// SPDX-License-Identifier: MIT
// reduce_sum, _mean, _max, _min, _prod, _all, _any: one value per lane along `axes`, which stay as
// axes of length 1. An empty list means all axes. Without a list a second input gives them at run
// time; where that is empty, none goes.
//
// Floats add up in double, integers in 64 bits that wrap; the mean of integers is exact and rounds
// towards zero. A NaN wins every maximum and minimum. An empty lane gives the neutral element: 0,
// 1, minus infinity; its mean is NaN (0 for integers).
// Cost: one pass, one scratch copy of the input.
#include <assert.h>
#include <math.h>

#include "op/reference/lanes.h"

struct reduce {
    struct mgx_ints axes;
};

static const struct mgx_field fields[] = {MGX_INTS(struct reduce, axes), {0}};

// What differs between the seven; n >= 1.
struct fold {
    double (*doubles)(const double *v, int64_t n);
    int64_t (*ints)(const int64_t *v, int64_t n, enum mgx_type type);
    double (*empty)(enum mgx_type type);
};

// --- folds ---

static double sum(const double *v, int64_t n)
{
    assert(n >= 0);
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

static int64_t sum_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    assert(n >= 0 && mgx_type_size(type) > 0);
    (void)type;
    uint64_t s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (uint64_t)v[i];
    return (int64_t)s;
}

static double mean(const double *v, int64_t n)
{
    assert(n > 0);
    return sum(v, n) / (double)n;
}

// The mean fits whatever the sum does, which therefore takes 128 bits.
static int64_t mean_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    assert(n > 0);
    __int128 s = 0;
    for (int64_t i = 0; i < n; i++)
        s += type == MGX_UINT64 ? (__int128)(uint64_t)v[i] : v[i];
    return (int64_t)(s / n);
}

static double prod(const double *v, int64_t n)
{
    assert(n >= 0);
    double p = 1;
    for (int64_t i = 0; i < n; i++)
        p *= v[i];
    return p;
}

static int64_t prod_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    (void)type;
    uint64_t p = 1;
    for (int64_t i = 0; i < n; i++)
        p *= (uint64_t)v[i];
    return (int64_t)p;
}

static double max(const double *v, int64_t n)
{
    assert(n > 0);
    double m = v[0];
    for (int64_t i = 1; i < n; i++)
        m = v[i] > m || isnan(v[i]) ? v[i] : m;
    return m;
}

static double min(const double *v, int64_t n)
{
    assert(n > 0);
    double m = v[0];
    for (int64_t i = 1; i < n; i++)
        m = v[i] < m || isnan(v[i]) ? v[i] : m;
    return m;
}

static int64_t max_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    assert(n > 0);
    int64_t m = v[0];
    for (int64_t i = 1; i < n; i++)
        m = mgx_int_order(type, v[i]) > mgx_int_order(type, m) ? v[i] : m;
    return m;
}

static int64_t min_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    assert(n > 0);
    int64_t m = v[0];
    for (int64_t i = 1; i < n; i++)
        m = mgx_int_order(type, v[i]) < mgx_int_order(type, m) ? v[i] : m;
    return m;
}

static double all(const double *v, int64_t n)
{
    assert(n >= 0);
    int64_t i = 0;
    while (i < n && v[i] != 0)
        i++;
    return i == n;
}

static int64_t all_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    (void)type;
    int64_t i = 0;
    while (i < n && v[i])
        i++;
    return i == n;
}

static double any(const double *v, int64_t n)
{
    assert(n >= 0);
    int64_t i = 0;
    while (i < n && v[i] == 0)
        i++;
    return i < n;
}

static int64_t any_ints(const int64_t *v, int64_t n, enum mgx_type type)
{
    (void)type;
    int64_t i = 0;
    while (i < n && !v[i])
        i++;
    return i < n;
}

// --- neutral elements ---

static double zero(enum mgx_type type)
{
    (void)type;
    return 0;
}

static double one(enum mgx_type type)
{
    (void)type;
    return 1;
}

static double undefined_mean(enum mgx_type type)
{
    return mgx_computes_as_int(type) ? 0 : (double)NAN;
}

static bool has_infinity(enum mgx_type type)
{
    return type == MGX_FLOAT || type == MGX_DOUBLE || mgx_type_is_half_or_bf16(type) ||
           type == MGX_FP8E5M2;
}

static double least(enum mgx_type type)
{
    return has_infinity(type) ? (double)-INFINITY : mgx_type_lowest(type);
}

static double greatest(enum mgx_type type)
{
    return has_infinity(type) ? (double)INFINITY : mgx_type_highest(type);
}

// --- the operator ---

// Which axes go; *known is false when only the run can tell.
static enum mgx_status find_axes(struct mgx_shape_call *c, bool *flags, bool *known)
{
    const int rank = c->in[0]->rank;
    struct mgx_ints axes = ((const struct reduce *)c->attr)->axes;
    *known = true;
    const bool by_input = c->in_count == 2 && !axes.count;
    if (by_input)
        TRY(mgx_known_ints(c, 1, known, &axes));
    TRY(mgx_normalize_axes(c, axes, rank, flags));
    for (int i = 0; i < rank && !by_input && !axes.count; i++)
        flags[i] = true;
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    bool flags[MGX_MAX_RANK], known;
    TRY(find_axes(c, flags, &known));
    const int rank = c->in[0]->rank;
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < rank; i++) {
        if (!known) // may stay or become 1
            dims[i] =
                (struct mgx_dim){.min = dims[i].min ? 1 : 0, .max = dims[i].max ? dims[i].max : 1};
        else if (flags[i])
            dims[i] = (struct mgx_dim){.min = 1, .max = 1};
    }
    *out = mgx_shape_from_dims(c->in[0]->type, rank, dims);
    return MGX_OK;
}

static enum mgx_status reduce_doubles(struct mgx_compute_call *c, const bool *along,
                                      const struct fold *fold)
{
    assert(c->in_count >= 1);
    struct mgx_lanes lanes;
    double *v = mgx_lanes_doubles(c, c->in[0], along, &lanes);
    if (!v)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < lanes.count; i++)
        v[i] = fold->doubles(v + i * lanes.length, lanes.length);
    mgx_write_doubles(c->out, v);
    return MGX_OK;
}

static enum mgx_status reduce_ints(struct mgx_compute_call *c, const bool *along,
                                   const struct fold *fold)
{
    struct mgx_lanes lanes;
    int64_t *v = mgx_lanes_ints(c, c->in[0], along, &lanes);
    if (!v)
        return MGX_NO_MEMORY;
    for (int64_t i = 0; i < lanes.count; i++)
        v[i] = fold->ints(v + i * lanes.length, lanes.length, c->in[0]->shape.type);
    mgx_write_ints(c->out, v);
    return MGX_OK;
}

static void fill_empty(struct mgx_tensor *out, double value)
{
    assert(mgx_type_is_number(out->shape.type));
    const int64_t count = mgx_shape_elements(&out->shape);
    for (int64_t i = 0; i < count; i++)
        mgx_store_double(out->shape.type, out->data, mgx_shape_index(&out->shape, i), value);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct fold *fold = c->op->user;
    const struct mgx_shape *in = &c->in[0]->shape, *out = &c->out->shape;
    if (mgx_shape_elements(in) == 0) {
        fill_empty(c->out, fold->empty(in->type));
        return MGX_OK;
    }
    // The shape rule has chosen the axes: those that became 1. Along an axis of length 1 every
    // fold is what it is without that axis.
    bool along[MGX_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        along[i] = in->lens[i] == 1 || out->lens[i] != in->lens[i];
    return mgx_computes_as_int(in->type) ? reduce_ints(c, along, fold)
                                         : reduce_doubles(c, along, fold);
}

static const struct fold fold_sum = {sum, sum_ints, zero};
static const struct fold fold_mean = {mean, mean_ints, undefined_mean};
static const struct fold fold_max = {max, max_ints, least};
static const struct fold fold_min = {min, min_ints, greatest};
static const struct fold fold_prod = {prod, prod_ints, one};
static const struct fold fold_all = {all, all_ints, one};
static const struct fold fold_any = {any, any_ints, zero};

#define REDUCE(name_, meaning_, fold_)                                                             \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .fields = fields, .attr_size = sizeof(struct reduce),  \
        .in_min = 1, .in_max = 2, .flags = MGX_OP_REDUCE, .shape = shape, .compute = compute,      \
        .sized_by = mgx_sized_by_rest, .user = fold_                                               \
    }

const struct mgx_op mgx_op_reduce_sum = REDUCE("reduce_sum", "y = sum of x along axes", &fold_sum);
const struct mgx_op mgx_op_reduce_mean =
    REDUCE("reduce_mean", "y = mean of x along axes", &fold_mean);
const struct mgx_op mgx_op_reduce_max =
    REDUCE("reduce_max", "y = maximum of x along axes", &fold_max);
const struct mgx_op mgx_op_reduce_min =
    REDUCE("reduce_min", "y = minimum of x along axes", &fold_min);
const struct mgx_op mgx_op_reduce_prod =
    REDUCE("reduce_prod", "y = product of x along axes", &fold_prod);
const struct mgx_op mgx_op_reduce_all =
    REDUCE("reduce_all", "y = 1 where all of x along axes is true, else 0", &fold_all);
const struct mgx_op mgx_op_reduce_any =
    REDUCE("reduce_any", "y = 1 where any of x along axes is true, else 0", &fold_any);
