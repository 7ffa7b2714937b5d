// SPDX-License-Identifier: MIT
// nonmaxsuppression of floats: candidates sorted by radix, each held against the selected ones a
// vector at a time (kernel/image/boxes.h): all of them, or of many candidates those near it
// (nms_grid.h).
//
// Arithmetic is that of the reference, operation by operation, so both select the same boxes. Cost:
// candidates times selected boxes, 16 of them in a few cycles; of a grid, times those of some
// cells.
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/cpu/kernel/image/boxes.h"
#include "targets/cpu/lower/lower.h"
#include "targets/cpu/lower/nms_grid.h"
#include "targets/cpu/lower/order.h"

struct nms {
    mgx_box_overlaps overlaps;
    struct cpu_nms_grid *grid; // of the selected ones of a class; NULL: they are listed in `side`
    int64_t images, classes, boxes, most; // most: per class
    float iou, least;
    bool has_least;
    float *box; // MGX_BOX_FIELDS per box of one image
    float *side[MGX_BOX_FIELDS];
    uint64_t *candidates, *room;
    int64_t *rows; // three per selected box
    int64_t count, capacity;
};

static float scalar(const struct mgx_compute_call *c, int input, double fallback, double *exact)
{
    *exact = fallback;
    if (input < c->in_count && mgx_shape_elements(&c->in[input]->shape) == 1)
        mgx_tensor_to_doubles(c->in[input], exact);
    return (float)*exact;
}

static void normalize(const float *b, bool centered, float *out)
{
    if (centered) {
        out[MGX_BOX_LOW_X] = b[0] - b[2] / 2, out[MGX_BOX_LOW_Y] = b[1] - b[3] / 2;
        out[MGX_BOX_HIGH_X] = b[0] + b[2] / 2, out[MGX_BOX_HIGH_Y] = b[1] + b[3] / 2;
    } else {
        out[MGX_BOX_LOW_X] = fminf(b[0], b[2]), out[MGX_BOX_LOW_Y] = fminf(b[1], b[3]);
        out[MGX_BOX_HIGH_X] = fmaxf(b[0], b[2]), out[MGX_BOX_HIGH_Y] = fmaxf(b[1], b[3]);
    }
    out[MGX_BOX_AREA] =
        (out[MGX_BOX_HIGH_X] - out[MGX_BOX_LOW_X]) * (out[MGX_BOX_HIGH_Y] - out[MGX_BOX_LOW_Y]);
}

static bool add_row(struct nms *m, int64_t image, int64_t class, int64_t box)
{
    if (m->count == m->capacity) {
        const int64_t capacity = m->capacity ? 2 * m->capacity : 256;
        int64_t *grown = realloc(m->rows, (size_t)capacity * 3 * sizeof *grown);
        if (!grown)
            return false;
        m->rows = grown;
        m->capacity = capacity;
    }
    int64_t *row = m->rows + 3 * m->count++;
    row[0] = image, row[1] = class, row[2] = box;
    return true;
}

static int64_t collect(const struct nms *m, const float *scores)
{
    int64_t n = 0;
    for (int64_t b = 0; b < m->boxes; b++)
        if (!m->has_least || scores[b] > m->least) {
            const uint32_t key = scores[b] != scores[b] ? UINT32_MAX : ~cpu_order_key(scores[b]);
            m->candidates[n++] = cpu_order_make(key, (uint32_t)b); // NaN comes last
        }
    cpu_order_sort(m->candidates, m->room, n);
    return n;
}

static bool is_suppressed(const struct nms *m, int64_t listed, const float *box)
{
    return m->grid ? cpu_nms_grid_overlaps(m->grid, box)
                   : m->overlaps(m->side, listed, box, m->iou);
}

static bool list(struct nms *m, int64_t listed, const float *box)
{
    if (m->grid)
        return cpu_nms_grid_add(m->grid, box);
    for (int k = 0; k < MGX_BOX_FIELDS; k++)
        m->side[k][listed] = box[k];
    return true;
}

