// SPDX-License-Identifier: MIT
// pad: positions before and after x along every axis. pads = {before each axis.., after each
// axis..}; negative ones crop. Modes: constant 0, reflect 1 (without repeating the edge), edge 2,
// wrap 3.
//
// Input 1 stands for an empty `pads`, input 2 (a scalar of x's type) for `value`. Reflecting and
// wrapping go on periodically where a pad is longer than the axis.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/reference/pad.h"

static const struct mgx_field fields[] = {
    MGX_INT(struct mgx_pad, mode),
    MGX_INTS(struct mgx_pad, pads),
    MGX_REAL(struct mgx_pad, value),
    {0},
};

static enum mgx_status find_pads(struct mgx_shape_call *c, bool *known, struct mgx_ints *pads)
{
    const struct mgx_pad *a = c->attr;
    *known = true;
    *pads = a->pads;
    if (a->mode < MGX_PAD_CONSTANT || a->mode > MGX_PAD_WRAP)
        return mgx_fail(c->diag, MGX_INVALID, "pad: mode %" PRId64, a->mode);
    if (c->in_count > 1)
        TRY(mgx_known_ints(c, 1, known, pads));
    const int rank = c->in[0]->rank;
    if (*known && pads->count != 2 * rank)
        return mgx_fail(c->diag, MGX_INVALID, "pad: %d pads for %d dimensions", pads->count, rank);
    return MGX_OK;
}

static enum mgx_status grow(struct mgx_shape_call *c, int axis, int64_t before, int64_t after,
                            struct mgx_dim *d)
{
    assert(axis >= 0 && axis < c->in[0]->rank);
    int64_t sum, min, max;
    if (!mgx_add_i64(before, after, &sum) || !mgx_add_i64(d->min, sum, &min) ||
        !mgx_add_i64(d->max, sum, &max))
        return mgx_fail(c->diag, MGX_LIMIT, "pad: pads of axis %d overflow", axis);
    // Cropping from one side must leave what the other side does not reach.
    if (max < 0 || (before < 0 && -before > d->max) || (after < 0 && -after > d->max))
        return mgx_fail(c->diag, MGX_INVALID,
                        "pad: pads %" PRId64 " and %" PRId64
                        " of axis %d crop more than its length "
                        "%" PRId64,
                        before, after, axis, d->max);
    if (sum != 0)
        *d = (struct mgx_dim){.min = mgx_max_i64(min, 0), .max = max};
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    struct mgx_ints pads;
    bool known;
    TRY(find_pads(c, &known, &pads));
    if (c->in_count > 2 && c->in[2]->type != s->type)
        return mgx_fail(c->diag, MGX_INVALID, "pad: Types do not match: %s and the value's %s",
                        mgx_type_name(s->type), mgx_type_name(c->in[2]->type));
    if (!known)
        return mgx_shape_any(c, s->type, s->rank, MGX_DIM_ANY, out);
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < s->rank; i++)
        TRY(grow(c, i, pads.v[i], pads.v[i + s->rank], &dims[i]));
    *out = mgx_shape_from_dims(s->type, s->rank, dims);
    return MGX_OK;
}

// --- compute ---

static enum mgx_status padding_value(struct mgx_compute_call *c, struct mgx_tensor *value)
{
    const struct mgx_pad *a = c->attr;
    const enum mgx_type type = c->out->shape.type;
    const struct mgx_shape scalar = mgx_shape_scalar(type);
    void *cell = mgx_arena_alloc(c->scratch, 16);
    if (!cell)
        return mgx_fail_memory(c->diag);
    *value = mgx_tensor_borrow(&scalar, cell);
    if (c->in_count > 2) {
        if (mgx_shape_elements(&c->in[2]->shape) == 1)
            *value = mgx_tensor_part(c->in[2], &scalar, 0);
        else if (mgx_shape_elements(&c->in[2]->shape) != 0)
            return mgx_fail(c->diag, MGX_INVALID, "pad: the value has %" PRId64 " elements",
                            mgx_shape_elements(&c->in[2]->shape));
    } else {
        mgx_pad_store(type, cell, a->value);
    }
    return MGX_OK;
}

// Offsets of the source of every position along one axis, -1 for the value, in scratch.
static int64_t *axis_sources(struct mgx_compute_call *c, int axis, int64_t before)
{
    assert(axis >= 0 && axis < c->out->shape.rank);
    const struct mgx_pad *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape;
    const int64_t n = c->out->shape.lens[axis];
    int64_t *from = MGX_NEW_ARRAY(c->scratch, int64_t, n);
    for (int64_t i = 0; from && i < n; i++) {
        const int64_t p = s->lens[axis] ? mgx_pad_source(a->mode, i - before, s->lens[axis]) : -1;
        from[i] = p < 0 ? -1 : p * s->strides[axis];
    }
    return from;
}

static enum mgx_status copy_all(struct mgx_compute_call *c, int64_t *const *from,
                                const struct mgx_tensor *value)
{
    const struct mgx_shape *to = &c->out->shape;
    const size_t size = mgx_type_size(to->type);
    int64_t at[MGX_MAX_RANK] = {0};
    if (mgx_shape_elements(to) == 0)
        return MGX_OK;
    do {
        int64_t offset = 0;
        bool inside = true;
        for (int i = 0; i < to->rank; i++) {
            inside &= from[i][at[i]] >= 0;
            offset += from[i][at[i]];
        }
        const char *source_bytes =
            inside ? (const char *)c->in[0]->data + (size_t)offset * size : value->data;
        memcpy((char *)c->out->data + (size_t)mgx_shape_offset(to, at) * size, source_bytes, size);
    } while (mgx_shape_next(to, at));
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_pad *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape, *to = &c->out->shape;
    const int64_t *pads = a->pads.v;
    int64_t *from[MGX_MAX_RANK];
    struct mgx_tensor value;
    if (c->in_count > 1 && !(pads = mgx_scratch_ints(c, c->in[1])))
        return MGX_NO_MEMORY;
    TRY(padding_value(c, &value));
    for (int i = 0; i < s->rank; i++) {
        if (a->mode != MGX_PAD_CONSTANT && s->lens[i] == 0 && to->lens[i] > 0)
            return mgx_fail(c->diag, MGX_INVALID, "pad: axis %d is empty, nothing can be repeated",
                            i);
        if (!(from[i] = axis_sources(c, i, pads[i])))
            return mgx_fail_memory(c->diag);
    }
    return copy_all(c, from, &value);
}

const struct mgx_op mgx_op_pad = {
    .name = "pad",
    .meaning = "x with positions added around it (or cropped)",
    .fields = fields,
    .attr_size = sizeof(struct mgx_pad),
    .in_min = 1,
    .in_max = 3,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_rest,
};
