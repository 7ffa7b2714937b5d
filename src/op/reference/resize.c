// SPDX-License-Identifier: MIT
// Resizing; see resize.h.
//
// Along one axis every output is a weighted sum of inputs left+first .. left+last, where left is
// the input just before its place. With antialias a shrinking axis stretches the filter by 1/scale.
#include "op/reference/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "op/reference/sample.h"

// --- places ---

// Length of the output before rounding down, which is what the definitions use.
static double exact_out(const struct mgx_resize_axis *a)
{
    return (double)a->in * a->up / a->down;
}

static double half_pixel(const struct mgx_resize_axis *a, int64_t o)
{
    return ((double)o + 0.5) * a->down / a->up - 0.5;
}

static double half_pixel_symmetric(const struct mgx_resize_axis *a, int64_t o)
{
    return (double)a->in / 2 * (1 - (double)a->out / exact_out(a)) + half_pixel(a, o);
}

static double pytorch_half_pixel(const struct mgx_resize_axis *a, int64_t o)
{
    return a->out > 1 ? half_pixel(a, o) : 0;
}

static double align_corners(const struct mgx_resize_axis *a, int64_t o)
{
    return a->out == 1 ? 0 : (double)o * (double)(a->in - 1) / (exact_out(a) - 1);
}

static double asymmetric(const struct mgx_resize_axis *a, int64_t o)
{
    return (double)o * a->down / a->up;
}

static double tf_half_pixel_for_nn(const struct mgx_resize_axis *a, int64_t o)
{
    return ((double)o + 0.5) * a->down / a->up;
}

static double tf_crop_and_resize(const struct mgx_resize_axis *a, int64_t o)
{
    const double last = (double)(a->in - 1), out = exact_out(a);
    if (out == 1)
        return (a->start + a->end) * last / 2;
    return a->start * last + (double)o * (a->end - a->start) * last / (out - 1);
}

// The same in single precision, operation by operation as other engines have it. Interpolation
// shows every last bit of a place: 300 elements from the origin a place rounded to a float moves
// the result by 1e-5 of a step, far more than anything that follows. Nearest keeps the exact ratio,
// for there a place on the border must not fall to the other side.

static float scale_of(const struct mgx_resize_axis *a)
{
    return (float)(a->up / a->down);
}

static double single_half_pixel(const struct mgx_resize_axis *a, int64_t o)
{
    return ((float)o + 0.5f) / scale_of(a) - 0.5f;
}

static double single_pytorch(const struct mgx_resize_axis *a, int64_t o)
{
    return a->out > 1 ? single_half_pixel(a, o) : 0;
}

static double single_align_corners(const struct mgx_resize_axis *a, int64_t o)
{
    return a->out == 1 ? 0 : (float)o * (float)(a->in - 1) / (float)(exact_out(a) - 1);
}

static double single_asymmetric(const struct mgx_resize_axis *a, int64_t o)
{
    return (float)o / scale_of(a);
}

// --- rounding ---

static double prefer_floor(double x)
{
    return ceil(x - 0.5);
}

static double prefer_ceil(double x)
{
    return floor(x + 0.5);
}

// --- names ---

static const struct {
    const char *name;
    double (*place)(const struct mgx_resize_axis *a, int64_t o);
    double (*single)(const struct mgx_resize_axis *a, int64_t o); // to interpolate at
} places[] = {
    {"half_pixel", half_pixel, single_half_pixel},
    {"half_pixel_symmetric", half_pixel_symmetric, half_pixel_symmetric},
    {"pytorch_half_pixel", pytorch_half_pixel, single_pytorch},
    {"align_corners", align_corners, single_align_corners},
    {"asymmetric", asymmetric, single_asymmetric},
    {"tf_half_pixel_for_nn", tf_half_pixel_for_nn, tf_half_pixel_for_nn},
    {"tf_crop_and_resize", tf_crop_and_resize, tf_crop_and_resize},
};

static const struct {
    const char *name;
    double (*round)(double x);
} roundings[] = {
    {"round_prefer_floor", prefer_floor},
    {"round_prefer_ceil", prefer_ceil},
    {"floor", floor},
    {"ceil", ceil},
};

static const char *const modes[] = {"nearest", "linear", "cubic"};

