// SPDX-License-Identifier: MIT
// grid_sample: reads x at the places a grid names, between elements if need be (ONNX GridSample).
//
//     x {n, c, d1 ... dk}, grid {n, o1 ... ok, k}  ->  y {n, c, o1 ... ok}
//
// The grid's coordinates run from -1 to 1, the innermost axis first; with align_corners they mean
// centres of the outermost elements, else their outer edges. What lies outside is 0, the nearest
// element, or the image in a mirror at the edge.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/reference/gemm.h"
#include "op/reference/sample.h"

enum mode { LINEAR, NEAREST, CUBIC };
enum padding { ZEROS, BORDER, REFLECTION };

struct grid_sample {
    int64_t mode, padding_mode;
    bool align_corners;
};

static const char *const modes[] = {"linear", "nearest", "cubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
static const struct mgx_field fields[] = {MGX_ENUM(struct grid_sample, mode, modes),
                                          MGX_ENUM(struct grid_sample, padding_mode, paddings),
                                          MGX_FLAG(struct grid_sample, align_corners),
                                          {0}};

// --- shape ---

static enum mgx_status check(struct mgx_shape_call *c)
{
    const struct grid_sample *a = c->attr;
    if (a->mode < LINEAR || a->mode > CUBIC || a->padding_mode < ZEROS ||
        a->padding_mode > REFLECTION)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: mode %" PRId64 " or padding_mode %" PRId64 " is unknown", c->op->name,
                        a->mode, a->padding_mode);
    TRY(mgx_require_number(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_rank(c, 0, 3, MGX_MAX_RANK));
    return mgx_require_rank(c, 1, c->in[0]->rank, c->in[0]->rank);
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(check(c));
    const struct mgx_shape *x = c->in[0], *grid = c->in[1];
    const int spatial = x->rank - 2;
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    TRY(mgx_require_fixed(c, 1, x->rank - 1, spatial));
    TRY(mgx_require_length(c, 1, 0, &dims[0]));
    for (int i = 0; i < spatial; i++)
        dims[i + 2] = mgx_shape_dim(grid, i + 1);
    *out = mgx_shape_from_dims(x->type, x->rank, dims);
    if (!mgx_shape_is_static(out) || mgx_shape_elements(out) == 0)
        return MGX_OK;
    for (int i = 0; i < spatial; i++)
        if (mgx_shape_dim(x, i + 2).max == 0)
            return mgx_fail(c->diag, MGX_INVALID, "%s: there is nothing to sample along axis %d",
                            c->op->name, i + 2);
    return MGX_OK;
}

// --- compute ---

// Mirrors v into low .. high.
static double reflect(double v, double low, double high)
{
    assert(low <= high);
    const double range = high - low;
    if (range <= 0)
        return low;
    double d = fmod(fabs(v - low), 2 * range);
    if (d > range)
        d = 2 * range - d;
    return low + d;
}

// A coordinate from -1 .. 1 to elements, brought inside as the padding asks.
static double place(const struct grid_sample *a, double g, int64_t length)
{
    assert(length > 0);
    const double n = (double)length;
    double x = a->align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    if (a->mode == NEAREST)
        x = nearbyint(x);
    const double low = a->align_corners ? 0 : -0.5, high = n - 1 - low;
    if (!isfinite(x))
        return a->padding_mode == ZEROS ? -2 : 0;
    if (x >= low && x <= high)
        return x;
    if (a->padding_mode == BORDER)
        return x < 0 ? 0 : n - 1;
    if (a->padding_mode == REFLECTION)
        return reflect(x, low, high);
    return x < -4 ? -4 : x > n + 4 ? n + 4 : x; // far outside is as good as outside
}

// An element index brought inside as the padding asks, or -1.
static int64_t inside(const struct grid_sample *a, int64_t at, int64_t length)
{
    assert(length > 0);
    if (at >= 0 && at < length)
        return at;
    if (a->padding_mode == ZEROS)
        return -1;
    if (a->padding_mode == REFLECTION) {
        const double low = a->align_corners ? 0 : -0.5;
        at = (int64_t)reflect((double)at, low, (double)length - 1 - low);
    }
    return at < 0 ? 0 : at >= length ? length - 1 : at;
}

static struct mgx_taps find_taps(const struct grid_sample *a, double g, int64_t length)
{
    const double x = place(a, g, length);
    const int64_t low = (int64_t)floor(x);
    struct mgx_taps t = {.count = a->mode == NEAREST ? 1 : a->mode == LINEAR ? 2 : 4};
    const int64_t first = a->mode == CUBIC ? low - 1 : low;
    for (int k = 0; k < t.count; k++) {
        const double distance = x - (double)(first + k);
        t.at[k] = inside(a, first + k, length);
        t.weight[k] = a->mode == NEAREST  ? 1
                      : a->mode == LINEAR ? 1 - fabs(distance)
                                          : mgx_cubic_weight(distance, -0.75);
    }
    return t;
}

struct run {
    const struct grid_sample *a;
    int spatial;
    int64_t lens[MGX_MAX_RANK]; // spatial lengths of x
    int64_t plane, places, channels;
};

static void sample_image(const struct run *r, const double *x, const double *grid, double *y)
{
    struct mgx_taps taps[MGX_MAX_RANK];
    for (int64_t p = 0; p < r->places; p++) {
        for (int i = 0; i < r->spatial; i++)
            taps[i] = find_taps(r->a, grid[p * r->spatial + r->spatial - 1 - i], r->lens[i]);
        for (int64_t c = 0; c < r->channels; c++)
            y[c * r->places + p] = mgx_sample(x + c * r->plane, r->spatial, r->lens, taps);
    }
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *x = &c->in[0]->shape, *y = &c->out->shape;
    if (mgx_shape_elements(y) == 0)
        return MGX_OK;
    struct run r = {.a = c->attr, .spatial = x->rank - 2, .channels = x->lens[1]};
    r.plane = r.places = 1;
    for (int i = 0; i < r.spatial; i++) {
        r.lens[i] = x->lens[i + 2];
        r.plane *= r.lens[i];
        r.places *= y->lens[i + 2];
    }
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int64_t n = 0; n < x->lens[0]; n++) {
        const struct mgx_tensor image = mgx_borrow_entry(c->in[0], n);
        const struct mgx_tensor grid = mgx_borrow_entry(c->in[1], n);
        struct mgx_tensor to = mgx_borrow_entry(c->out, n);
        const double *from = mgx_scratch_doubles(c, &image);
        const double *at = mgx_scratch_doubles(c, &grid);
        double *sum = MGX_NEW_ARRAY(c->scratch, double, r.channels *r.places);
        if (!from || !at || !sum)
            return mgx_fail_memory(c->diag);
        sample_image(&r, from, at, sum);
        mgx_write_doubles(&to, sum);
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_grid_sample = {
    .name = "grid_sample",
    .meaning = "y = x read at the places that grid names",
    .fields = fields,
    .attr_size = sizeof(struct grid_sample),
    .in_min = 2,
    .in_max = 2,
    .shape = shape,
    .compute = compute,
};
