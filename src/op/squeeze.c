// SPDX-License-Identifier: MIT
// squeeze: without axes of length 1 (all of them if no axes are named). unsqueeze: with new axes of
// length 1, or of length steps[i] taken from the axis that follows. Both are views.
#include <assert.h>
#include <inttypes.h>

#include "op/rule/rule.h"

// --- squeeze ---

struct squeeze {
    struct mgx_ints axes;
};

static const struct mgx_field squeeze_fields[] = {MGX_INTS(struct squeeze, axes), {0}};

static enum mgx_status drop_axes(struct mgx_shape_call *c, const bool *drop, struct mgx_shape *out)
{
    assert(drop);
    const struct mgx_shape *s = c->in[0];
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    int64_t strides[MGX_MAX_RANK];
    int rank = 0;
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = dims[i];
        if (drop[i] && (d.min > 1 || d.max < 1))
            return mgx_fail(c->diag, MGX_INVALID,
                            "squeeze: squeeze axis dimension should be equal to 1: axis %d is "
                            "%" PRId64,
                            i, d.max);
        if (drop[i])
            continue;
        strides[rank] = s->strides[i];
        dims[rank++] = d;
    }
    *out = mgx_shape_from_dims(s->type, rank, dims);
    for (int i = 0; mgx_shape_is_static(s) && i < rank; i++)
        out->strides[i] = strides[i];
    return MGX_OK;
}

static enum mgx_status squeeze_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct squeeze *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    bool drop[MGX_MAX_RANK];
    // A scalar is shown as {1}: squeezing that axis leaves it as it is.
    if (s->rank == 0 && a->axes.count == 1 && (a->axes.v[0] == 0 || a->axes.v[0] == -1)) {
        *out = *s;
        return MGX_OK;
    }
    TRY(mgx_normalize_axes(c, a->axes, s->rank, drop));
    for (int i = 0; a->axes.count == 0 && i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        drop[i] = d.min == 1 && d.max == 1;
        if (!drop[i] && d.min <= 1 && d.max >= 1) { // may turn out to be 1: the rank is open
            *out = mgx_shape_unranked(s->type);
            return MGX_OK;
        }
    }
    return drop_axes(c, drop, out);
}

const struct mgx_op mgx_op_squeeze = {
    .name = "squeeze",
    .meaning = "x without axes of length 1",
    .fields = squeeze_fields,
    .attr_size = sizeof(struct squeeze),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW | MGX_OP_REGROUP,
    .shape = squeeze_shape,
    .compute = mgx_compute_view,
};

// --- unsqueeze ---

struct unsqueeze {
    struct mgx_ints axes;
    struct mgx_ints steps;
};

static const struct mgx_field unsqueeze_fields[] = {
    MGX_INTS(struct unsqueeze, axes), MGX_INTS(struct unsqueeze, steps), {0}};

// Step of each new axis by its place in the result; 0 for the axes of x.
static enum mgx_status place_steps(struct mgx_shape_call *c, int rank, int64_t *steps)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    const struct unsqueeze *a = c->attr;
    bool is_new[MGX_MAX_RANK];
    TRY(mgx_normalize_axes(c, a->axes, rank, is_new));
    if (a->steps.count > a->axes.count)
        return mgx_fail(c->diag, MGX_INVALID, "unsqueeze: %d steps for %d axes", a->steps.count,
                        a->axes.count);
    for (int i = 0; i < rank; i++)
        steps[i] = 0;
    for (int k = 0; k < a->axes.count; k++) {
        const int64_t axis = a->axes.v[k] < 0 ? a->axes.v[k] + rank : a->axes.v[k];
        steps[axis] = k < a->steps.count ? a->steps.v[k] : 1;
        if (steps[axis] < 1)
            return mgx_fail(c->diag, MGX_INVALID, "unsqueeze: step %" PRId64 " of axis %" PRId64,
                            steps[axis], axis);
    }
    return MGX_OK;
}

// A new axis of length `step` cut off the front of the axis after it.
static enum mgx_status cut(struct mgx_shape_call *c, int axis, int64_t step, struct mgx_dim *next)
{
    if (step == 1)
        return MGX_OK;
    // what divides, of a range
    const int64_t low = next ? next->min / step + (next->min % step != 0) : 1;
    const int64_t high = next ? next->max / step : 0;
    if (low > high)
        return mgx_fail(c->diag, MGX_INVALID,
                        "unsqueeze: step %" PRId64 " of axis %d does not divide the length that "
                        "follows",
                        step, axis);
    *next = (struct mgx_dim){.min = low, .max = high};
    return MGX_OK;
}

static enum mgx_status unsqueeze_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct unsqueeze *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    const int rank = s->rank + a->axes.count;
    int64_t steps[MGX_MAX_RANK], strides[MGX_MAX_RANK];
    if (rank > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "unsqueeze: %d dimensions are above the limit of %d",
                        rank, MGX_MAX_RANK);
    TRY(place_steps(c, rank, steps));
    struct mgx_dim *old = mgx_edit_dims(c, s, s->rank), *dims = mgx_edit_dims(c, NULL, rank);
    if (!old || !dims)
        return MGX_NO_MEMORY;
    for (int i = 0, from = 0; i < rank; i++) {
        struct mgx_dim *next = from < s->rank ? &old[from] : NULL;
        if (steps[i]) {
            TRY(cut(c, i, steps[i], next));
            dims[i].min = dims[i].max = steps[i];
            strides[i] = next ? s->strides[from] * next->max : 1;
        } else {
            dims[i] = old[from];
            strides[i] = s->strides[from++];
        }
    }
    *out = mgx_shape_from_dims(s->type, rank, dims);
    for (int i = 0; mgx_shape_is_static(s) && i < rank; i++)
        out->strides[i] = strides[i];
    return MGX_OK;
}

const struct mgx_op mgx_op_unsqueeze = {
    .name = "unsqueeze",
    .meaning = "x with new axes of length 1 (or step)",
    .fields = unsqueeze_fields,
    .attr_size = sizeof(struct unsqueeze),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW | MGX_OP_REGROUP,
    .shape = unsqueeze_shape,
    .compute = mgx_compute_view,
};
