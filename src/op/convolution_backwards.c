// SPDX-License-Identifier: MIT
// convolution_backwards, quant_convolution_backwards: the transpose of a convolution (ONNX
// ConvTranspose).
//
//     y[n, m, i*stride + t*dilation - begin] += x[n, c, i] * w[c, m, t]     for c in the group of m
//     length: (in - 1) * stride + (kernel - 1) * dilation + 1 - begin - end
//
// A negative end lengthens the output by places that may stay zero, which is how ONNX's
// output_padding is expressed. Per image and group: rows = transposed weights times x, then folded
// into the output, a run of input places at a time. quant_convolution_backwards sums products of
// narrow integers in int32, of x - p and w - q where these zero points are given: p one value, q
// one or one for every m.
#include <assert.h>
#include <inttypes.h>

#include "op/reference/convolution.h"
#include "op/reference/gemm.h"
#include "op/reference/lanes.h"

static const struct mgx_field fields[] = {
    MGX_INTS(struct mgx_convolution, padding),  MGX_INTS(struct mgx_convolution, stride),
    MGX_INTS(struct mgx_convolution, dilation), MGX_INT(struct mgx_convolution, padding_mode),
    MGX_INT(struct mgx_convolution, group),     {0}};

// --- shape ---

static enum mgx_status check_channels(struct mgx_shape_call *c, int64_t group)
{
    struct mgx_dim x = mgx_shape_dim(c->in[0], 1), w = mgx_shape_dim(c->in[1], 0);
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

static enum mgx_status result_shape(struct mgx_shape_call *c, enum mgx_type type,
                                    struct mgx_shape *out)
{
    const struct mgx_convolution *a = c->attr;
    const struct mgx_shape *x = c->in[0], *w = c->in[1];
    TRY(mgx_convolution_check(c));
    const struct mgx_window_attr window = mgx_convolution_window(a);
    const int spatial = x->rank - 2;
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
    *out = mgx_shape_from_dims(type, x->rank, dims);
    if (mgx_shape_is_static(out) && mgx_shape_is_static(x))
        *out = mgx_shape_like_order(out, x);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_same_type(c));
    return result_shape(c, c->in[0]->type, out);
}

static enum mgx_status quant_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    enum mgx_type type;
    TRY(mgx_quant_result(c, &type));
    TRY(result_shape(c, type, out));
    const struct mgx_dim channels = mgx_shape_dim(c->in[1], 1);
    return mgx_quant_zeros(c, &channels);
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
    assert(n >= 0);
    struct mgx_tensor from = mgx_borrow_entry(r->c->in[0], n);
    struct mgx_tensor to = mgx_borrow_entry(r->c->out, n);
    union mgx_word *x = mgx_scratch_words(r->c, &from, r->ints);
    union mgx_word *y = mgx_zero_words(r->c, mgx_shape_elements(&to.shape));
    if (!x || !y || !mgx_quant_shift(r->c, 2, x, mgx_shape_elements(&from.shape), 1))
        return MGX_NO_MEMORY;
    for (int64_t g = 0; g < r->group; g++)
        spread_group(r, x + g * r->in_channels * r->u.places, r->weights + g * r->in_channels,
                     y + g * r->out_channels * r->u.plane);
    mgx_write_words(&to, y, r->ints);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_convolution *a = c->attr;
    const struct mgx_shape *w = &c->in[1]->shape;
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    struct run r = {.c = c,
                    .u = mgx_convolution_unfold(c, true),
                    .ints = mgx_computes_as_int(c->in[0]->shape.type),
                    .group = a->group,
                    .in_channels = w->lens[0] / a->group,
                    .out_channels = w->lens[1]};
    const int64_t height = mgx_max_i64(r.out_channels * r.u.taps, 1);
    r.step =
        mgx_max_i64(mgx_min_i64(r.u.places, mgx_max_i64(MGX_CONVOLUTION_ROWS / height, 16)), 1);
    const bool along[MGX_MAX_RANK] = {true};
    struct mgx_lanes lanes;
    union mgx_word *weights = r.ints
                                  ? (union mgx_word *)mgx_lanes_ints(c, c->in[1], along, &lanes)
                                  : (union mgx_word *)mgx_lanes_doubles(c, c->in[1], along, &lanes);
    r.weights = weights;
    r.rows = mgx_zero_words(c, height * r.step);
    if (!weights || !r.rows ||
        !mgx_quant_shift(c, 3, weights, mgx_shape_elements(w),
                         mgx_max_i64(w->lens[0] * r.u.taps, 1)))
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
    .attr_size = sizeof(struct mgx_convolution),
    .defaults = &mgx_convolution_defaults,
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_CHANNELS_LAST | MGX_OP_PRODUCT,
    .shape = shape,
    .compute = compute,
};

const struct mgx_op mgx_op_quant_convolution_backwards = {
    .name = "quant_convolution_backwards",
    .meaning = "convolution_backwards of narrow integers x - p and w - q, summed in int32",
    .fields = fields,
    .attr_size = sizeof(struct mgx_convolution),
    .defaults = &mgx_convolution_defaults,
    .in_min = 2,
    .in_max = 4,
    .flags = MGX_OP_CHANNELS_LAST | MGX_OP_PRODUCT,
    .shape = quant_shape,
    .unranked_type = mgx_quant_unranked,
    .compute = compute,
};
