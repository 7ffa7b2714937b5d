// SPDX-License-Identifier: MIT
// convolution, quant_convolution: any number of spatial axes, groups, strides, dilations, padding.
//
//     y[n, m, o...] = sum over c, t... of
//                         w[m, c, t...] * x[n, g*C + c, o*stride + t*dilation - begin]
//
// with g the group of m and C the channels of a group. quant_convolution sums products of narrow
// integers into int32 (fp8 and bf16 into float), of x - p and w - q where these zero points are
// given: p one value, also of the padding, q one or one for every output channel. Per image and
// group this is a matrix product of the weights with unfolded inputs, a run of places at a time, so
// that memory stays bounded by the operands.
#include <assert.h>
#include <inttypes.h>

#include "op/reference/convolution.h"

static const struct mgx_field fields[] = {
    MGX_INTS(struct mgx_convolution, padding),
    MGX_INTS(struct mgx_convolution, stride),
    MGX_INTS(struct mgx_convolution, dilation),
    MGX_INT(struct mgx_convolution, group),
    MGX_INT(struct mgx_convolution, padding_mode),
    MGX_FLAG(struct mgx_convolution, use_dynamic_same_auto_pad),
    {0}};
static const struct mgx_field quant_fields[] = {
    MGX_INTS(struct mgx_convolution, padding),  MGX_INTS(struct mgx_convolution, stride),
    MGX_INTS(struct mgx_convolution, dilation), MGX_INT(struct mgx_convolution, padding_mode),
    MGX_INT(struct mgx_convolution, group),     {0}};

// --- shape ---

static enum mgx_status check_channels(struct mgx_shape_call *c, int64_t group)
{
    const struct mgx_dim x = mgx_shape_dim(c->in[0], 1), w = mgx_shape_dim(c->in[1], 1);
    const struct mgx_dim m = mgx_shape_dim(c->in[1], 0);
    if (w.min > x.max / group || w.max < x.min / group ||
        (mgx_dim_is_fixed(&x) && x.min % group != 0))
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: mismatched channel numbers: input channels (%" PRId64
                        ") != weights channels (%" PRId64 ") * group (%" PRId64 ")",
                        c->op->name, x.max, w.max, group);
    if (mgx_dim_is_fixed(&m) && m.min % group != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " output channels do not divide into %" PRId64 " groups",
                        c->op->name, m.min, group);
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
    dims[1] = mgx_shape_dim(w, 0);
    for (int i = 0; i < spatial; i++)
        TRY(mgx_window_dim(c, &window, i, dims[i + 2], mgx_shape_dim(w, i + 2), &dims[i + 2]));
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
    const struct mgx_dim channels = mgx_shape_dim(c->in[1], 0);
    return mgx_quant_zeros(c, &channels);
}

// --- compute ---

struct run {
    struct mgx_compute_call *c;
    struct mgx_unfold u;
    bool ints;
    int64_t group, in_channels, out_channels; // channels of one group
    const union mgx_word *weights;
    union mgx_word *rows; // unfolded: in_channels * taps rows of `step` places
    int64_t step;
};

// y (out_channels x places) += weights of group g times unfolded x.
static void convolve_group(const struct run *r, const union mgx_word *x,
                           const union mgx_word *weights, union mgx_word *y)
{
    const struct mgx_unfold *u = &r->u;
    const int64_t depth = r->in_channels * u->taps;
    for (int64_t from = 0; from < u->places; from += r->step) {
        const int64_t count = mgx_min_i64(r->step, u->places - from);
        for (int64_t k = 0; k < depth; k++) {
            int64_t tap[MGX_MAX_RANK];
            mgx_unfold_tap(u, k % u->taps, tap);
            mgx_unfold_row(u, tap, x + k / u->taps * u->plane, from, from + count,
                           r->rows + k * r->step);
        }
        mgx_gemm_words(r->ints, r->out_channels, count, depth, weights, depth, r->rows, r->step,
                       y + from, u->places);
    }
}

static enum mgx_status convolve_image(const struct run *r, int64_t n)
{
    assert(n >= 0);
    struct mgx_tensor from = mgx_borrow_entry(r->c->in[0], n);
    struct mgx_tensor to = mgx_borrow_entry(r->c->out, n);
    union mgx_word *x = mgx_scratch_words(r->c, &from, r->ints);
    union mgx_word *y = mgx_zero_words(r->c, mgx_shape_elements(&to.shape));
    if (!x || !y || !mgx_quant_shift(r->c, 2, x, mgx_shape_elements(&from.shape), 1))
        return MGX_NO_MEMORY;
    for (int64_t g = 0; g < r->group; g++)
        convolve_group(r, x + g * r->in_channels * r->u.plane,
                       r->weights + g * r->out_channels * r->in_channels * r->u.taps,
                       y + g * r->out_channels * r->u.places);
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
                    .u = mgx_convolution_unfold(c, false),
                    .ints = mgx_computes_as_int(c->in[0]->shape.type),
                    .group = a->group,
                    .in_channels = w->lens[1],
                    .out_channels = w->lens[0] / a->group};
    const int64_t depth = mgx_max_i64(r.in_channels * r.u.taps, 1);
    r.step = mgx_min_i64(r.u.places, mgx_max_i64(MGX_CONVOLUTION_ROWS / depth, 16));
    union mgx_word *weights = mgx_scratch_words(c, c->in[1], r.ints);
    r.weights = weights;
    r.rows = mgx_zero_words(c, depth * r.step);
    if (!weights || !r.rows ||
        !mgx_quant_shift(c, 3, weights, mgx_shape_elements(w), w->lens[0] ? depth : 1))
        return MGX_NO_MEMORY;
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < c->out->shape.lens[0]; n++) {
        TRY(convolve_image(&r, n));
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_convolution = {
    .name = "convolution",
    .meaning = "y[n,m,o] = sum over c, t of w[m,c,t] * x[n,c,o*stride+t*dilation-padding]",
    .fields = fields,
    .attr_size = sizeof(struct mgx_convolution),
    .defaults = &mgx_convolution_defaults,
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_CHANNELS_LAST | MGX_OP_PRODUCT,
    .shape = shape,
    .compute = compute,
};

const struct mgx_op mgx_op_quant_convolution = {
    .name = "quant_convolution",
    .meaning =
        "convolution of narrow integers x - p and w - q, summed in int32; of fp8, bf16, in float",
    .fields = quant_fields,
    .attr_size = sizeof(struct mgx_convolution),
    .defaults = &mgx_convolution_defaults,
    .in_min = 2,
    .in_max = 4,
    .flags = MGX_OP_CHANNELS_LAST | MGX_OP_PRODUCT,
    .shape = quant_shape,
    .unranked_type = mgx_quant_unranked,
    .compute = compute,
};
