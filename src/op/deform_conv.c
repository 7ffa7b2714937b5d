// SPDX-License-Identifier: MIT
// deform_conv: a convolution whose taps are moved by offsets and scaled by a mask (ONNX
// DeformConv).
//
//     y[n, m, o] = sum over c, t of w[m, c, t] * mask[n, G, t, o] *
//                                   x[n, c, o*stride + t*dilation - begin + offset[n, G, t, :, o]]
//
// x is read by linear interpolation, 0 outside; G is the offset group of channel c. Per image and
// group: a matrix product of the weights with the rows that were read, a run of places at a time.
#include <assert.h>
#include <inttypes.h>

#include "op/reference/sample.h"
#include "op/reference/unfold.h"

struct deform_conv {
    struct mgx_ints padding, stride, dilation;
    int64_t group, offset_group;
};

static const struct mgx_field fields[] = {
    MGX_INTS(struct deform_conv, padding),     MGX_INTS(struct deform_conv, stride),
    MGX_INTS(struct deform_conv, dilation),    MGX_INT(struct deform_conv, group),
    MGX_INT(struct deform_conv, offset_group), {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct deform_conv defaults = {.padding = {zeros, 2},
                                            .stride = {ones, 2},
                                            .dilation = {ones, 2},
                                            .group = 1,
                                            .offset_group = 1};

static struct mgx_window_attr window_attr(const struct deform_conv *a)
{
    return (struct mgx_window_attr){
        .padding = a->padding, .stride = a->stride, .dilation = a->dilation};
}

// --- shape ---

// `groups` must divide what is known of a number of channels.
static enum mgx_status check_groups(struct mgx_shape_call *c, const char *what, int64_t groups,
                                    struct mgx_dim channels)
{
    if (groups < 1 || groups > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %s %" PRId64 " is out of range 1..%d",
                        c->op->name, what, groups, INT32_MAX);
    if (mgx_dim_is_fixed(&channels) && channels.min % groups != 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " channels do not divide into %s %" PRId64, c->op->name,
                        channels.min, what, groups);
    return MGX_OK;
}

// Channels of the offsets and of the mask, as far as the kernel is known.
static enum mgx_status check_moves(struct mgx_shape_call *c, const struct mgx_dim *out)
{
    const struct deform_conv *a = c->attr;
    const int spatial = c->in[0]->rank - 2;
    struct mgx_dim moves = {.min = a->offset_group, .max = a->offset_group};
    for (int i = 0; i < spatial; i++) {
        const struct mgx_dim k = mgx_shape_dim(c->in[1], i + 2);
        if (!mgx_mul_i64(moves.min, k.min, &moves.min) ||
            !mgx_mul_i64(moves.max, mgx_min_i64(k.max, INT32_MAX), &moves.max))
            return mgx_fail(c->diag, MGX_INVALID, "%s: the kernel is too large", c->op->name);
    }
    for (int input = 2; input < c->in_count; input++) {
        TRY(mgx_require_rank(c, input, spatial + 2, spatial + 2));
        struct mgx_dim want;
        for (int i = 0; i < spatial + 2; i++) {
            want = out[i];
            if (i != 1)
                TRY(mgx_require_length(c, input, i, &want));
        }
        want = moves;
        if (input == 2 && (!mgx_mul_i64(want.min, spatial, &want.min) ||
                           !mgx_mul_i64(want.max, spatial, &want.max)))
            return mgx_fail(c->diag, MGX_INVALID, "%s: the kernel is too large", c->op->name);
        TRY(mgx_require_length(c, input, 1, &want));
    }
    return MGX_OK;
}

static enum mgx_status check_channels(struct mgx_shape_call *c)
{
    const struct deform_conv *a = c->attr;
    const struct mgx_dim x = mgx_shape_dim(c->in[0], 1), w = mgx_shape_dim(c->in[1], 1);
    TRY(check_groups(c, "group", a->group, mgx_shape_dim(c->in[1], 0)));
    TRY(check_groups(c, "group", a->group, x));
    TRY(check_groups(c, "offset_group", a->offset_group, x));
    if (w.min > x.max / a->group || w.max < x.min / a->group)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: mismatched channel numbers: input channels (%" PRId64
                        ") != weights channels (%" PRId64 ") * group (%" PRId64 ")",
                        c->op->name, x.max, w.max, a->group);
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0], *w = c->in[1];
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_same_type(c));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    TRY(mgx_require_rank(c, 1, x->rank, x->rank));
    const struct mgx_window_attr window = window_attr(c->attr);
    TRY(mgx_window_check(c, &window, x->rank - 2));
    TRY(check_channels(c));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[1] = mgx_shape_dim(w, 0);
    for (int i = 0; i < x->rank - 2; i++)
        TRY(mgx_window_dim(c, &window, i, dims[i + 2], mgx_shape_dim(w, i + 2), &dims[i + 2]));
    TRY(check_moves(c, dims));
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    return MGX_OK;
}

// --- compute ---

