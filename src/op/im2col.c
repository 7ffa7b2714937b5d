// SPDX-License-Identifier: MIT
// im2col: what a convolution sees at each place, as the rows of a matrix.
//
//     y {n * places, channels * taps};   the second input only lends its kernel lengths
//
// Channels, then taps, run along a row. Any number of spatial axes and images.
#include "op/reference/unfold.h"

#include <assert.h>

struct im2col {
    struct mgx_ints padding, stride, dilation;
    int64_t padding_mode;
};

static const struct mgx_field fields[] = {MGX_INTS(struct im2col, padding),
                                          MGX_INTS(struct im2col, stride),
                                          MGX_INTS(struct im2col, dilation),
                                          MGX_INT(struct im2col, padding_mode),
                                          {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct im2col defaults = {
    .padding = {zeros, 2}, .stride = {ones, 2}, .dilation = {ones, 2}};

static struct mgx_window_attr window_attr(const struct im2col *a)
{
    return (struct mgx_window_attr){.padding = a->padding,
                                    .stride = a->stride,
                                    .dilation = a->dilation,
                                    .padding_mode = a->padding_mode};
}

// Ranges multiply; what does not fit is as good as open.
static void multiply(struct mgx_dim *d, struct mgx_dim by)
{
    assert(by.min >= 0 && by.min <= by.max);
    int64_t min, max;
    if (!mgx_mul_i64(d->min, by.min, &min))
        min = INT64_MAX;
    if (!mgx_mul_i64(d->max, by.max, &max))
        max = INT64_MAX;
    *d = (struct mgx_dim){.min = min, .max = max};
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0], *w = c->in[1];
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, x->rank, x->rank));
    const struct mgx_window_attr window = window_attr(c->attr);
    TRY(mgx_window_check(c, &window, x->rank - 2));
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 2);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[0] = mgx_shape_dim(x, 0);
    dims[1] = mgx_shape_dim(x, 1);
    TRY(mgx_require_length(c, 1, 1, &dims[1]));
    for (int i = 0; i < x->rank - 2; i++) {
        const struct mgx_dim kernel = mgx_shape_dim(w, i + 2);
        struct mgx_dim places;
        TRY(mgx_window_dim(c, &window, i, mgx_shape_dim(x, i + 2), kernel, &places));
        multiply(&dims[0], places);
        multiply(&dims[1], kernel);
    }
    *out = mgx_shape_from_dims(x->type, 2, dims);
    return MGX_OK;
}

static enum mgx_status unfold_image(struct mgx_compute_call *c, const struct mgx_unfold *u,
                                    bool ints, int64_t n)
{
    const struct mgx_tensor image = mgx_borrow_entry(c->in[0], n);
    const union mgx_word *x = mgx_scratch_words(c, &image, ints);
    union mgx_word *row = mgx_zero_words(c, u->places);
    if (!x || !row)
        return MGX_NO_MEMORY;
    const struct mgx_shape *s = &c->out->shape;
    for (int64_t k = 0; k < s->lens[1]; k++) {
        int64_t tap[MGX_MAX_RANK];
        mgx_unfold_tap(u, k % u->taps, tap);
        mgx_unfold_row(u, tap, x + k / u->taps * u->plane, 0, u->places, row);
        const int64_t at[] = {n * u->places, k};
        struct mgx_tensor column = {.shape = mgx_shape_strided(s->type, 1, &u->places, s->strides),
                                    .data =
                                        (char *)c->out->data +
                                        mgx_shape_offset(s, at) * (int64_t)mgx_type_size(s->type)};
        mgx_write_words(&column, row, ints);
    }
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const struct mgx_shape *x = &c->in[0]->shape, *w = &c->in[1]->shape;
    const struct mgx_window_attr window = window_attr(c->attr);
    struct mgx_unfold u = {.rank = x->rank - 2};
    for (int i = 0; i < u.rank; i++) {
        const int64_t kernel = w->lens[i + 2];
        const int64_t in = x->lens[i + 2];
        u.axis[i] =
            mgx_window_at(&window, i, in, kernel, mgx_window_places(&window, i, in, kernel));
    }
    mgx_unfold_count(&u);
    const bool ints = mgx_computes_as_int(x->type);
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < x->lens[0]; n++) {
        TRY(unfold_image(c, &u, ints, n));
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_im2col = {
    .name = "im2col",
    .meaning = "y[place, (c, t)] = x[c, place*stride+t*dilation-padding]",
    .fields = fields,
    .attr_size = sizeof(struct im2col),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 2,
    .shape = shape,
    .compute = compute,
};
