// SPDX-License-Identifier: MIT
// onehot: a new axis of length depth in which position indices[..] holds values[1], all others
// values[0]. Negative indices count from the end; one outside [-depth, depth) sets nothing.
//
// Inputs are (indices, values) with the attribute depth, or (indices, depth, values).
#include <inttypes.h>
#include <string.h>

#include "op/rule/rule.h"

struct onehot {
    int64_t axis;
    int64_t depth;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct onehot, axis), MGX_OPTIONAL_INT(struct onehot, depth), {0}};
static const struct onehot defaults = {.axis = -1, .depth = MGX_NONE};

static enum mgx_type values_type(const struct mgx_shape_call *c)
{
    return c->in[c->in_count - 1]->type;
}

static enum mgx_status find_depth(struct mgx_shape_call *c, struct mgx_dim *out)
{
    const struct onehot *a = c->attr;
    int64_t depth = a->depth;
    *out = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    if (c->in_count == 3) {
        bool known;
        struct mgx_ints v;
        TRY(mgx_known_ints(c, 1, &known, &v));
        if (!known)
            return MGX_OK;
        depth = v.count == 1 ? v.v[0] : -1;
    }
    if (depth < 0)
        return mgx_fail(c->diag, MGX_INVALID, "onehot: depth must be one length, not negative");
    out->min = out->max = depth;
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct onehot *a = c->attr;
    const struct mgx_shape *s = c->in[0], *values = c->in[c->in_count - 1];
    int axis;
    struct mgx_dim depth;
    TRY(mgx_require_integral(c, 0));
    TRY(mgx_normalize_axis(c, a->axis, s->rank + 1, &axis));
    TRY(find_depth(c, &depth));
    if (mgx_shape_is_static(values) && mgx_shape_elements(values) != 2)
        return mgx_fail(c->diag, MGX_INVALID, "onehot: %" PRId64 " values, expected off and on",
                        mgx_shape_elements(values));
    if (s->rank + 1 > MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "onehot: %d dimensions are above the limit of %d",
                        s->rank + 1, MGX_MAX_RANK);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, s->rank + 1);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i <= s->rank; i++)
        dims[i] = i == axis ? depth : mgx_shape_dim(s, i < axis ? i : i - 1);
    *out = mgx_shape_from_dims(values->type, s->rank + 1, dims);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct onehot *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape, *to = &c->out->shape;
    const struct mgx_tensor *values = c->in[c->in_count - 1];
    const int axis = mgx_wrap_axis(a->axis, to->rank);
    const int64_t depth = to->lens[axis], *index = mgx_scratch_ints(c, c->in[0]);
    const size_t size = mgx_type_size(to->type);
    if (!index)
        return MGX_NO_MEMORY;
    const char *off =
        (const char *)values->data + mgx_shape_index(&values->shape, 0) * (int64_t)size;
    const char *on =
        (const char *)values->data + mgx_shape_index(&values->shape, 1) * (int64_t)size;
    struct mgx_shape places = *s; // of the indices in y
    for (int i = 0; i < s->rank; i++)
        places.strides[i] = to->strides[i < axis ? i : i + 1];
    const int64_t count = mgx_shape_elements(s);
    for (int64_t i = 0; i < count; i++) {
        const int64_t p = index[i] < 0 ? index[i] + depth : index[i];
        char *at = (char *)c->out->data + (size_t)mgx_shape_index(&places, i) * size;
        for (int64_t k = 0; k < depth; k++)
            memcpy(at + (size_t)(k * to->strides[axis]) * size, k == p ? on : off, size);
    }
    return MGX_OK;
}

// By the depth, where that is an input.
static uint32_t sized_by(const struct mgx_ins *ins)
{
    return ins->in_count == 3 ? 2 : 0;
}

const struct mgx_op mgx_op_onehot = {
    .name = "onehot",
    .meaning = "values[1] where the new axis equals the index, values[0] elsewhere",
    .fields = fields,
    .attr_size = sizeof(struct onehot),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 3,
    .shape = shape,
    .unranked_type = values_type,
    .compute = compute,
    .sized_by = sized_by,
};
