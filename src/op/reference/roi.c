// SPDX-License-Identifier: MIT
// See roi.h.
#include "op/reference/roi.h"

#include <math.h>
#include <string.h>

// A result of one operation on floats, as a float operation gives it.
static double rounded(const struct mgx_roi_span *s, double x)
{
    return s->single ? (float)x : x;
}

bool mgx_roi_span_init(struct mgx_roi_span *s, const struct mgx_roialign *a, bool single,
                       double from, double to, int64_t bins, int64_t length)
{
    const bool half = strcmp(a->coordinate_transformation_mode, "half_pixel") == 0;
    *s = (struct mgx_roi_span){.single = single, .length = length};
    const double scale = rounded(s, a->spatial_scale), offset = half ? 0.5 : 0;
    const double end = rounded(s, rounded(s, to * scale) - offset);
    s->start = rounded(s, rounded(s, from * scale) - offset);
    double size = rounded(s, end - s->start);
    if (!half && size < 1)
        size = 1;
    s->bin = rounded(s, size / (double)bins);
    const double grid = a->sampling_ratio > 0 ? (double)a->sampling_ratio : ceil(s->bin);
    if (!isfinite(s->start) || !isfinite(size) || grid > MGX_ROI_SAMPLES_MAX)
        return false;
    s->grid = grid > 0 ? (int64_t)grid : 0;
    return true;
}

struct mgx_roi_pair mgx_roi_sample(const struct mgx_roi_span *s, int64_t bin, int64_t i)
{
    const double at = rounded(s, s->start + rounded(s, (double)bin * s->bin));
    const double step = rounded(s, ((double)i + 0.5) * s->bin);
    double x = rounded(s, at + rounded(s, step / (double)s->grid));
    struct mgx_roi_pair p = {0};
    if (!(x >= -1 && x <= (double)s->length))
        return p;
    x = x > 0 ? x : 0;
    p.low = (int64_t)x;
    p.high = p.low + 1;
    if (p.low >= s->length - 1) {
        p.low = p.high = s->length - 1;
        x = (double)p.low;
    }
    p.high_weight = rounded(s, x - (double)p.low);
    p.low_weight = rounded(s, 1 - p.high_weight);
    return p;
}
