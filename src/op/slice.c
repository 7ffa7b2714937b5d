// SPDX-License-Identifier: MIT
// slice: positions starts[i] <= p < ends[i] along axes[i]; negative ones count from the end, all
// are clipped to the axis. A view further into the same bytes.
//
// What the attributes leave empty comes from further inputs, in the order starts, ends, axes. Where
// those are not known yet, the sliced axes (all of them, if the axes are not known) are ranges.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct slice {
    struct mgx_ints axes;
    struct mgx_ints starts;
    struct mgx_ints ends;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct slice, axes),
    MGX_INTS(struct slice, starts),
    MGX_INTS(struct slice, ends),
    {0},
};

struct bounds {
    struct mgx_ints starts, ends, axes;
    bool known_starts, known_ends, known_axes;
};

// --- where the three lists come from ---

static enum mgx_status take_list(struct mgx_shape_call *c, struct mgx_ints attr, int *input,
                                 bool *known, struct mgx_ints *out)
{
    *known = true;
    *out = attr;
    if (attr.count || *input >= c->in_count)
        return MGX_OK;
    return mgx_known_ints(c, (*input)++, known, out);
}

static enum mgx_status find_bounds(struct mgx_shape_call *c, struct bounds *b)
{
    const struct slice *a = c->attr;
    int input = 1;
    TRY(take_list(c, a->starts, &input, &b->known_starts, &b->starts));
    TRY(take_list(c, a->ends, &input, &b->known_ends, &b->ends));
    TRY(take_list(c, a->axes, &input, &b->known_axes, &b->axes));
    if (input != c->in_count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "slice: Wrong number of arguments: %d inputs, the attributes leave %d open",
                        c->in_count, input - 1);
    const int rank = c->in[0]->rank;
    if (b->axes.count == 0 && !b->known_starts)
        b->known_axes = false; // the first ones, but how many?
    const bool all = b->known_starts && b->known_ends && b->known_axes;
    // Without axes the first ones are meant.
    if (b->known_axes && b->axes.count == 0 && b->known_starts && b->starts.count) {
        int64_t *axes = MGX_NEW_ARRAY(c->arena, int64_t, b->starts.count);
        if (!axes)
            return mgx_fail_memory(c->diag);
        for (int i = 0; i < b->starts.count; i++)
            axes[i] = i;
        b->axes = (struct mgx_ints){axes, b->starts.count};
    }
    if (all && (b->starts.count != b->ends.count || b->starts.count != b->axes.count))
        return mgx_fail(c->diag, MGX_INVALID,
                        "slice: inconsistent sizes: %d starts, %d ends, %d axes", b->starts.count,
                        b->ends.count, b->axes.count);
    bool flags[MGX_MAX_RANK];
    return b->known_axes ? mgx_normalize_axes(c, b->axes, rank, flags) : MGX_OK;
}

// --- lengths ---

static int64_t clip(int64_t at, int64_t length)
{
    assert(length >= 0);
    if (at < 0)
        at = at < -length ? 0 : at + length;
    return mgx_min_i64(at, length);
}

static int64_t sliced(int64_t start, int64_t end, int64_t length)
{
    assert(length >= 0);
    return mgx_max_i64(clip(end, length) - clip(start, length), 0);
}

static struct mgx_dim slice_dim(const struct mgx_dim *d, int64_t start, int64_t end)
{
    assert(d->min >= 0 && d->min <= d->max);
    const int64_t a = sliced(start, end, d->min), b = sliced(start, end, d->max);
    if (start == 0 && end >= d->max)
        return *d;                             // the whole axis, name and all
    if (start < 0 && end >= 0 && end < d->max) // not monotone: most at length == end
        return (struct mgx_dim){.min = d->min == d->max ? a : 0,
                                .max = d->min == d->max ? a : mgx_min_i64(end, d->max)};
    return (struct mgx_dim){.min = mgx_min_i64(a, b), .max = mgx_max_i64(a, b)};
}

static int axis_of(const struct bounds *b, int k, int rank)
{
    assert(k >= 0 && k < b->axes.count && rank > 0);
    return (int)(b->axes.v[k] < 0 ? b->axes.v[k] + rank : b->axes.v[k]);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    struct bounds b;
    TRY(find_bounds(c, &b));
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    const bool exact = b.known_starts && b.known_ends && b.known_axes;
    for (int i = 0; i < s->rank && !b.known_axes; i++)
        dims[i] = (struct mgx_dim){.min = 0, .max = dims[i].max};
    for (int k = 0; k < b.axes.count; k++) {
        struct mgx_dim *d = &dims[axis_of(&b, k, s->rank)];
        *d = exact ? slice_dim(d, b.starts.v[k], b.ends.v[k])
                   : (struct mgx_dim){.min = 0, .max = d->max};
    }
    *out = mgx_shape_from_dims(s->type, s->rank, dims);
    for (int i = 0; mgx_shape_is_static(out) && mgx_shape_is_static(s) && i < s->rank; i++)
        out->strides[i] = s->strides[i];
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    struct bounds b;
    struct mgx_shape_call call = {.op = c->op,
                                  .attr = c->attr,
                                  .in = &s,
                                  .in_count = c->in_count,
                                  .values = c->in,
                                  .arena = c->scratch,
                                  .diag = c->diag};
    const struct mgx_shape *shapes[4];
    for (int i = 0; i < c->in_count; i++)
        shapes[i] = &c->in[i]->shape;
    call.in = shapes;
    TRY(find_bounds(&call, &b));
    int64_t offset = 0;
    for (int k = 0; k < b.axes.count; k++) {
        const int axis = axis_of(&b, k, s->rank);
        offset += clip(b.starts.v[k], s->lens[axis]) * s->strides[axis];
    }
    if (mgx_shape_elements(c->out_shape) == 0)
        offset = 0; // an empty view points at no byte
    *c->out = mgx_tensor_view(c->in[0], c->out_shape,
                              offset * (int64_t)mgx_type_size(c->out_shape->type));
    return MGX_OK;
}

const struct mgx_op mgx_op_slice = {
    .name = "slice",
    .meaning = "positions starts <= p < ends along axes",
    .fields = fields,
    .attr_size = sizeof(struct slice),
    .in_min = 1,
    .in_max = 4,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_rest,
};