bool mgx_resize_how_find(const struct mgx_resize *a, enum mgx_type type, struct mgx_resize_how *out,
                         const char **wrong)
{
    *out = (struct mgx_resize_how){.attr = a};
    int mode = 0;
    while (mode < MGX_COUNT(modes) && strcmp(modes[mode], a->mode) != 0)
        mode++;
    for (int i = 0; i < MGX_COUNT(places); i++)
        if (strcmp(places[i].name, a->coordinate_transformation_mode) == 0)
            out->place = mode == MGX_RESIZE_NEAREST || a->antialias || type == MGX_DOUBLE
                             ? places[i].place
                             : places[i].single;
    for (int i = 0; i < MGX_COUNT(roundings); i++)
        if (strcmp(roundings[i].name, a->nearest_mode) == 0)
            out->round = roundings[i].round;
    *wrong = mode == MGX_COUNT(modes) ? a->mode
             : !out->place            ? a->coordinate_transformation_mode
             : !out->round            ? a->nearest_mode
                                      : NULL;
    out->mode = (enum mgx_resize_mode)mode;
    out->crops = out->place == tf_crop_and_resize;
    return !*wrong;
}

// --- taps ---

static int64_t clamp(double x, int64_t length)
{
    assert(length > 0);
    return !(x > 0) ? 0 : x < (double)length ? (int64_t)x : length - 1;
}

static double filter(const struct mgx_resize_how *how, double t)
{
    if (how->mode == MGX_RESIZE_CUBIC)
        return mgx_cubic_weight(t, how->attr->cubic_coeff_a);
    return fabs(t) < 1 ? 1 - fabs(t) : 0;
}

// No filter reaches further: a scale is at least 1 / in, or there would be no output.
static int64_t farthest(const struct mgx_resize_axis *a)
{
    assert(a->in >= 0);
    return 2 * a->in + 4;
}

// With antialias a shrinking axis stretches the filter.
static double squeeze_of(const struct mgx_resize_how *how, const struct mgx_resize_axis *a)
{
    const double scale = a->up / a->down;
    return how->attr->antialias && scale < 1 ? scale : 1;
}

// Filter width on each side. What lies beyond the input's ends counts too: the ends stand for it.
static int64_t reach_of(const struct mgx_resize_how *how, const struct mgx_resize_axis *a)
{
    const double reach = (how->mode == MGX_RESIZE_CUBIC ? 2 : 1) / squeeze_of(how, a);
    return (int64_t)fmin(ceil(reach), (double)farthest(a));
}

int64_t mgx_resize_tap_count(const struct mgx_resize_how *how, const struct mgx_resize_axis *a)
{
    return how->mode == MGX_RESIZE_NEAREST ? 0 : 2 * reach_of(how, a);
}

void mgx_resize_weigh(const struct mgx_resize_how *how, const struct mgx_resize_axis *a, int64_t o,
                      struct mgx_resize_taps *t)
{
    const double squeeze = squeeze_of(how, a);
    assert(t->weights && squeeze > 0);
    const int64_t reach = reach_of(how, a);
    // Far outside everything reads the edge: no need to go further than the filter reaches.
    const double low = -2.0 - (double)reach, high = (double)(a->in + reach) + 2;
    double x = how->place(a, o);
    x = !(x > low) ? low : x < high ? x : high;
    const int64_t left = (int64_t)ceil(x) - 1;
    double sum = 0;
    t->first = left - reach + 1;
    t->count = 2 * reach;
    assert(t->count <= 2 * farthest(a)); // the room for weights
    for (int64_t k = 0; k < t->count; k++) {
        const int64_t at = t->first + k;
        const bool drop = how->attr->exclude_outside && (at < 0 || at >= a->in);
        t->weights[k] = drop ? 0 : filter(how, ((double)at - x) * squeeze);
        sum += t->weights[k];
    }
    const bool uneven = squeeze < 1 || how->attr->exclude_outside;
    for (int64_t k = 0; k < t->count && uneven && sum != 0; k++)
        t->weights[k] /= sum;
}

bool mgx_resize_is_outside(const struct mgx_resize_how *how, const struct mgx_resize_axis *a,
                           int64_t o)
{
    const double x = how->place(a, o);
    return !(x >= 0 && x <= (double)(a->in - 1));
}

// --- passes ---

// One axis of nearest: {outer, in, inner} to {outer, out, inner}.
static void pick(const struct mgx_resize_how *how, const struct mgx_resize_axis *a, int64_t outer,
                 int64_t inner, const union mgx_word *x, union mgx_word *y)
{
    for (int64_t o = 0; o < a->out; o++) {
        const int64_t at = clamp(how->round(how->place(a, o)), a->in);
        for (int64_t k = 0; k < outer; k++)
            memcpy(y + (k * a->out + o) * inner, x + (k * a->in + at) * inner,
                   (size_t)inner * sizeof *y);
    }
}

