// SPDX-License-Identifier: MIT
// Window geometry; see window.h.
#include "op/reference/window.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

// --- attributes ---

static struct mgx_ints list_of(const struct mgx_ins *ins, const char *name)
{
    return mgx_field_find(ins->op, name) ? mgx_ins_ints(ins, name) : (struct mgx_ints){NULL, 0};
}

static int64_t number_of(const struct mgx_ins *ins, const char *name, int64_t otherwise)
{
    return mgx_field_find(ins->op, name) ? mgx_ins_int(ins, name) : otherwise;
}

struct mgx_window_attr mgx_window_of(const struct mgx_ins *ins)
{
    assert(mgx_field_find(ins->op, "stride")); // else it does not slide
    const bool pools = mgx_field_find(ins->op, "dilations") != NULL;
    return (struct mgx_window_attr){.padding = mgx_ins_ints(ins, "padding"),
                                    .stride = mgx_ins_ints(ins, "stride"),
                                    .dilation = list_of(ins, pools ? "dilations" : "dilation"),
                                    .padding_mode =
                                        number_of(ins, "padding_mode", MGX_PADDING_GIVEN),
                                    .group = number_of(ins, "group", 1),
                                    .ceil = number_of(ins, "ceil_mode", 0) != 0};
}

bool mgx_window_is_explicit(const struct mgx_window_attr *a, int spatial)
{
    return a->padding_mode == MGX_PADDING_GIVEN && a->stride.count == spatial &&
           a->dilation.count == spatial &&
           (a->padding.count == spatial || a->padding.count == 2 * spatial);
}

bool mgx_window_is_unpadded(const struct mgx_window_attr *a)
{
    return a->padding_mode == MGX_PADDING_GIVEN && mgx_ints_all(a->padding, 0);
}

static enum mgx_status check_range(struct mgx_shape_call *c, const char *what, struct mgx_ints v,
                                   int64_t least)
{
    for (int i = 0; i < v.count; i++)
        if (v.v[i] < least || v.v[i] > INT32_MAX)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: %s %" PRId64 " is out of range %" PRId64 "..%d", c->op->name, what,
                            v.v[i], least, INT32_MAX);
    return MGX_OK;
}

static enum mgx_status check_counts(struct mgx_shape_call *c, const struct mgx_window_attr *a,
                                    int rank)
{
    const bool pads = a->padding_mode != MGX_PADDING_GIVEN || a->padding.count == rank ||
                      a->padding.count == 2 * rank;
    if (pads && a->stride.count == rank && a->dilation.count == rank)
        return MGX_OK;
    return mgx_fail(
        c->diag, MGX_INVALID,
        "%s: inconsistent attribute sizes: padding (%d), stride (%d), dilation (%d) for "
        "%d spatial axes",
        c->op->name, a->padding.count, a->stride.count, a->dilation.count, rank);
}

enum mgx_status mgx_window_check(struct mgx_shape_call *c, const struct mgx_window_attr *a,
                                 int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    if (a->padding_mode < MGX_PADDING_GIVEN || a->padding_mode > MGX_PADDING_SAME_UPPER)
        return mgx_fail(c->diag, MGX_INVALID, "%s: padding_mode %" PRId64 " is not 0, 1 or 2",
                        c->op->name, a->padding_mode);
    TRY(check_counts(c, a, rank));
    TRY(check_range(c, "stride", a->stride, 1));
    TRY(check_range(c, "dilation", a->dilation, 1));
    return check_range(c, "padding", a->padding, -INT32_MAX);
}

static int64_t begin_of(const struct mgx_window_attr *a, int i)
{
    return a->padding.v[i];
}

static int64_t end_of(const struct mgx_window_attr *a, int i)
{
    return a->padding.v[a->padding.count == a->stride.count ? i : a->stride.count + i];
}

static int64_t reach_of(const struct mgx_window_attr *a, int i, int64_t kernel)
{
    return (kernel - 1) * a->dilation.v[i] + 1; // both below 2^31
}

static int64_t divide_up(int64_t x, int64_t by)
{
    return x / by + (x % by > 0);
}

// --- forward ---

int64_t mgx_window_places(const struct mgx_window_attr *a, int i, int64_t in, int64_t kernel)
{
    const int64_t stride = a->stride.v[i];
    if (a->padding_mode != MGX_PADDING_GIVEN)
        return divide_up(in, stride);
    const int64_t begin = begin_of(a, i);
    const int64_t room = in + begin + end_of(a, i) - reach_of(a, i, kernel);
    if (room < 0)
        return in == 0 ? 0 : -1;
    if (!a->ceil)
        return room / stride + 1;
    const int64_t out = divide_up(room, stride) + 1;
    // A last place that starts in the padding behind the input would see nothing of it.
    return out > 1 && (out - 1) * stride >= in + begin ? out - 1 : out;
}

// Is the output as long as the input, whatever that is?
static bool keeps_length(const struct mgx_window_attr *a, int i, struct mgx_dim kernel)
{
    if (a->stride.v[i] != 1)
        return false;
    if (a->padding_mode != MGX_PADDING_GIVEN)
        return true;
    return kernel.min == kernel.max &&
           begin_of(a, i) + end_of(a, i) + 1 == reach_of(a, i, kernel.max);
}

