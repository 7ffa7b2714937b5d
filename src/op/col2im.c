// SPDX-License-Identifier: MIT
// col2im: adds up columns of windows into images, the transpose of taking windows (ONNX Col2Im).
//
//     x {n, channels * taps, places}  ->  y {n, channels, sizes...}
//
// `sizes` are the image's lengths, `lengths` the window's; there must be exactly as many columns as
// such windows have places.
#include <inttypes.h>

#include "op/reference/unfold.h"

struct col2im {
    struct mgx_ints sizes, lengths, padding, stride, dilation;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct col2im, sizes),    MGX_INTS(struct col2im, lengths),
    MGX_INTS(struct col2im, padding),  MGX_INTS(struct col2im, stride),
    MGX_INTS(struct col2im, dilation), {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct col2im defaults = {.sizes = {ones, 2},
                                       .lengths = {ones, 2},
                                       .padding = {zeros, 2},
                                       .stride = {ones, 2},
                                       .dilation = {ones, 2}};

static struct mgx_window_attr window_attr(const struct col2im *a)
{
    return (struct mgx_window_attr){
        .padding = a->padding, .stride = a->stride, .dilation = a->dilation};
}

static enum mgx_status count_windows(struct mgx_shape_call *c, int64_t *taps, int64_t *places)
{
    const struct col2im *a = c->attr;
    const struct mgx_window_attr window = window_attr(a);
    TRY(mgx_window_check(c, &window, a->sizes.count));
    *taps = *places = 1;
    for (int i = 0; i < a->sizes.count; i++) {
        if (a->sizes.v[i] < 1 || a->lengths.v[i] < 1)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: image length %" PRId64 " and window length %" PRId64
                            " must be at least 1",
                            c->op->name, a->sizes.v[i], a->lengths.v[i]);
        const struct mgx_dim in = {.min = a->sizes.v[i], .max = a->sizes.v[i]};
        const struct mgx_dim kernel = {.min = a->lengths.v[i], .max = a->lengths.v[i]};
        struct mgx_dim out;
        TRY(mgx_window_dim(c, &window, i, in, kernel, &out));
        if (!mgx_mul_i64(*taps, kernel.max, taps) || !mgx_mul_i64(*places, out.max, places))
            return mgx_fail(c->diag, MGX_INVALID, "%s: windows are too many", c->op->name);
    }
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct col2im *a = c->attr;
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_rank(c, 0, 3, 3));
    if (a->sizes.count < 1 || a->sizes.count > MGX_MAX_RANK - 2 ||
        a->lengths.count != a->sizes.count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: inconsistent attribute sizes: sizes (%d), lengths (%d)", c->op->name,
                        a->sizes.count, a->lengths.count);
    int64_t taps, places;
    TRY(count_windows(c, &taps, &places));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], a->sizes.count + 2);
    if (!dims)
        return MGX_NO_MEMORY;
    const struct mgx_dim rows = dims[1], columns = mgx_shape_dim(c->in[0], 2);
    if (mgx_dim_is_fixed(&rows) && rows.min % taps != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " rows do not divide into windows of %" PRId64, c->op->name,
                        rows.min, taps);
    if (places < columns.min || places > columns.max)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " columns for %" PRId64 " places of the window", c->op->name,
                        columns.max, places);
    dims[1] = (struct mgx_dim){.min = rows.min / taps, .max = rows.max / taps};
    for (int i = 0; i < a->sizes.count; i++)
        dims[i + 2] = (struct mgx_dim){.min = a->sizes.v[i], .max = a->sizes.v[i]};
    *out = mgx_shape_from_dims(c->in[0]->type, a->sizes.count + 2, dims);
    return MGX_OK;
}

static enum mgx_status fold_image(struct mgx_compute_call *c, const struct mgx_unfold *u, bool ints,
                                  int64_t n)
{
    const struct mgx_tensor columns = mgx_borrow_entry(c->in[0], n);
    struct mgx_tensor image = mgx_borrow_entry(c->out, n);
    const union mgx_word *x = mgx_scratch_words(c, &columns, ints);
    union mgx_word *y = mgx_zero_words(c, mgx_shape_elements(&image.shape));
    if (!x || !y)
        return MGX_NO_MEMORY;
    for (int64_t k = 0; k < columns.shape.lens[1]; k++) {
        int64_t tap[MGX_MAX_RANK];
        mgx_unfold_tap(u, k % u->taps, tap);
        mgx_fold_row(u, tap, x + k * u->places, 0, u->places, ints, y + k / u->taps * u->plane);
    }
    mgx_write_words(&image, y, ints);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct col2im *a = c->attr;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const struct mgx_window_attr window = window_attr(a);
    struct mgx_unfold u = {.rank = a->sizes.count};
    for (int i = 0; i < u.rank; i++)
        u.axis[i] = mgx_window_at(&window, i, a->sizes.v[i], a->lengths.v[i],
                                  mgx_window_places(&window, i, a->sizes.v[i], a->lengths.v[i]));
    mgx_unfold_count(&u);
    const bool ints = mgx_computes_as_int(c->in[0]->shape.type);
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < c->out->shape.lens[0]; n++) {
        TRY(fold_image(c, &u, ints, n));
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_col2im = {
    .name = "col2im",
    .meaning = "y[c, place*stride+t*dilation-padding] = sum of x[(c, t), place]",
    .fields = fields,
    .attr_size = sizeof(struct col2im),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
