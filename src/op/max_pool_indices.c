// SPDX-License-Identifier: MIT
// max_pool_indices: a maximum pooling that also says where each maximum was, as ONNX MaxPool does.
//
// The result is a tuple of the maxima and their flat int64 positions in the whole of x: row-major,
// or with the spatial axes in reverse order of storage when storage_order is 1. The first of equal
// values counts; a window that sees only padding gives the lowest value and position -1.
#include <assert.h>
#include <math.h>

#include "op/reference/gemm.h"
#include "op/reference/lanes.h"
#include "op/reference/pool.h"

struct max_pool_indices {
    struct mgx_ints padding;
    int64_t padding_mode;
    struct mgx_ints stride, lengths, dilations;
    bool ceil_mode;
    int64_t storage_order;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct max_pool_indices, padding),      MGX_INT(struct max_pool_indices, padding_mode),
    MGX_INTS(struct max_pool_indices, stride),       MGX_INTS(struct max_pool_indices, lengths),
    MGX_INTS(struct max_pool_indices, dilations),    MGX_FLAG(struct max_pool_indices, ceil_mode),
    MGX_INT(struct max_pool_indices, storage_order), {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct max_pool_indices defaults = {
    .padding = {zeros, 2}, .stride = {ones, 2}, .lengths = {ones, 2}, .dilations = {ones, 2}};

static struct mgx_pool_attr pool_attr(const struct max_pool_indices *a)
{
    return (struct mgx_pool_attr){.padding = a->padding,
                                  .stride = a->stride,
                                  .lengths = a->lengths,
                                  .dilations = a->dilations,
                                  .padding_mode = a->padding_mode,
                                  .ceil_mode = a->ceil_mode};
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_pool_attr a = pool_attr(c->attr);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, 2);
    if (!sub)
        return mgx_fail_memory(c->diag);
    TRY(mgx_pool_shape(c, &a, &sub[0]));
    if (mgx_shape_is_static(&sub[0]))
        sub[0] = mgx_shape_retype(&sub[0], sub[0].type); // row-major, like the indices
    sub[1] = mgx_shape_retype(&sub[0], MGX_INT64);
    *out = mgx_shape_tuple(sub, 2);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_TUPLE;
}

// Position of the largest input of a region in its plane.
static int64_t find_most(const struct mgx_region *r, const union mgx_word *x, bool ints,
                         enum mgx_type type)
{
    int64_t at[MGX_MAX_RANK] = {0}, offset = r->start, best = r->start;
    const int64_t n = r->count[r->rank - 1], step = r->step[r->rank - 1];
    do {
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = offset + i * step;
            const bool wins = ints ? mgx_int_order(type, x[k].i) > mgx_int_order(type, x[best].i)
                                   : x[k].f > x[best].f || (isnan(x[k].f) && !isnan(x[best].f));
            best = wins ? k : best;
        }
    } while (mgx_region_next(r, at, &offset));
    return best;
}

// A row-major position in a plane, renumbered so that the first spatial axis runs fastest.
static int64_t reverse_order(const struct mgx_pool_walk *w, int64_t position)
{
    assert(position >= 0 && position < w->plane);
    int64_t at[MGX_MAX_RANK], out = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        at[i] = position % w->axis[i].in;
        position /= w->axis[i].in;
    }
    for (int i = w->rank - 1; i >= 0; i--)
        out = out * w->axis[i].in + at[i];
    return out;
}

static union mgx_word lowest(enum mgx_type type, bool ints)
{
    union mgx_word w = {.f = mgx_type_lowest(type)};
    if (ints)
        w.i = type == MGX_INT64 ? INT64_MIN : (int64_t)mgx_type_lowest(type);
    return w;
}

static enum mgx_status fill(struct mgx_compute_call *c, struct mgx_tensor *values,
                            struct mgx_tensor *indices)
{
    const struct max_pool_indices *a = c->attr;
    const enum mgx_type type = c->in[0]->shape.type;
    const bool ints = mgx_computes_as_int(type);
    const struct mgx_pool_attr attr = pool_attr(a);
    struct mgx_pool_walk walk;
    mgx_pool_walk_init(&walk, &attr, &c->in[0]->shape, &values->shape);
    const int64_t count = mgx_shape_elements(&values->shape);
    const union mgx_word *x = mgx_scratch_words(c, c->in[0], ints);
    union mgx_word *y = mgx_zero_words(c, count), *where = mgx_zero_words(c, count);
    if (!x || !y || !where)
        return MGX_NO_MEMORY;
    int64_t at[MGX_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++, mgx_pool_step(&walk, at)) {
        const int64_t base = i / walk.places * walk.plane;
        struct mgx_region r;
        mgx_region_at(&r, walk.axis, walk.rank, at);
        const int64_t best = r.seen ? find_most(&r, x + base, ints, type) : -1;
        y[i] = r.seen ? x[base + best] : lowest(type, ints);
        where[i].i = !r.seen ? -1 : base + (a->storage_order ? reverse_order(&walk, best) : best);
    }
    mgx_write_words(values, y, ints);
    mgx_write_words(indices, where, true);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct mgx_tensor members[2] = {0};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < 2 && status == MGX_OK; i++) {
        status = mgx_eval_create(c, &c->out_shape->sub[i]);
        members[i] = *c->out;
        *c->out = (struct mgx_tensor){0};
    }
    if (status == MGX_OK && mgx_shape_elements(&members[0].shape) > 0)
        status = fill(c, &members[0], &members[1]);
    if (status == MGX_OK)
        return mgx_tensor_group(c->out, members, 2, false, c->diag);
    mgx_tensor_release(&members[0]);
    mgx_tensor_release(&members[1]);
    return status;
}

const struct mgx_op mgx_op_max_pool_indices = {
    .name = "max_pool_indices",
    .meaning = "(y, i) = maximum of x over a sliding window, and where it was",
    .fields = fields,
    .attr_size = sizeof(struct max_pool_indices),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