// A length that follows from a named one has the formula as its name, "=(H-1)/2+1", so that two
// branches of one image are known to be as long as each other; NULL where the formula is another or
// too long. Models cannot name a length so: importers drop names that begin with '='.
static const char *name_of(struct mgx_shape_call *c, const struct mgx_window_attr *a, int i,
                           struct mgx_dim in, struct mgx_dim kernel)
{
    enum { LONGEST = 96 };
    if (!in.name || strlen(in.name) > LONGEST || kernel.min != kernel.max || a->ceil)
        return NULL;
    const int64_t stride = a->stride.v[i];
    const char *of = in.name + (in.name[0] == '=');
    if (a->padding_mode != MGX_PADDING_GIVEN)
        return mgx_arena_printf(c->arena, "=up(%s/%lld)", of, (long long)stride);
    const int64_t extra = begin_of(a, i) + end_of(a, i) - reach_of(a, i, kernel.max);
    return mgx_arena_printf(c->arena, "=(%s%+lld)/%lld+1", of, (long long)extra, (long long)stride);
}

enum mgx_status mgx_window_dim(struct mgx_shape_call *c, const struct mgx_window_attr *a, int i,
                               struct mgx_dim in, struct mgx_dim kernel, struct mgx_dim *out)
{
    if (kernel.min > INT32_MAX || kernel.max == 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: kernel length %" PRId64 " along spatial axis %d is out of range 1..%d",
                        c->op->name, kernel.min, i, INT32_MAX);
    if (a->padding_mode == MGX_PADDING_GIVEN && (begin_of(a, i) < 0 || end_of(a, i) < 0))
        return mgx_fail(c->diag, MGX_INVALID, "%s: negative padding along spatial axis %d",
                        c->op->name, i);
    const int64_t widest = mgx_min_i64(kernel.max, INT32_MAX);
    const int64_t least = mgx_window_places(a, i, in.min, widest);
    // An empty axis has no places, where one that is too short has not enough: so "least" may be
    // the larger one.
    const int64_t most =
        mgx_max_i64(mgx_window_places(a, i, in.max, mgx_max_i64(kernel.min, 1)), least);
    if (most < 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: not enough padding for the given kernel size: %" PRId64
                        " inputs along spatial axis %d, kernel reaches over %" PRId64,
                        c->op->name, in.max, i, reach_of(a, i, mgx_max_i64(kernel.min, 1)));
    *out = (struct mgx_dim){.min = mgx_max_i64(least, 0),
                            .max = mgx_min_i64(most, MGX_DIM_ANY),
                            .name = name_of(c, a, i, in, kernel)};
    if (keeps_length(a, i, kernel))
        *out = in; // and with it the dimension's name
    return MGX_OK;
}

// Padding of a window whose lengths are set.
static void set_padding(struct mgx_window *w, const struct mgx_window_attr *a, int i)
{
    if (a->padding_mode == MGX_PADDING_GIVEN) {
        w->begin = begin_of(a, i);
        w->end = end_of(a, i);
        return;
    }
    const int64_t seen = (w->out - 1) * w->stride + reach_of(a, i, w->kernel);
    const int64_t total = mgx_max_i64(seen - w->in, 0), half = total / 2;
    w->begin = a->padding_mode == MGX_PADDING_SAME_UPPER ? half : total - half;
    w->end = total - w->begin;
}

struct mgx_window mgx_window_at(const struct mgx_window_attr *a, int i, int64_t in, int64_t kernel,
                                int64_t out)
{
    struct mgx_window w = {.in = in,
                           .kernel = kernel,
                           .stride = a->stride.v[i],
                           .dilation = a->dilation.v[i],
                           .out = out};
    set_padding(&w, a, i);
    return w;
}

// --- transposed ---

// False when the length does not fit.
static bool back_length(const struct mgx_window_attr *a, int i, int64_t in, int64_t kernel,
                        int64_t *out)
{
    if (in == 0 && a->padding_mode == MGX_PADDING_GIVEN) {
        *out = 0;
        return true;
    }
    if (a->padding_mode != MGX_PADDING_GIVEN)
        return mgx_mul_i64(in, a->stride.v[i], out);
    int64_t span;
    if (!mgx_mul_i64(in - 1, a->stride.v[i], &span) ||
        !mgx_add_i64(span, reach_of(a, i, kernel) - begin_of(a, i) - end_of(a, i), out))
        return false;
    return true;
}

enum mgx_status mgx_window_back_dim(struct mgx_shape_call *c, const struct mgx_window_attr *a,
                                    int i, struct mgx_dim in, struct mgx_dim kernel,
                                    struct mgx_dim *out)
{
    if (kernel.min > INT32_MAX || kernel.max == 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: kernel length %" PRId64 " along spatial axis %d is out of range 1..%d",
                        c->op->name, kernel.min, i, INT32_MAX);
    const int64_t widest = mgx_min_i64(kernel.max, INT32_MAX);
    const bool open = in.min != in.max || kernel.min != kernel.max;
    int64_t least = 0, most = 0;
    if (!back_length(a, i, in.min, mgx_max_i64(kernel.min, 1), &least) ||
        !back_length(a, i, in.max, widest, &most)) {
        if (!open)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: %" PRId64 " inputs along spatial axis %d at stride %" PRId64
                            " make an output that is too long",
                            c->op->name, in.max, i, a->stride.v[i]);
        most = MGX_DIM_ANY;
    }
    if (open && in.min == 0) // no input makes no output, whatever the padding
        most = mgx_max_i64(most, 0);
    if (most < 0)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: padding leaves an output of length %" PRId64 " along spatial axis %d",
                        c->op->name, most, i);
    *out = (struct mgx_dim){.min = mgx_max_i64(mgx_min_i64(least, most), 0),
                            .max = open ? mgx_min_i64(most, MGX_DIM_ANY) : most};
    return MGX_OK;
}

struct mgx_window mgx_window_back_at(const struct mgx_window_attr *a, int i, int64_t in,
                                     int64_t kernel, int64_t out)
{
    return mgx_window_at(a, i, out, kernel, in);
}
