// SPDX-License-Identifier: MIT
// argmax, argmin: the place of the largest or smallest value along an axis, which stays as length
// 1.
//
// Ties go to the first place, or to the last with select_last_index. A NaN beats every number, so
// its place is the answer. The axis must not be empty: there would be no place to name.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "op/reference/lanes.h"

struct arg {
    int64_t axis;
    bool select_last_index;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct arg, axis), MGX_FLAG(struct arg, select_last_index), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct arg *a = c->attr;
    TRY(mgx_require_number(c, 0));
    const struct mgx_shape *x = c->in[0];
    int axis;
    TRY(mgx_normalize_axis(c, a->axis, x->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    const bool empty = dims[axis].max == 0;
    dims[axis] = (struct mgx_dim){.min = 1, .max = 1};
    *out = mgx_shape_from_dims(MGX_INT64, x->rank, dims);
    // Nothing to choose from, unless nothing has to be chosen.
    if (empty && mgx_shape_is_static(out) && mgx_shape_elements(out) > 0)
        return mgx_fail(c->diag, MGX_INVALID, "%s: axis %" PRId64 " has length 0", c->op->name,
                        a->axis);
    return MGX_OK;
}

// sign is 1 for the largest and -1 for the smallest.
static int64_t find_real(const double *v, int64_t n, double sign, bool last)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++) {
        const double x = sign * v[i], best = sign * v[at];
        const bool ties = x == best || (isnan(x) && isnan(best));
        const bool wins = !isnan(best) && (x > best || isnan(x));
        if (wins || (last && ties))
            at = i;
    }
    return at;
}

static int64_t find_int(const int64_t *v, int64_t n, double sign, bool last, enum mgx_type type)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++) {
        const int64_t x = mgx_int_order(type, v[i]), best = mgx_int_order(type, v[at]);
        if ((sign > 0 ? x > best : x < best) || (last && x == best))
            at = i;
    }
    return at;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_INT64;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct arg *a = c->attr;
    const double sign = c->op->user ? 1 : -1; // the largest, or the smallest
    const struct mgx_shape *x = &c->in[0]->shape;
    if (mgx_shape_elements(x) == 0)
        return MGX_OK; // the shape rule has seen to it that the result is empty too
    bool along[MGX_MAX_RANK] = {false};
    along[mgx_wrap_axis(a->axis, x->rank)] = true;
    struct mgx_lanes lanes;
    int64_t *found = MGX_NEW_ARRAY(c->scratch, int64_t, mgx_shape_elements(&c->out->shape));
    const bool as_int = mgx_computes_as_int(x->type);
    const int64_t *ints = as_int ? mgx_lanes_ints(c, c->in[0], along, &lanes) : NULL;
    const double *reals = as_int ? NULL : mgx_lanes_doubles(c, c->in[0], along, &lanes);
    if (!found || (!ints && !reals))
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < lanes.count; i++)
        found[i] =
            as_int ? find_int(ints + i * lanes.length, lanes.length, sign, a->select_last_index,
                              x->type)
                   : find_real(reals + i * lanes.length, lanes.length, sign, a->select_last_index);
    mgx_write_ints(c->out, found);
    return MGX_OK;
}

#define ARG(name_, meaning_, user_)                                                                \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .fields = fields, .attr_size = sizeof(struct arg),     \
        .in_min = 1, .in_max = 1, .shape = shape, .unranked_type = unranked_type,                  \
        .compute = compute, .user = user_                                                          \
    }

static const char largest_mark;

const struct mgx_op mgx_op_argmax =
    ARG("argmax", "y = index of the largest x along axis", &largest_mark);
const struct mgx_op mgx_op_argmin = ARG("argmin", "y = index of the smallest x along axis", NULL);
