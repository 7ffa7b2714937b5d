// SPDX-License-Identifier: MIT
// concat_past_present: writes new keys or values into a cache.
//
//     present {batch, heads, steps, size}, seqlens_k {batch} or {batch, 1},
//     past {batch, heads, room, size}  ->  past with the new steps in place
//
// A prompt (more than one step) goes to the start of the cache; a single step goes behind the
// seqlens_k steps that are there, and is left out when that place is not in the cache (a masked
// row has -1).
#include "op/reference/gemm.h"

#include <assert.h>

struct concat_past_present {
    int64_t kv_num_heads; // as MIGraphX prints it; the lengths say it too
};

static const struct mgx_field fields[] = {MGX_INT(struct concat_past_present, kv_num_heads), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *present = c->in[0], *past = c->in[2];
    TRY(mgx_require_rank(c, 0, 4, 4));
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 1, 1, 2));
    TRY(mgx_require_rank(c, 2, 4, 4));
    if (present->type != past->type)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Types do not match: input 0 is %s, input 2 is %s", c->op->name,
                        mgx_type_name(present->type), mgx_type_name(past->type));
    struct mgx_dim *dims = mgx_edit_dims(c, past, 4);
    if (!dims)
        return MGX_NO_MEMORY;
    for (int i = 0; i < 4; i++) {
        const struct mgx_dim d = mgx_shape_dim(present, i);
        if (i == 2 ? d.min > dims[i].max : d.min > dims[i].max || d.max < dims[i].min)
            return mgx_fail_lens(c, 0, 2);
    }
    const struct mgx_dim rows = mgx_shape_dim(c->in[1], 0);
    const struct mgx_dim one = c->in[1]->rank == 2 ? mgx_shape_dim(c->in[1], 1) : dims[0];
    if (rows.min > dims[0].max || rows.max < dims[0].min ||
        (c->in[1]->rank == 2 && (one.min > 1 || one.max < 1)))
        return mgx_fail_lens(c, 1, 2);
    *out = mgx_shape_from_dims(past->type, 4, dims);
    return MGX_OK;
}

// Rows `from` .. of entry b along the step axis, `count` of them.
static struct mgx_tensor steps_of(const struct mgx_tensor *t, int64_t b, int64_t from,
                                  int64_t count)
{
    assert(t->shape.rank == 4 && b >= 0 && b < t->shape.lens[0] && from >= 0);
    struct mgx_tensor part = mgx_borrow_entry(t, b);
    part.shape.lens[2] = count;
    const int64_t offset = from * t->shape.strides[2] * (int64_t)mgx_type_size(t->shape.type);
    part.data = (char *)part.data + offset;
    return part;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const int64_t steps = c->in[0]->shape.lens[2], room = c->out->shape.lens[2];
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const int64_t *seqlens = mgx_scratch_ints(c, c->in[1]);
    if (!seqlens)
        return MGX_NO_MEMORY;
    mgx_tensor_copy(c->in[2], c->out);
    for (int64_t b = 0; b < c->out->shape.lens[0] && steps > 0; b++) {
        const int64_t at = steps == 1 ? seqlens[b] : 0;
        if (at < 0 || at >= room)
            continue;
        const struct mgx_tensor from = steps_of(c->in[0], b, 0, steps);
        struct mgx_tensor to = steps_of(c->out, b, at, steps);
        mgx_tensor_copy(&from, &to);
    }
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return c->in[2]->type;
}

const struct mgx_op mgx_op_concat_past_present = {
    .name = "concat_past_present",
    .meaning = "y = past with the steps of present written behind what is there",
    .fields = fields,
    .attr_size = sizeof(struct concat_past_present),
    .in_min = 3,
    .in_max = 3,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
