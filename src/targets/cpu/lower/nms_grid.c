// SPDX-License-Identifier: MIT
// Selected boxes by where they lie, so that a candidate is held against those near it.
//
//     a grid over all boxes; a box is listed in every cell that it touches
//     candidate:  m x m points inside it  ->  their cells  ->  the boxes listed there
//
// Boxes that overlap by more than iou share more than that part of either's width and height. m
// points divide a side into m + 1 parts; where these are no wider than iou of it, what the two
// share has one of the points in it, in both directions, so the other box touches that point's
// cell. Detectors push classes aside before they suppress them, so most boxes are far from most
// others.
//
// Holds: the same answer as holding it against all of them. Cells are found by subtracting and
// multiplying, which keep order, and a box is listed some roundings wider than it is; so a point
// that is rounded out of a box is still in one of its cells. Cost: O(1) cells a box, since a cell
// is at least as large as boxes are on average.
#include "targets/cpu/lower/nms_grid.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { SIDE = 64, MOST_POINTS = 4 };

struct cell {
    float *side[MGX_BOX_FIELDS]; // one allocation, `capacity` of each
    int64_t count, capacity;
};

struct cpu_nms_grid {
    mgx_box_overlaps overlaps;
    float iou, low[2], scale[2], wider;
    int points;
    struct cell cells[SIDE * SIDE];
};

void cpu_nms_grid_destroy(struct cpu_nms_grid *g)
{
    for (int i = 0; g && i < SIDE * SIDE; i++)
        free(g->cells[i].side[0]);
    free(g);
}

// How boxes lie in one direction: the least and the greatest place, and the sum of their widths.
struct spread {
    double low, high, width;
};

static struct spread spread_of(const float *boxes, int64_t count, int direction)
{
    struct spread s = {INFINITY, -INFINITY, 0};
    for (int64_t i = 0; i < count; i++) {
        const float *b = boxes + MGX_BOX_FIELDS * i;
        const double low = b[MGX_BOX_LOW_X + direction], high = b[MGX_BOX_HIGH_X + direction];
        if (!(b[MGX_BOX_AREA] > 0))
            continue;
        s.low = fmin(s.low, low);
        s.high = fmax(s.high, high);
        s.width += high - low;
    }
    return s;
}

// Points a side, 0 where so many would be asked that all boxes are asked sooner.
static int points_for(float iou)
{
    enum { MARGIN = 10000 };
    const double part = (double)iou - 1.0 / MARGIN;
    const double points = part > 0 ? ceil(1 / part) - 1 : INFINITY;
    return points >= 1 && points <= MOST_POINTS ? (int)points : 0;
}

struct cpu_nms_grid *cpu_nms_grid_create(mgx_box_overlaps overlaps, const float *boxes,
                                         int64_t count, float iou)
{
    const int points = points_for(iou);
    struct cpu_nms_grid *g = points ? calloc(1, sizeof *g) : NULL;
    double farthest = 0;
    for (int d = 0; d < 2 && g; d++) {
        const struct spread s = spread_of(boxes, count, d);
        const double size = fmax((s.high - s.low) / SIDE, s.width / (double)count);
        if (!isfinite(size) || !(size > FLT_MIN)) {
            free(g);
            return NULL;
        }
        g->low[d] = (float)s.low;
        g->scale[d] = (float)(1 / size);
        farthest = fmax(farthest, fmax(fabs(s.low), fabs(s.high)));
    }
    if (g) {
        g->overlaps = overlaps;
        g->iou = iou;
        g->points = points;
        g->wider = (float)(8 * FLT_EPSILON * farthest);
    }
    return g;
}

static int cell_at(const struct cpu_nms_grid *g, float place, int direction)
{
    const float at = (place - g->low[direction]) * g->scale[direction];
    return at >= SIDE - 1 ? SIDE - 1 : at > 0 ? (int)at : 0;
}

static bool grow(struct cell *c)
{
    const int64_t capacity = c->capacity ? 2 * c->capacity : 64;
    float *room = malloc((size_t)capacity * MGX_BOX_FIELDS * sizeof *room);
    if (!room)
        return false;
    for (int k = 0; k < MGX_BOX_FIELDS; k++)
        for (int64_t i = 0; i < c->count; i++)
            room[k * capacity + i] = c->side[k][i];
    free(c->side[0]);
    for (int k = 0; k < MGX_BOX_FIELDS; k++)
        c->side[k] = room + k * capacity;
    c->capacity = capacity;
    return true;
}

bool cpu_nms_grid_add(struct cpu_nms_grid *g, const float *box)
{
    int from[2], to[2];
    for (int d = 0; d < 2; d++) {
        from[d] = cell_at(g, box[MGX_BOX_LOW_X + d] - g->wider, d);
        to[d] = cell_at(g, box[MGX_BOX_HIGH_X + d] + g->wider, d);
        assert(from[d] <= to[d]);
    }
    for (int y = from[1]; y <= to[1]; y++)
        for (int x = from[0]; x <= to[0]; x++) {
            struct cell *c = &g->cells[y * SIDE + x];
            if (c->count == c->capacity && !grow(c))
                return false;
            for (int k = 0; k < MGX_BOX_FIELDS; k++)
                c->side[k][c->count] = box[k];
            c->count++;
        }
    return true;
}

bool cpu_nms_grid_overlaps(const struct cpu_nms_grid *g, const float *box)
{
    int at[2][MOST_POINTS];
    for (int d = 0; d < 2; d++) {
        const float low = box[MGX_BOX_LOW_X + d], high = box[MGX_BOX_HIGH_X + d];
        for (int i = 0; i < g->points; i++)
            at[d][i] = cell_at(g, low + (high - low) * (float)(i + 1) / (float)(g->points + 1), d);
    }
    for (int i = 0; i < g->points; i++)
        for (int k = 0; k < g->points; k++) {
            const struct cell *c = &g->cells[at[1][i] * SIDE + at[0][k]];
            const bool again = (i && at[1][i] == at[1][i - 1]) || (k && at[0][k] == at[0][k - 1]);
            if (!again && c->count && g->overlaps(c->side, c->count, box, g->iou))
                return true;
        }
    return false;
}
