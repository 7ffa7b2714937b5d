// SPDX-License-Identifier: MIT
// Numpy's broadcasting as views (repeated axes have stride 0):
//   multibroadcast        to out_lens, or to what all inputs have in common (inputs after the first
//                         are read for their shapes only)
//   broadcast_with_dims   to what x and the lengths in input 1 have in common (ONNX Expand)
//   broadcast_for_dot     all axes of x but the last two, to fit the other operand of a dot
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct multibroadcast {
    struct mgx_ints out_lens;
    struct mgx_dims out_dyn_dims;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct multibroadcast, out_lens),
    MGX_DIMS(struct multibroadcast, out_dyn_dims),
    {0},
};

// The view of input 0 under ranges that it is known to fit.
static struct mgx_shape view_of(const struct mgx_shape *s, int rank, const struct mgx_dim *dims)
{
    assert(rank >= s->rank && rank <= MGX_MAX_RANK);
    struct mgx_shape out = mgx_shape_from_dims(s->type, rank, dims);
    const int offset = rank - s->rank;
    const bool known = mgx_shape_is_static(&out) && mgx_shape_is_static(s);
    for (int i = 0; known && i < rank; i++) {
        const bool own = i >= offset && s->lens[i - offset] == out.lens[i];
        out.strides[i] = own ? s->strides[i - offset] : 0;
    }
    return out;
}

// x must be repeated only: where it is not 1 the result has its length.
static enum mgx_status fit(struct mgx_shape_call *c, const struct mgx_dim *dims, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    const struct mgx_shape *s = c->in[0];
    if (s->rank > rank)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: input dimensions should <= output size: input 0 has %d, output %d",
                        c->op->name, s->rank, rank);
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i), to = dims[i + rank - s->rank];
        const bool can_be_one = d.min <= 1 && d.max >= 1;
        if (!can_be_one && (d.max < to.min || to.max < d.min))
            return mgx_fail(
                c->diag, MGX_INVALID,
                "%s: input shape cannot be broadcasted to the output: axis %d of length "
                "%" PRId64 " to %" PRId64,
                c->op->name, i, d.max, to.max);
    }
    return MGX_OK;
}

static enum mgx_status multi_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct multibroadcast *a = c->attr;
    struct mgx_dim *dims;
    int rank;
    if (c->in_count == 1) {
        TRY(mgx_target_dims(c, a->out_lens, a->out_dyn_dims, &dims, &rank));
        TRY(fit(c, dims, rank));
    } else {
        dims = mgx_edit_dims(c, NULL, MGX_MAX_RANK);
        if (!dims)
            return MGX_NO_MEMORY;
        rank = 0;
        for (int i = 0; i < c->in_count; i++)
            TRY(mgx_broadcast_dims(c, c->in[i], dims, &rank));
    }
    *out = view_of(c->in[0], rank, dims);
    return MGX_OK;
}

const struct mgx_op mgx_op_multibroadcast = {
    .name = "multibroadcast",
    .meaning = "x repeated to out_lens by numpy's rules",
    .fields = fields,
    .attr_size = sizeof(struct multibroadcast),
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_VIEW,
    .shape = multi_shape,
    .compute = mgx_compute_view,
};

// --- lengths from a tensor ---

static enum mgx_status dims_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    struct mgx_ints lens;
    bool known;
    TRY(mgx_known_ints(c, 1, &known, &lens));
    if (!known) {
        const struct mgx_dim count = mgx_shape_dim(c->in[1], 0);
        if (c->in[1]->rank != 1 || count.min != count.max || count.max > MGX_MAX_RANK) {
            *out = mgx_shape_unranked(s->type);
            return MGX_OK;
        }
        return mgx_shape_any(c, s->type, (int)mgx_max_i64(count.max, s->rank), MGX_DIM_ANY, out);
    }
    struct mgx_dim *dims;
    int rank;
    TRY(mgx_dims_of_ints(c, lens, &dims, &rank));
    TRY(mgx_broadcast_dims(c, s, dims, &rank));
    *out = view_of(s, rank, dims);
    return MGX_OK;
}

const struct mgx_op mgx_op_broadcast_with_dims = {
    .name = "broadcast_with_dims",
    .meaning = "x repeated to the lengths in input 1 by numpy's rules",
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_VIEW,
    .shape = dims_shape,
    .compute = mgx_compute_view,
    .sized_by = mgx_sized_by_rest,
};

// --- operands of a dot ---

static enum mgx_status dot_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_rank(c, 0, 2, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, 2, MGX_MAX_RANK));
    const struct mgx_shape *s = c->in[0];
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, MGX_MAX_RANK);
    if (!dims)
        return MGX_NO_MEMORY;
    int rank = 0;
    for (int i = 0; i < 2; i++) { // the batch axes of both
        struct mgx_dim *batch = mgx_edit_dims(c, c->in[i], c->in[i]->rank);
        if (!batch)
            return MGX_NO_MEMORY;
        const struct mgx_shape outer =
            mgx_shape_from_dims(c->in[i]->type, c->in[i]->rank - 2, batch);
        TRY(mgx_broadcast_dims(c, &outer, dims, &rank));
    }
    dims[rank++] = mgx_shape_dim(s, s->rank - 2);
    dims[rank++] = mgx_shape_dim(s, s->rank - 1);
    *out = view_of(s, rank, dims);
    return MGX_OK;
}

const struct mgx_op mgx_op_broadcast_for_dot = {
    .name = "broadcast_for_dot",
    .meaning = "batch axes of x repeated to fit those of input 1",
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_VIEW,
    .shape = dot_shape,
    .compute = mgx_compute_view,
};
