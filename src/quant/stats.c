// SPDX-License-Identifier: MIT
// Collecting what values are like, and choosing a range for them; see stats.h.
//
// Except for `max`, a method looks for one threshold t of magnitudes: the range is what was seen,
// cut at -t and t.
//
//     percentile   all but (100 - p) percent of the values are within t
//     entropy      the histogram cut at t and the same one in `levels` steps differ least
//                  (Kullback-Leibler: sum p log(p / q))
//     error        least sum of squares: step^2 / 12 of what is within t, (|v| - t)^2 of the rest
#include "quant/stats.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

enum { BINS = MGX_STATS_BINS, HALF = BINS / 2 };

enum mgx_status mgx_stats_init(struct mgx_stats *s, struct mgx_arena *arena, int64_t channels,
                               struct mgx_diag *diag)
{
    assert(channels >= 0);
    *s = (struct mgx_stats){.channels = channels, .bins = MGX_NEW_ARRAY(arena, int64_t, BINS)};
    double *rooms = MGX_NEW_ARRAY(arena, double, 4 * channels);
    if (!s->bins || !rooms)
        return mgx_fail_memory(diag);
    s->lows = rooms;
    s->highs = rooms + channels;
    s->sums = rooms + 2 * channels;
    s->squares = rooms + 3 * channels;
    return MGX_OK;
}

// --- collecting ---

static void double_reach(struct mgx_stats *s)
{
    int64_t bins[BINS] = {0};
    for (int i = 0; i < BINS; i++)
        bins[BINS / 4 + i / 2] += s->bins[i];
    memcpy(s->bins, bins, sizeof bins);
    s->reach *= 2;
}

static void reach_for(struct mgx_stats *s, double size)
{
    int exponent;
    if (s->reach == 0) {
        frexp(size, &exponent);
        s->reach = ldexp(1, exponent); // size < reach <= 2 size
    }
    while (size >= s->reach)
        double_reach(s);
}

static void add_value(struct mgx_stats *s, double v)
{
    if (!isfinite(v)) {
        s->strange++;
        return;
    }
    s->count++;
    if (v == 0) {
        s->zeros++;
        return;
    }
    s->low = v < s->low ? v : s->low;
    s->high = v > s->high ? v : s->high;
    if (!(fabs(v) < s->reach))
        reach_for(s, fabs(v));
    s->bins[(int)((v / s->reach + 1) * HALF) & (BINS - 1)]++;
}

static void add_to_channel(struct mgx_stats *s, int64_t c, double v)
{
    if (!isfinite(v))
        return;
    s->lows[c] = v < s->lows[c] ? v : s->lows[c];
    s->highs[c] = v > s->highs[c] ? v : s->highs[c];
    s->sums[c] += v;
    s->squares[c] += v * v;
}

enum mgx_status mgx_stats_add(struct mgx_stats *s, const struct mgx_tensor *t, int axis,
                              struct mgx_diag *diag)
{
    assert(s->bins);
    assert(!s->channels || (axis >= 0 && axis < t->shape.rank));
    struct mgx_tensor packed = {0};
    TRY(mgx_tensor_pack(&packed, t, diag));
    const struct mgx_shape *shape = &packed.shape;
    const int64_t count = mgx_shape_elements(shape);
    const int64_t inner = mgx_product(shape->lens + axis + 1, shape->rank - axis - 1);
    const bool by_channel =
        s->channels > 0 && axis < shape->rank && shape->lens[axis] == s->channels;
    for (int64_t i = 0; i < count; i++) {
        const double v = shape->type == MGX_FLOAT ? (double)((const float *)packed.data)[i]
                                                  : mgx_load_double(shape->type, packed.data, i);
        add_value(s, v);
        if (by_channel)
            add_to_channel(s, i / inner % s->channels, v);
    }
    if (by_channel)
        s->per_channel += count / s->channels;
    mgx_tensor_release(&packed);
    return MGX_OK;
}

// --- choosing ---

