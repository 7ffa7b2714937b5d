// SPDX-License-Identifier: MIT
// concat: the inputs one after the other along axis. Axis lengths add up, all others must agree.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct concat {
    int64_t axis;
};

static const struct mgx_field fields[] = {MGX_INT(struct concat, axis), {0}};

static enum mgx_status join(struct mgx_shape_call *c, int input, int axis, struct mgx_dim *dims)
{
    assert(input > 0 && input < c->in_count && axis >= 0);
    const struct mgx_shape *s = c->in[input];
    if (s->rank != c->in[0]->rank)
        return mgx_fail_lens(c, 0, input);
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        if (i == axis) {
            int64_t min, max;
            if (!mgx_add_i64(dims[i].min, d.min, &min) || !mgx_add_i64(dims[i].max, d.max, &max))
                return mgx_fail(c->diag, MGX_LIMIT, "concat: the lengths overflow");
            if (min < max && min <= MGX_DIM_ANY) // any length and a row more is any length
                max = mgx_min_i64(max, MGX_DIM_ANY);
            dims[i] = (struct mgx_dim){.min = min, .max = max};
        } else if (d.max < dims[i].min || dims[i].max < d.min) {
            return mgx_fail_lens(c, 0, input);
        } else {
            mgx_dim_meet(&dims[i], d);
        }
    }
    return MGX_OK;
}

// Row-major, unless all inputs that are not broadcast share another order.
static struct mgx_shape like_inputs(const struct mgx_shape_call *c, const struct mgx_shape *plain)
{
    struct mgx_shape out = *plain;
    bool first = true;
    for (int i = 0; i < c->in_count; i++) {
        if (!mgx_shape_is_static(c->in[i]))
            return *plain;
        if (mgx_shape_is_broadcasted(c->in[i]))
            continue;
        const struct mgx_shape mine = mgx_shape_like_order(plain, c->in[i]);
        if (!first && !mgx_shape_equal(&mine, &out))
            return *plain;
        out = mine;
        first = false;
    }
    return out;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct concat *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    int axis;
    TRY(mgx_require_same_type(c));
    TRY(mgx_normalize_axis(c, a->axis, s->rank, &axis));
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 1; i < c->in_count; i++)
        TRY(join(c, i, axis, dims));
    *out = mgx_shape_from_dims(s->type, s->rank, dims);
    if (mgx_shape_is_static(out))
        *out = like_inputs(c, out);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    assert(c->in_count > 0 && c->out->shape.rank > 0);
    const struct concat *a = c->attr;
    const struct mgx_shape *to = &c->out->shape;
    const int axis = mgx_wrap_axis(a->axis, to->rank);
    assert(axis >= 0 && axis < to->rank);
    int64_t at = 0;
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_shape *s = &c->in[i]->shape;
        const struct mgx_shape part = mgx_shape_strided(s->type, s->rank, s->lens, to->strides);
        struct mgx_tensor window = mgx_tensor_part(c->out, &part, at * to->strides[axis]);
        mgx_tensor_copy(c->in[i], &window);
        at += s->lens[axis];
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_concat = {
    .name = "concat",
    .meaning = "inputs one after the other along axis",
    .fields = fields,
    .attr_size = sizeof(struct concat),
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_ANY_STRIDE | MGX_OP_MOVE | MGX_OP_BLIND,
    .shape = shape,
    .compute = compute,
};
