// SPDX-License-Identifier: MIT
// convolution_backwards: the transpose of a convolution (ONNX ConvTranspose).
//
//     y[n, m, i*stride + t*dilation - begin] += x[n, c, i] * w[c, m, t]     for c in the group of m
//     length: (in - 1) * stride + (kernel - 1) * dilation + 1 - begin - end
//
// A negative end lengthens the output by places that may stay zero, which is how ONNX's
// output_padding is expressed. Per image and group: rows = transposed weights times x, then folded
// into the output, a run of input places at a time.
#include <inttypes.h>

#include "op/reference/lanes.h"
#include "op/reference/unfold.h"

struct convolution_backwards {
    struct mgx_ints padding, stride, dilation;
    int64_t padding_mode, group;
};

static const struct mgx_field fields[] = {MGX_INTS(struct convolution_backwards, padding),
                                          MGX_INTS(struct convolution_backwards, stride),
                                          MGX_INTS(struct convolution_backwards, dilation),
                                          MGX_INT(struct convolution_backwards, padding_mode),
                                          MGX_INT(struct convolution_backwards, group),
                                          {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct convolution_backwards defaults = {
    .padding = {zeros, 2}, .stride = {ones, 2}, .dilation = {ones, 2}, .group = 1};

static struct mgx_window_attr window_attr(const struct convolution_backwards *a)
{
    return (struct mgx_window_attr){.padding = a->padding,
                                    .stride = a->stride,
                                    .dilation = a->dilation,
                                    .padding_mode = a->padding_mode};
}

// --- shape ---

static enum mgx_status check_channels(struct mgx_shape_call *c, int64_t group)
{
    struct mgx_dim x = mgx_shape_dim(c->in[0], 1), w = mgx_shape_dim(c->in[1], 0);
    if (group < 1 || group > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: group %" PRId64 " is out of range 1..%d",
                        c->op->name, group, INT32_MAX);
    if (x.min > w.max || x.max < w.min)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: mismatched channel numbers: input channels (%" PRId64
                        ") != weights channels (%" PRId64 ")",
                        c->op->name, x.max, w.max);
    mgx_dim_meet(&x, w);
    if (mgx_dim_is_fixed(&x) && x.min % group != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " input channels do not divide into %" PRId64 " groups",
                        c->op->name, x.min, group);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct convolution_backwards *a = c->attr;
    const struct mgx_shape *x = c->in[0], *w = c->in[1];
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_same_type(c));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, x->rank, x->rank));
    const struct mgx_window_attr window = window_attr(a);
    const int spatial = x->rank - 2;
    TRY(mgx_window_check(c, &window, spatial));
    TRY(check_channels(c, a->group));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    const struct mgx_dim m = mgx_shape_dim(w, 1);
    if (!mgx_mul_i64(m.min, a->group, &dims[1].min))
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " times %" PRId64 " channels is too many", c->op->name,
                        m.min, a->group);
    if (!mgx_mul_i64(m.max, a->group, &dims[1].max))
        dims[1].max = MGX_DIM_ANY;
    dims[1] = (struct mgx_dim){.min = dims[1].min, .max = dims[1].max};
    for (int i = 0; i < spatial; i++)
        TRY(mgx_window_back_dim(c, &window, i, dims[i + 2], mgx_shape_dim(w, i + 2), &dims[i + 2]));
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    if (mgx_shape_is_static(out) && mgx_shape_is_static(x))
        *out = mgx_shape_like_order(out, x);
    return MGX_OK;
}

// --- compute ---

struct run {
    struct mgx_compute_call *c;
    struct mgx_unfold u; // of the forward convolution: its input is our output
    bool ints;
    int64_t group, in_channels, out_channels; // channels of one group
    const union mgx_word *weights;            // [out_channels][taps][all input channels]
    union mgx_word *rows;
    int64_t step;
};

enum { ROWS_LIMIT = 1 << 20 }; // words of rows at a time

static struct mgx_unfold unfold_of(const struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape, *w = &c->in[1]->shape, *y = &c->out->shape;
    const struct mgx_window_attr window = window_attr(c->attr);
    struct mgx_unfold u = {.rank = x->rank - 2};
    for (int i = 0; i < u.rank; i++)
        u.axis[i] = mgx_window_back_at(&window, i, x->lens[i + 2], w->lens[i + 2], y->lens[i + 2]);
    mgx_unfold_count(&u);
    return u;
}

static void spread_group(const struct run *r, const union mgx_word *x,
                         const union mgx_word *weights, union mgx_word *y)
{
    const struct mgx_unfold *u = &r->u;
    const int64_t height = r->out_channels * u->taps;
    for (int64_t from = 0; from < u->places; from += r->step) {
        const int64_t count = mgx_min_i64(r->step, u->places - from);
        for (int64_t k = 0; k < height * r->step; k++)
            r->rows[k].i = 0; // all bits zero is 0.0 as well
        mgx_gemm_words(r->ints, height, count, r->in_channels, weights, r->in_channels * r->group,
                       x + from, u->places, r->rows, r->step);
        for (int64_t k = 0; k < height; k++) {
            int64_t tap[MGX_MAX_RANK];
            mgx_unfold_tap(u, k % u->taps, tap);
            mgx_fold_row(u, tap, r->rows + k * r->step, from, from + count, r->ints,
                         y + k / u->taps * u->plane);
        }
    }
}

static enum mgx_status spread_image(const struct run *r, int64_t n)
{
    struct mgx_tensor from = mgx_borrow_entry(r->c->in[0], n);
    struct mgx_tensor to = mgx_borrow_entry(r->c->out, n);
    const union mgx_word *x = mgx_scratch_words(r->c, &from, r->ints);
    union mgx_word *y = mgx_zero_words(r->c, mgx_shape_elements(&to.shape));
    if (!x || !y)
        return MGX_NO_MEMORY;
    for (int64_t g = 0; g < r->group; g++)
        spread_group(r, x + g * r->in_channels * r->u.places, r->weights + g * r->in_channels,
                     y + g * r->out_channels * r->u.plane);
    mgx_write_words(&to, y, r->ints);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct convolution_backwards *a = c->attr;
    const struct mgx_shape *w = &c->in[1]->shape;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    struct run r = {.c = c,
                    .u = unfold_of(c),
                    .ints = mgx_computes_as_int(c->in[0]->shape.type),
                    .group = a->group,
                    .in_channels = w->lens[0] / a->group,
                    .out_channels = w->lens[1]};
    const int64_t height = mgx_max_i64(r.out_channels * r.u.taps, 1);
    r.step = mgx_max_i64(mgx_min_i64(r.u.places, mgx_max_i64(ROWS_LIMIT / height, 16)), 1);
    const bool along[MGX_MAX_RANK] = {true};
    struct mgx_lanes lanes;
    r.weights = r.ints ? (union mgx_word *)mgx_lanes_ints(c, c->in[1], along, &lanes)
                       : (union mgx_word *)mgx_lanes_doubles(c, c->in[1], along, &lanes);
    r.rows = mgx_zero_words(c, height * r.step);
    if (!r.weights || !r.rows)
        return MGX_NO_MEMORY;
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < c->out->shape.lens[0]; n++) {
        TRY(spread_image(&r, n));
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_convolution_backwards = {
    .name = "convolution_backwards",
    .meaning = "y[n,m,i*stride+t*dilation-padding] = sum of x[n,c,i] * w[c,m,t]",
    .fields = fields,
    .attr_size = sizeof(struct convolution_backwards),
    .defaults = &defaults,
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_CHANNELS_LAST,
    .shape = shape,
    .compute = compute,
};