// Boxes without an area overlap nothing and are not held against others.
static bool select_sorted(struct nms *m, int64_t image, int64_t class, int64_t n)
{
    const int64_t start = m->count;
    int64_t listed = 0;
    for (int64_t i = 0; i < n && m->count - start < m->most; i++) {
        const int64_t at = (int64_t)(m->candidates[i] & UINT32_MAX);
        const float *box = m->box + MGX_BOX_FIELDS * at;
        const bool solid = box[MGX_BOX_AREA] > 0;
        if (solid && is_suppressed(m, listed, box))
            continue;
        if ((solid && !list(m, listed, box)) || !add_row(m, image, class, at))
            return false;
        listed += solid;
    }
    return true;
}

static bool select_class(struct nms *m, int64_t image, int64_t class, const float *scores)
{
    enum { MANY = 1024 };
    const int64_t n = collect(m, scores);
    if (n >= MANY && m->most >= MANY)
        m->grid = cpu_nms_grid_create(m->overlaps, m->box, m->boxes, m->iou);
    const bool good = select_sorted(m, image, class, n);
    cpu_nms_grid_destroy(m->grid);
    m->grid = NULL;
    return good;
}

static bool select_all(struct nms *m, const float *boxes, const float *scores, bool centered)
{
    for (int64_t n = 0; n < m->images; n++) {
        for (int64_t b = 0; b < m->boxes; b++)
            normalize(boxes + 4 * (n * m->boxes + b), centered, m->box + MGX_BOX_FIELDS * b);
        for (int64_t k = 0; k < m->classes; k++)
            if (!select_class(m, n, k, scores + (n * m->classes + k) * m->boxes))
                return false;
    }
    return true;
}

static bool allocate(struct nms *m)
{
    const size_t n = (size_t)m->boxes;
    m->box = malloc(2 * n * MGX_BOX_FIELDS * sizeof *m->box);
    m->candidates = malloc(2 * n * sizeof *m->candidates);
    if (!m->box || !m->candidates)
        return false;
    m->room = m->candidates + n;
    for (size_t k = 0; k < MGX_BOX_FIELDS; k++)
        m->side[k] = m->box + n * (MGX_BOX_FIELDS + k);
    return true;
}

static enum mgx_status give(struct nms *m, struct mgx_compute_call *c)
{
    const struct mgx_shape s = mgx_shape_make(MGX_INT64, 2, (const int64_t[]){m->count, 3});
    TRY(mgx_eval_create(c, &s));
    if (m->count)
        memcpy(c->out->data, m->rows, (size_t)m->count * 3 * sizeof *m->rows);
    return MGX_OK;
}

static bool suits(const struct mgx_compute_call *c)
{
    const struct mgx_shape *boxes = &c->in[0]->shape, *scores = &c->in[1]->shape;
    return boxes->type == MGX_FLOAT && scores->type == MGX_FLOAT && mgx_shape_is_standard(boxes) &&
           mgx_shape_is_standard(scores) && scores->lens[2] > 0 && scores->lens[2] <= INT32_MAX &&
           mgx_attr_int(c->op, c->attr, "use_dyn_output");
}

enum mgx_status cpu_nonmaxsuppression(mgx_isa isa, struct mgx_compute_call *c, bool *done)
{
    if (!suits(c))
        return MGX_OK;
    const struct mgx_shape *scores = &c->in[1]->shape;
    double most, exact;
    struct nms m = {.overlaps = mgx_box_kernel(isa)->run,
                    .images = scores->lens[0],
                    .classes = scores->lens[1],
                    .boxes = scores->lens[2],
                    .iou = scalar(c, 3, 0, &exact),
                    .least = scalar(c, 4, 0, &exact),
                    .has_least = c->in_count > 4 && !mgx_shape_is_absent(&c->in[4]->shape)};
    scalar(c, 2, 0, &most);
    m.most = !(most > 0) ? 0 : most < (double)m.boxes ? (int64_t)most : m.boxes;
    const bool good = allocate(&m) && select_all(&m, c->in[0]->data, c->in[1]->data,
                                                 mgx_attr_int(c->op, c->attr, "center_point_box"));
    const enum mgx_status status = good ? give(&m, c) : mgx_fail_memory(c->diag);
    *done = status == MGX_OK;
    free(m.box);
    free(m.candidates);
    free(m.rows);
    return status;
}
