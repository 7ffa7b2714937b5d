// SPDX-License-Identifier: MIT
// step: every steps[i]-th position along axes[i], from the first on. A view.
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct step {
    struct mgx_ints axes;
    struct mgx_ints steps;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct step, axes), MGX_INTS(struct step, steps), {0}};

static int64_t ceil_div(int64_t n, int64_t step)
{
    return n / step + (n % step != 0);
}

// Axis by axis: every by-th position; scale notes by how much its stride grows.
static enum mgx_status step_axis(struct mgx_shape_call *c, int64_t axis, int64_t by,
                                 struct mgx_dim *dim, int64_t *scale)
{
    if (by < 1)
        return mgx_fail(c->diag, MGX_INVALID, "step: step %" PRId64 " of axis %" PRId64, by, axis);
    *scale = by;
    if (by > 1)
        *dim = (struct mgx_dim){.min = ceil_div(dim->min, by), .max = ceil_div(dim->max, by)};
    return MGX_OK;
}

static void scale_strides(const struct mgx_shape *s, const int64_t *scale, struct mgx_shape *out)
{
    for (int i = 0; mgx_shape_is_static(s) && i < s->rank; i++)
        // an axis of one position never moves, whatever its stride
        if (!mgx_mul_i64(s->strides[i], s->lens[i] > 1 ? scale[i] : 1, &out->strides[i]))
            out->strides[i] = s->strides[i];
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct step *a = c->attr;
    const struct mgx_shape *s = c->in[0];
    bool flags[MGX_MAX_RANK];
    int64_t scale[MGX_MAX_RANK];
    TRY(mgx_normalize_axes(c, a->axes, s->rank, flags));
    if (a->steps.count != a->axes.count)
        return mgx_fail(c->diag, MGX_INVALID, "step: %d steps for %d axes", a->steps.count,
                        a->axes.count);
    struct mgx_dim *dims = mgx_edit_dims(c, s, s->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < s->rank; i++)
        scale[i] = 1;
    for (int k = 0; k < a->axes.count; k++) {
        const int axis = mgx_wrap_axis(a->axes.v[k], s->rank);
        TRY(step_axis(c, axis, a->steps.v[k], &dims[axis], &scale[axis]));
    }
    *out = mgx_shape_from_dims(s->type, s->rank, dims);
    scale_strides(s, scale, out);
    return MGX_OK;
}

const struct mgx_op mgx_op_step = {
    .name = "step",
    .meaning = "every steps[i]-th position along axes[i]",
    .fields = fields,
    .attr_size = sizeof(struct step),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = shape,
    .compute = mgx_compute_view,
};