// One axis of interpolation.
static void blend(const struct mgx_resize_how *how, const struct mgx_resize_axis *a, int64_t outer,
                  int64_t inner, const union mgx_word *x, union mgx_word *y,
                  struct mgx_resize_taps *t)
{
    assert(how->mode != MGX_RESIZE_NEAREST && outer >= 0 && inner >= 0);
    for (int64_t o = 0; o < a->out; o++) {
        mgx_resize_weigh(how, a, o, t);
        for (int64_t k = 0; k < outer; k++) {
            union mgx_word *to = y + (k * a->out + o) * inner;
            for (int64_t i = 0; i < inner; i++)
                to[i].f = 0;
            for (int64_t n = 0; n < t->count; n++) {
                const int64_t at = clamp((double)(t->first + n), a->in);
                const union mgx_word *from = x + (k * a->in + at) * inner;
                const double weight = t->weights[n];
                for (int64_t i = 0; i < inner && weight != 0; i++)
                    to[i].f += weight * from[i].f;
            }
        }
    }
}

// Does the axis stay as it is, whatever the mode?
static bool is_identity(const struct mgx_resize_how *how, const struct mgx_resize_axis *a)
{
    for (int64_t o = 0; o < a->out && a->in == a->out; o++) {
        const double x = how->place(a, o);
        if (how->mode == MGX_RESIZE_NEAREST ? clamp(how->round(x), a->in) != o : x != (double)o)
            return false;
    }
    return a->in == a->out;
}

// Resizes axis `i` of *x, whose lengths are *now.
static enum mgx_status run_axis(struct mgx_compute_call *c, const struct mgx_resize_how *how,
                                const struct mgx_resize_axis *a, int i, struct mgx_shape *now,
                                union mgx_word **x)
{
    assert(i >= 0 && i < now->rank && now->lens[i] == a->in);
    int64_t outer = 1, inner = 1;
    for (int k = 0; k < now->rank; k++) {
        outer *= k < i ? now->lens[k] : 1;
        inner *= k > i ? now->lens[k] : 1;
    }
    union mgx_word *y = mgx_zero_words(c, outer * a->out * inner);
    struct mgx_resize_taps taps = {.weights = MGX_NEW_ARRAY(c->scratch, double, 2 * farthest(a))};
    if (!y || !taps.weights)
        return mgx_fail_memory(c->diag);
    if (how->mode == MGX_RESIZE_NEAREST)
        pick(how, a, outer, inner, *x, y);
    else
        blend(how, a, outer, inner, *x, y, &taps);
    now->lens[i] = a->out;
    *x = y;
    return MGX_OK;
}

// Everything whose place is outside the input along some axis.
static void extrapolate(const struct mgx_resize_how *how, const struct mgx_resize_axis *axes,
                        const struct mgx_shape *s, bool ints, union mgx_word *y)
{
    int64_t at[MGX_MAX_RANK] = {0};
    do {
        bool outside = false;
        for (int i = 0; i < s->rank; i++)
            outside |= mgx_resize_is_outside(how, &axes[i], at[i]);
        if (outside && ints)
            y->i = (int64_t)fmax(-0x1p62, fmin(0x1p62, how->attr->extrapolation_value));
        else if (outside)
            y->f = how->attr->extrapolation_value;
        y++;
    } while (mgx_shape_next(s, at));
}

enum mgx_status mgx_resize_run(struct mgx_compute_call *c, const struct mgx_resize_how *how,
                               const struct mgx_resize_axis *axes)
{
    const struct mgx_shape *s = &c->out->shape;
    const bool ints = how->mode == MGX_RESIZE_NEAREST && mgx_computes_as_int(s->type);
    union mgx_word *x = mgx_scratch_words(c, c->in[0], ints);
    if (!x)
        return MGX_NO_MEMORY;
    // Axes that shrink come first: nothing in between is larger than both ends.
    struct mgx_shape now = mgx_shape_make(s->type, s->rank, c->in[0]->shape.lens);
    for (int grows = 0; grows < 2; grows++)
        for (int i = 0; i < s->rank; i++)
            if ((axes[i].out > axes[i].in) == grows && !is_identity(how, &axes[i]))
                TRY(run_axis(c, how, &axes[i], i, &now, &x));
    assert(mgx_shape_same_lens(&now, s)); // every axis had its turn
    if (how->crops)
        extrapolate(how, axes, s, ints, x);
    mgx_write_words(c->out, x, ints);
    return MGX_OK;
}
