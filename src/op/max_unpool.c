// SPDX-License-Identifier: MIT
// max_unpool: puts the values of a maximum pooling back where they were, 0 elsewhere (ONNX
// MaxUnpool).
//
// The plain result has the lengths the pooling's input is guessed to have,
// (in - 1) * stride + kernel - begin - end, and indices are flat positions in it. A third input
// gives larger lengths instead; the plain result then lies in their corner.
#include <inttypes.h>

#include "ir/module.h"
#include "op/reference/gemm.h"
#include "op/reference/window.h"

struct max_unpool {
    struct mgx_ints lengths, stride, padding;
};

static const struct mgx_field fields[] = {MGX_INTS(struct max_unpool, lengths),
                                          MGX_INTS(struct max_unpool, stride),
                                          MGX_INTS(struct max_unpool, padding),
                                          {0}};

static const int64_t zeros[] = {0, 0},
                     ones[MGX_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const struct max_unpool defaults = {
    .lengths = {ones, 2}, .stride = {ones, 2}, .padding = {zeros, 2}};

// The plain result's ranges.
static enum mgx_status plain_dims(struct mgx_shape_call *c, struct mgx_dim *dims)
{
    const struct max_unpool *a = c->attr;
    const int spatial = c->in[0]->rank - 2;
    const struct mgx_window_attr window = {
        .padding = a->padding, .stride = a->stride, .dilation = {ones, spatial}};
    TRY(mgx_window_check(c, &window, spatial));
    if (a->lengths.count != spatial)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: inconsistent attribute sizes: lengths (%d) for %d spatial axes",
                        c->op->name, a->lengths.count, spatial);
    for (int i = 0; i < spatial; i++) {
        const int64_t length = mgx_max_i64(a->lengths.v[i], 0);
        const struct mgx_dim kernel = {.min = length, .max = length};
        TRY(mgx_window_back_dim(c, &window, i, dims[i + 2], kernel, &dims[i + 2]));
    }
    return MGX_OK;
}

// Ranges from the third input: known numbers, or anything.
static enum mgx_status given_dims(struct mgx_shape_call *c, struct mgx_dim *dims)
{
    const int rank = c->in[0]->rank;
    bool known;
    struct mgx_ints lens;
    TRY(mgx_known_ints(c, 2, &known, &lens));
    if (known && lens.count != rank)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %d output lengths for rank %d", c->op->name,
                        lens.count, rank);
    for (int i = 0; i < rank; i++) {
        if (!known) {
            if (i >= 2)
                dims[i] = (struct mgx_dim){.min = dims[i].min, .max = MGX_DIM_ANY};
            continue;
        }
        if (lens.v[i] < dims[i].min || (i < 2 && lens.v[i] > dims[i].max))
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: output length %" PRId64 " along axis %d is less than %" PRId64,
                            c->op->name, lens.v[i], i, dims[i].min);
        dims[i] = (struct mgx_dim){.min = lens.v[i], .max = lens.v[i]};
    }
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_integral(c, 1));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    if (!mgx_shape_may_match(x, c->in[1]))
        return mgx_fail_lens(c, 0, 1);
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(plain_dims(c, dims));
    if (c->in_count == 3)
        TRY(given_dims(c, dims));
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    return MGX_OK;
}

// Lengths of the plain result; the shape rule has found them sound.
static struct mgx_shape plain_shape(const struct mgx_compute_call *c)
{
    const struct max_unpool *a = c->attr;
    struct mgx_shape s = mgx_shape_make(c->out->shape.type, c->out->shape.rank, c->out->shape.lens);
    const struct mgx_shape *x = &c->in[0]->shape;
    const int spatial = x->rank - 2;
    for (int i = 0; i < spatial; i++) {
        const int64_t end = a->padding.v[a->padding.count == spatial ? i : spatial + i];
        s.lens[i + 2] =
            (x->lens[i + 2] - 1) * a->stride.v[i] + a->lengths.v[i] - a->padding.v[i] - end;
    }
    return s;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const bool ints = mgx_computes_as_int(c->in[0]->shape.type);
    const int64_t count = mgx_shape_elements(&c->in[0]->shape);
    const int64_t size = mgx_shape_elements(&c->out->shape);
    const union mgx_word *x = mgx_scratch_words(c, c->in[0], ints);
    const int64_t *where = mgx_scratch_ints(c, c->in[1]);
    union mgx_word *y = mgx_zero_words(c, size);
    if (!x || !where || !y)
        return MGX_NO_MEMORY;
    const struct mgx_shape plain = plain_shape(c);
    const struct mgx_shape whole =
        mgx_shape_make(plain.type, c->out->shape.rank, c->out->shape.lens);
    const int64_t limit = count ? mgx_shape_elements(&plain) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (where[i] < 0 || where[i] >= limit)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: index %" PRId64 " is out of range for %" PRId64 " elements",
                            c->op->name, where[i], limit);
        int64_t at[MGX_MAX_RANK];
        mgx_shape_multi(&plain, where[i], at);
        y[mgx_shape_offset(&whole, at)] = x[i];
    }
    mgx_write_words(c->out, y, ints);
    return MGX_OK;
}

static uint32_t sized_by(const struct mgx_ins *ins)
{
    return ins->in_count == 3 ? 1u << 2 : 0;
}

const struct mgx_op mgx_op_max_unpool = {
    .name = "max_unpool",
    .meaning = "y[indices[i]] = x[i], else 0",
    .fields = fields,
    .attr_size = sizeof(struct max_unpool),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 3,
    .shape = shape,
    .compute = compute,
    .sized_by = sized_by,
};