struct run {
    struct mgx_compute_call *c;
    struct mgx_unfold u;
    int64_t lens[MGX_MAX_RANK];
    int64_t in_channels, out_channels; // of one group
    int64_t offset_channels;           // of one offset group
    const double *weights;
    double *rows; // {in_channels * taps, step}
    int64_t step;
};

// What tap t of an offset group sees at a place, for each axis.
static void find_taps(const struct run *r, const double *offset, int64_t t, int64_t p,
                      struct mgx_taps *taps)
{
    const struct mgx_unfold *u = &r->u;
    int64_t tap[MGX_MAX_RANK], rest = p;
    mgx_unfold_tap(u, t, tap);
    for (int i = u->rank - 1; i >= 0; i--) {
        const struct mgx_window *w = &u->axis[i];
        const int64_t x = rest % w->out * w->stride - w->begin + tap[i] * w->dilation;
        rest /= w->out;
        taps[i] = mgx_linear_taps((double)x + offset[(t * u->rank + i) * u->places + p], w->in);
    }
}

// Fills rows of group g for places from .. from + count.
static void read_rows(const struct run *r, const double *x, const double *offset,
                      const double *mask, int64_t g, int64_t from, int64_t count)
{
    const struct mgx_unfold *u = &r->u;
    for (int64_t k = 0; k < r->in_channels * u->taps; k++) {
        const int64_t channel = g * r->in_channels + k / u->taps, t = k % u->taps;
        const int64_t og = channel / r->offset_channels;
        const double *moved = offset + og * u->taps * u->rank * u->places;
        for (int64_t p = from; p < from + count; p++) {
            struct mgx_taps taps[MGX_MAX_RANK];
            find_taps(r, moved, t, p, taps);
            const double v = mgx_sample(x + channel * u->plane, u->rank, r->lens, taps);
            r->rows[k * r->step + p - from] =
                mask ? v * mask[(og * u->taps + t) * u->places + p] : v;
        }
    }
}

static enum mgx_status convolve_image(const struct run *r, int64_t n)
{
    assert(n >= 0);
    struct mgx_compute_call *c = r->c;
    const struct mgx_tensor image = mgx_borrow_entry(c->in[0], n);
    const struct mgx_tensor moves = mgx_borrow_entry(c->in[2], n);
    struct mgx_tensor to = mgx_borrow_entry(c->out, n);
    const double *x = mgx_scratch_doubles(c, &image), *offset = mgx_scratch_doubles(c, &moves);
    const double *mask = NULL;
    if (c->in_count == 4) {
        const struct mgx_tensor scales = mgx_borrow_entry(c->in[3], n);
        mask = mgx_scratch_doubles(c, &scales);
    }
    double *y = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(&to.shape));
    if (!x || !offset || !y || (c->in_count == 4 && !mask))
        return mgx_fail_memory(c->diag);
    const int64_t depth = r->in_channels * r->u.taps, places = r->u.places;
    const int64_t groups = ((const struct deform_conv *)c->attr)->group;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t from = 0; from < places; from += r->step) {
            const int64_t count = mgx_min_i64(r->step, places - from);
            read_rows(r, x, offset, mask, g, from, count);
            mgx_gemm_doubles(r->out_channels, count, depth,
                             r->weights + g * r->out_channels * depth, depth, r->rows, r->step,
                             y + g * r->out_channels * places + from, places);
        }
    mgx_write_doubles(&to, y);
    return MGX_OK;
}

static void find_windows(struct run *r, const struct deform_conv *a, const struct mgx_shape *x,
                         const struct mgx_shape *w, const struct mgx_shape *y)
{
    const struct mgx_window_attr window = window_attr(a);
    r->u.rank = x->rank - 2;
    for (int i = 0; i < r->u.rank; i++) {
        r->lens[i] = x->lens[i + 2];
        r->u.axis[i] = mgx_window_at(&window, i, r->lens[i], w->lens[i + 2], y->lens[i + 2]);
    }
    mgx_unfold_count(&r->u);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct deform_conv *a = c->attr;
    const struct mgx_shape *x = &c->in[0]->shape, *w = &c->in[1]->shape, *y = &c->out->shape;
    if (mgx_shape_elements(y) == 0)
        return MGX_OK;
    struct run r = {.c = c,
                    .in_channels = w->lens[1],
                    .out_channels = w->lens[0] / a->group,
                    .offset_channels = mgx_max_i64(x->lens[1] / a->offset_group, 1)};
    find_windows(&r, a, x, w, y);
    const int64_t depth = mgx_max_i64(r.in_channels * r.u.taps, 1);
    r.step = mgx_min_i64(r.u.places, mgx_max_i64((1 << 20) / depth, 16));
    r.weights = mgx_scratch_doubles(c, c->in[1]);
    r.rows = MGX_NEW_ARRAY(c->scratch, double, depth *r.step);
    if (!r.weights || !r.rows)
        return mgx_fail_memory(c->diag);
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < x->lens[0]; n++) {
        TRY(convolve_image(&r, n));
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_deform_conv = {
    .name = "deform_conv",
    .meaning = "y = convolution of x with taps moved by offset and scaled by mask",
    .fields = fields,
    .attr_size = sizeof(struct deform_conv),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 4,
    .shape = shape,
    .compute = compute,
};