// How often magnitudes lie in each of HALF bins, [0, reach); returns how many of them are needed.
static int magnitudes(const struct mgx_stats *s, double *out)
{
    int used = 0;
    for (int i = 0; i < HALF; i++) {
        out[i] = (double)(s->bins[HALF + i] + s->bins[HALF - 1 - i]);
        used = out[i] > 0 ? i + 1 : used;
    }
    return used;
}

static double by_percentile(const struct mgx_stats *s, const double *h, int used, double percentile)
{
    double left = (double)s->count * (1 - percentile / 100);
    int i = used;
    while (i > 1 && left >= h[i - 1])
        left -= h[--i];
    return s->reach * i / HALF;
}

// The divergence between the first `n` bins, what lies beyond added to the last, and the same bins
// in `steps` steps, each of which spreads over the bins of it that are not empty.
static double divergence(const double *h, int n, int steps, double beyond, double total)
{
    double sum = 0;
    for (int k = 0; k < steps; k++) {
        const int from = (int)((int64_t)n * k / steps), to = (int)((int64_t)n * (k + 1) / steps);
        double in_step = 0;
        int filled = 0;
        for (int i = from; i < to; i++) {
            in_step += h[i];
            filled += h[i] > 0;
        }
        for (int i = from; i < to; i++) {
            const double p = h[i] + (i == n - 1 ? beyond : 0);
            if (p > 0) // an empty last step holds a little, lest what was cut off costs nothing
                sum += p / total * log(p * (filled ? filled : 1) / fmax(in_step, 1e-3));
        }
    }
    // Of what is left after the cut the shares are of another whole.
    return total > beyond ? sum + log((total - beyond) / total) : INFINITY;
}

static double by_entropy(const struct mgx_stats *s, const double *h, int used, int steps)
{
    enum { STRIDE = 4 };
    double total = 0, within = 0, least = INFINITY;
    int best = used, counted = 0;
    for (int i = 0; i < used; i++)
        total += h[i];
    for (int n = steps; n < used + STRIDE; n += STRIDE) {
        const int end = n < used ? n : used;
        for (; counted < end; counted++)
            within += h[counted];
        const double d = divergence(h, end, steps, total - within, total);
        if (d <= least) {
            least = d;
            best = end;
        }
    }
    return s->reach * best / HALF;
}

static double square_error(const double *h, int used, double width, double t, int steps)
{
    const double step = t / steps;
    double sum = 0;
    for (int i = 0; i < used; i++) {
        const double size = (i + 0.5) * width;
        sum += h[i] * (size <= t ? step * step / 12 : (size - t) * (size - t));
    }
    return sum;
}

static double by_error(const struct mgx_stats *s, const double *h, int used, int steps)
{
    const double width = s->reach / HALF, most = width * used;
    double best = most, least = INFINITY;
    for (int percent = 2; percent <= 100; percent++) {
        const double t = most * percent / 100, e = square_error(h, used, width, t, steps);
        if (e <= least) {
            least = e;
            best = t;
        }
    }
    return best;
}

struct mgx_recipe_input mgx_stats_range(const struct mgx_stats *s, enum mgx_quant_method method,
                                        double percentile, int levels)
{
    assert(levels > 0 && method >= 0 && method < MGX_QUANT_METHODS);
    struct mgx_recipe_input range = {s->count > 0, s->low, s->high};
    double h[HALF], t = INFINITY;
    if (!range.known || s->reach == 0 || method == MGX_QUANT_MAX)
        return range;
    const int used = magnitudes(s, h);
    // Of a range on one side of zero all levels count, of one on both sides half of them.
    const int steps = levels == 255 && s->low < 0 && s->high > 0 ? 127 : levels;
    if (method == MGX_QUANT_PERCENTILE)
        t = by_percentile(s, h, used, percentile);
    else if (method == MGX_QUANT_ENTROPY)
        t = by_entropy(s, h, used, steps);
    else
        t = by_error(s, h, used, steps);
    range.low = fmax(range.low, -t);
    range.high = fmin(range.high, t);
    return range;
}
