// SPDX-License-Identifier: MIT
// pooling: average, max and lpnorm over sliding windows of any number of spatial axes.
//
// Padding never wins a maximum and adds nothing to a sum; it counts in an average only with
// count_include_pad, and only as far as the padding reaches. lpnorm is (sum |x|^p)^(1/p), and 1 for
// p = 0. A maximum of integers is taken in 64 bits, everything else in double.
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "op/reference/gemm.h"
#include "op/reference/lanes.h"
#include "op/reference/pool.h"

enum mode { AVERAGE, MAX, LPNORM };

struct pooling {
    int64_t mode;
    struct mgx_ints padding;
    int64_t padding_mode;
    struct mgx_ints stride, lengths, dilations;
    bool ceil_mode, count_include_pad;
    int64_t lp_order;
    bool dyn_global;
};

static const char *const modes[] = {"average", "max", "lpnorm", NULL};
static const struct mgx_field fields[] = {MGX_ENUM(struct pooling, mode, modes),
                                          MGX_INTS(struct pooling, padding),
                                          MGX_INT(struct pooling, padding_mode),
                                          MGX_INTS(struct pooling, stride),
                                          MGX_INTS(struct pooling, lengths),
                                          MGX_INTS(struct pooling, dilations),
                                          MGX_FLAG(struct pooling, ceil_mode),
                                          MGX_FLAG(struct pooling, count_include_pad),
                                          MGX_INT(struct pooling, lp_order),
                                          MGX_FLAG(struct pooling, dyn_global),
                                          {0}};

static const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
static const struct pooling defaults = {.padding = {zeros, 2},
                                        .stride = {ones, 2},
                                        .lengths = {ones, 2},
                                        .dilations = {ones, 2},
                                        .lp_order = 2};

static struct mgx_pool_attr pool_attr(const struct pooling *a)
{
    return (struct mgx_pool_attr){.padding = a->padding,
                                  .stride = a->stride,
                                  .lengths = a->lengths,
                                  .dilations = a->dilations,
                                  .padding_mode = a->padding_mode,
                                  .ceil_mode = a->ceil_mode,
                                  .global = a->dyn_global};
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct pooling *a = c->attr;
    if (a->mode < AVERAGE || a->mode > LPNORM)
        return mgx_fail(c->diag, MGX_INVALID, "%s: mode %" PRId64 " is unknown", c->op->name,
                        a->mode);
    if (a->mode == LPNORM && (a->lp_order < 0 || a->lp_order > INT32_MAX))
        return mgx_fail(c->diag, MGX_INVALID, "%s: lp_order %" PRId64 " is out of range 0..%d",
                        c->op->name, a->lp_order, INT32_MAX);
    const struct mgx_pool_attr pool = pool_attr(a);
    return mgx_pool_shape(c, &pool, out);
}

// --- folds over one region ---

static double add_up(const struct mgx_region *r, const double *x)
{
    assert(r->padded >= r->seen);
    int64_t at[MGX_MAX_RANK] = {0}, offset = r->start;
    const int64_t n = r->count[r->rank - 1], step = r->step[r->rank - 1];
    double sum = 0;
    do {
        for (int64_t i = 0; i < n; i++)
            sum += x[offset + i * step];
    } while (mgx_region_next(r, at, &offset));
    return sum;
}

static double norm(const struct mgx_region *r, const double *x, double p)
{
    assert(r->rank > 0);
    int64_t at[MGX_MAX_RANK] = {0}, offset = r->start;
    const int64_t n = r->count[r->rank - 1], step = r->step[r->rank - 1];
    double sum = 0;
    do {
        for (int64_t i = 0; i < n; i++) {
            const double v = fabs(x[offset + i * step]);
            sum += p == 2 ? v * v : p == 1 ? v : pow(v, p);
        }
    } while (mgx_region_next(r, at, &offset));
    return p == 0 ? 1 : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

static double largest(const struct mgx_region *r, const double *x)
{
    assert(r->seen > 0);
    int64_t at[MGX_MAX_RANK] = {0}, offset = r->start;
    const int64_t n = r->count[r->rank - 1], step = r->step[r->rank - 1];
    double best = x[offset];
    do {
        for (int64_t i = 0; i < n; i++) {
            const double v = x[offset + i * step];
            best = v > best || isnan(v) ? v : best;
        }
    } while (mgx_region_next(r, at, &offset));
    return best;
}

static int64_t largest_int(const struct mgx_region *r, const int64_t *x, enum mgx_type type)
{
    assert(r->seen > 0);
    int64_t at[MGX_MAX_RANK] = {0}, offset = r->start;
    const int64_t n = r->count[r->rank - 1], step = r->step[r->rank - 1];
    int64_t best = x[offset];
    do {
        for (int64_t i = 0; i < n; i++) {
            const int64_t v = x[offset + i * step];
            best = mgx_int_order(type, v) > mgx_int_order(type, best) ? v : best;
        }
    } while (mgx_region_next(r, at, &offset));
    return best;
}

// --- compute ---

static double pool(const struct pooling *a, const struct mgx_region *r, const double *x)
{
    switch ((enum mode)a->mode) {
    case AVERAGE: {
        const int64_t count = a->count_include_pad ? r->padded : r->seen;
        return count ? (r->seen ? add_up(r, x) : 0) / (double)count : 0;
    }
    case MAX:
        return largest(r, x);
    case LPNORM:
        break;
    }
    return r->seen ? norm(r, x, (double)a->lp_order) : a->lp_order == 0;
}

// What a maximum over nothing but padding is.
static union mgx_word nothing(enum mgx_type type, bool ints)
{
    union mgx_word w;
    if (ints)
        w.i = type == MGX_INT64 ? INT64_MIN : (int64_t)mgx_type_lowest(type);
    else
        w.f = mgx_type_lowest(type);
    return w;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct pooling *a = c->attr;
    const enum mgx_type type = c->in[0]->shape.type;
    const bool ints = a->mode == MAX && mgx_computes_as_int(type);
    const int64_t count = mgx_shape_elements(&c->out->shape);
    if (count == 0)
        return MGX_OK;
    const struct mgx_pool_attr attr = pool_attr(a);
    struct mgx_pool_walk walk;
    mgx_pool_walk_init(&walk, &attr, &c->in[0]->shape, &c->out->shape);
    const union mgx_word *x = mgx_scratch_words(c, c->in[0], ints);
    union mgx_word *y = mgx_zero_words(c, count), *to = y;
    if (!x || !y)
        return MGX_NO_MEMORY;
    int64_t at[MGX_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++, to++, mgx_pool_step(&walk, at)) {
        const union mgx_word *plane = x + i / walk.places * walk.plane;
        struct mgx_region r;
        mgx_region_at(&r, walk.axis, walk.rank, at);
        if (a->mode == MAX && r.seen == 0)
            *to = nothing(type, ints);
        else if (ints)
            to->i = largest_int(&r, &plane->i, type);
        else
            to->f = pool(a, &r, &plane->f);
    }
    mgx_write_words(c->out, y, ints);
    return MGX_OK;
}

const struct mgx_op mgx_op_pooling = {
    .name = "pooling",
    .meaning = "y = average, maximum or norm of x over a sliding window",
    .fields = fields,
    .attr_size = sizeof(struct pooling),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_CHANNELS_LAST,
    .shape = shape,
    .compute = compute,
};
