// SPDX-License-Identifier: MIT
// reverse: x with the positions along `axes` in opposite order.
#include "op/rule/rule.h"

struct reverse {
    struct mgx_ints axes;
};

static const struct mgx_field fields[] = {MGX_INTS(struct reverse, axes), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct reverse *a = c->attr;
    bool flags[MGX_MAX_RANK];
    TRY(mgx_normalize_axes(c, a->axes, c->in[0]->rank, flags));
    *out = mgx_shape_retype(c->in[0], c->in[0]->type);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct reverse *a = c->attr;
    const struct mgx_shape *s = &c->in[0]->shape, *to = &c->out->shape;
    struct mgx_shape cell = mgx_shape_scalar(s->type);
    int64_t at[MGX_MAX_RANK] = {0};
    if (mgx_shape_elements(s) == 0)
        return MGX_OK;
    do {
        int64_t from[MGX_MAX_RANK];
        for (int i = 0; i < s->rank; i++)
            from[i] = at[i];
        for (int k = 0; k < a->axes.count; k++) {
            const int64_t axis = a->axes.v[k] < 0 ? a->axes.v[k] + s->rank : a->axes.v[k];
            from[axis] = s->lens[axis] - 1 - at[axis];
        }
        const struct mgx_tensor x = mgx_tensor_part(c->in[0], &cell, mgx_shape_offset(s, from));
        struct mgx_tensor y = mgx_tensor_part(c->out, &cell, mgx_shape_offset(to, at));
        mgx_tensor_copy(&x, &y);
    } while (mgx_shape_next(s, at));
    return MGX_OK;
}

const struct mgx_op mgx_op_reverse = {
    .name = "reverse",
    .meaning = "x backwards along axes",
    .fields = fields,
    .attr_size = sizeof(struct reverse),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_BLIND,
    .shape = shape,
    .compute = compute,
};
