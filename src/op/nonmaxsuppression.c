// SPDX-License-Identifier: MIT
// nonmaxsuppression: per image and class the boxes with the best scores, leaving out those that
// overlap a better one by more than a threshold (ONNX NonMaxSuppression).
//
//     boxes {n, b, 4}, scores {n, classes, b}[, most per class[, iou[, score]]]  ->  {k, 3} int64
//
// Rows are image, class, box, by image, class, then falling score; equal scores go by rising box.
// Only scores above a given score threshold count. With use_dyn_output there are as many rows as
// boxes were selected; without, n * b rows, filled up with zeros, as MIGraphX has it, and selecting
// more than that fails. Overlaps are computed in the precision of the boxes, as the definition has
// it: random boxes come close enough to a threshold for double to decide otherwise. Cost: b log b +
// b * selected per class.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/size.h"
#include "op/op.h"
#include "op/reference/listed.h"

struct nonmaxsuppression {
    bool center_point_box, use_dyn_output;
};

static const struct mgx_field fields[] = {MGX_FLAG(struct nonmaxsuppression, center_point_box),
                                          MGX_FLAG(struct nonmaxsuppression, use_dyn_output),
                                          {0}};

// --- shape ---

static enum mgx_status check_inputs(struct mgx_shape_call *c)
{
    TRY(mgx_require_float(c, 0));
    TRY(mgx_require_float(c, 1));
    TRY(mgx_require_rank(c, 0, 3, 3));
    TRY(mgx_require_rank(c, 1, 3, 3));
    struct mgx_dim images = mgx_shape_dim(c->in[0], 0), boxes = mgx_shape_dim(c->in[0], 1);
    TRY(mgx_require_fixed(c, 0, 2, 4));
    TRY(mgx_require_length(c, 1, 0, &images));
    TRY(mgx_require_length(c, 1, 2, &boxes));
    for (int i = 2; i < c->in_count; i++) {
        const struct mgx_shape *s = c->in[i];
        if (mgx_shape_is_absent(s) || !mgx_shape_is_static(s))
            continue;
        TRY(mgx_require_number(c, i));
        if (mgx_shape_elements(s) != 1)
            return mgx_fail(c->diag, MGX_INVALID, "%s: input %d has %" PRId64 " values, not 1",
                            c->op->name, i, mgx_shape_elements(s));
    }
    return MGX_OK;
}

// a * b, at most MGX_DIM_ANY.
static int64_t bounded_product(int64_t a, int64_t b)
{
    assert(a >= 0 && b >= 0);
    int64_t p;
    return mgx_mul_i64(a, b, &p) ? mgx_min_i64(p, MGX_DIM_ANY) : MGX_DIM_ANY;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct nonmaxsuppression *a = c->attr;
    TRY(check_inputs(c));
    const struct mgx_dim images = mgx_shape_dim(c->in[0], 0), boxes = mgx_shape_dim(c->in[0], 1);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 2);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[1] = (struct mgx_dim){.min = 3, .max = 3};
    dims[0].max = bounded_product(images.max, boxes.max);
    if (a->use_dyn_output) {
        dims[0].min = 0;
        dims[0].max = bounded_product(dims[0].max, mgx_shape_dim(c->in[1], 1).max);
    } else {
        dims[0].min = bounded_product(images.min, boxes.min);
    }
    *out = mgx_shape_from_dims(MGX_INT64, 2, dims);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_INT64;
}

// --- compute ---

struct candidate {
    double score;
    int64_t box;
};

struct row { // of the result
    int64_t image, class, box;
};

struct run {
    struct mgx_compute_call *c;
    int64_t images, classes, boxes;
    int64_t most; // per class
    double iou, least;
    bool has_least, single; // single: boxes of floats
    const double *scores;
    double *corners;              // per box low x, low y, high x, high y
    struct candidate *candidates; // of the class in hand
    MGX_ARRAY(struct row) selected;
};

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score && !(isnan(x->score) && isnan(y->score)))
        return isnan(y->score) || x->score > y->score ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

// A result of one operation on floats, as a float operation gives it.
static double rounded(bool single, double x)
{
    return single ? (float)x : x;
}

// Two corners in any order, or centre and size, to low and high.
enum box_form { CORNERS, CENTERED };

static void normalize_box(const double *b, enum box_form form, bool single, double *out)
{
    if (form == CENTERED) {
        for (int i = 0; i < 2; i++) {
            out[i] = rounded(single, b[i] - b[i + 2] / 2);
            out[i + 2] = rounded(single, b[i] + b[i + 2] / 2);
        }
        return;
    }
    out[0] = fmin(b[0], b[2]), out[1] = fmin(b[1], b[3]);
    out[2] = fmax(b[0], b[2]), out[3] = fmax(b[1], b[3]);
}

static double product(bool single, double a, double b)
{
    return rounded(single, rounded(single, a) * rounded(single, b));
}

static bool overlaps(const double *a, const double *b, const struct run *r)
{
    const bool s = r->single;
    const double width = fmin(a[2], b[2]) - fmax(a[0], b[0]);
    const double height = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double area_a = product(s, a[2] - a[0], a[3] - a[1]),
                 area_b = product(s, b[2] - b[0], b[3] - b[1]);
    if (!(width > 0) || !(height > 0) || !(area_a > 0) || !(area_b > 0))
        return false;
    const double both = product(s, width, height);
    const double all = rounded(s, rounded(s, area_a + area_b) - both);
    return rounded(s, both / all) > rounded(s, r->iou);
}

static int64_t collect(struct run *r, const double *scores)
{
    int64_t n = 0;
    for (int64_t b = 0; b < r->boxes; b++)
        if (!r->has_least || scores[b] > r->least)
            r->candidates[n++] = (struct candidate){scores[b], b};
    if (n > 1)
        qsort(r->candidates, (size_t)n, sizeof *r->candidates, by_score);
    return n;
}

static enum mgx_status select_row(struct run *r, int64_t image, int64_t class, int64_t box)
{
    assert(image >= 0 && class >= 0 && box >= 0);
    const struct row row = {image, class, box};
    return MGX_PUSH(&r->selected, r->c->scratch, row) ? MGX_OK : mgx_fail_memory(r->c->diag);
}

// Boxes already selected of this class are the rows from `start`.
static enum mgx_status select_class(struct run *r, int64_t image, int64_t class)
{
    const int64_t n = collect(r, r->scores + (image * r->classes + class) * r->boxes);
    const double *corners = r->corners + image * r->boxes * 4;
    const int64_t start = r->selected.count;
    for (int64_t i = 0; i < n && r->selected.count - start < r->most; i++) {
        const double *box = corners + r->candidates[i].box * 4;
        bool free = true;
        for (int64_t k = start; k < r->selected.count && free; k++)
            free = !overlaps(corners + r->selected.v[k].box * 4, box, r);
        if (free)
            TRY(select_row(r, image, class, r->candidates[i].box));
    }
    return MGX_OK;
}

// Value of an optional scalar input.
static double scalar(const struct mgx_compute_call *c, int input, double fallback)
{
    assert(input >= 0);
    if (input >= c->in_count || mgx_shape_elements(&c->in[input]->shape) != 1)
        return fallback;
    double v;
    mgx_tensor_to_doubles(c->in[input], &v);
    return v;
}

static enum mgx_status write_rows(struct run *r)
{
    struct mgx_compute_call *c = r->c;
    const int64_t count = r->selected.count;
    if (!mgx_shape_is_static(c->out_shape)) {
        const struct mgx_shape s = mgx_shape_make(MGX_INT64, 2, (const int64_t[]){count, 3});
        TRY(mgx_eval_create(c, &s));
    }
    const int64_t rows = c->out->shape.lens[0];
    if (count > rows)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: %" PRId64 " boxes selected, room for %" PRId64
                        " without use_dyn_output",
                        c->op->name, count, rows);
    int64_t *all = MGX_NEW_ARRAY(c->scratch, int64_t, 3 * rows); // zeros
    if (!all)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++) {
        const struct row *row = &r->selected.v[i];
        all[3 * i] = row->image, all[3 * i + 1] = row->class, all[3 * i + 2] = row->box;
    }
    mgx_write_ints(c->out, all);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct nonmaxsuppression *a = c->attr;
    const struct mgx_shape *scores = &c->in[1]->shape;
    struct run r = {.c = c,
                    .images = scores->lens[0],
                    .classes = scores->lens[1],
                    .boxes = scores->lens[2],
                    .iou = scalar(c, 3, 0),
                    .least = scalar(c, 4, 0),
                    .single = c->in[0]->shape.type != MGX_DOUBLE,
                    .has_least = c->in_count > 4 && !mgx_shape_is_absent(&c->in[4]->shape)};
    const double most = scalar(c, 2, 0);
    r.most = !(most > 0) ? 0 : most < (double)r.boxes ? (int64_t)most : r.boxes;
    const double *boxes = mgx_scratch_doubles(c, c->in[0]);
    r.scores = mgx_scratch_doubles(c, c->in[1]);
    r.corners = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(&c->in[0]->shape));
    r.candidates = MGX_NEW_ARRAY(c->scratch, struct candidate, r.boxes);
    if (!boxes || !r.scores || !r.corners || !r.candidates)
        return mgx_fail_memory(c->diag);
    const enum box_form form = a->center_point_box ? CENTERED : CORNERS;
    for (int64_t i = 0; i < r.images * r.boxes; i++)
        normalize_box(boxes + 4 * i, form, r.single, r.corners + 4 * i);
    for (int64_t n = 0; n < r.images && r.boxes > 0; n++)
        for (int64_t k = 0; k < r.classes; k++)
            TRY(select_class(&r, n, k));
    return write_rows(&r);
}

const struct mgx_op mgx_op_nonmaxsuppression = {
    .name = "nonmaxsuppression",
    .meaning = "y = image, class and index of the best boxes that do not overlap better ones",
    .fields = fields,
    .attr_size = sizeof(struct nonmaxsuppression),
    .in_min = 2,
    .in_max = 5,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};

// --- nonmaxsuppression_list: as a list of fixed length (reference/listed.h), row by row ---

// Rows that there may be: of every class as many as there are boxes, or as a known input says.
static enum mgx_status most_rows(struct mgx_shape_call *c, int64_t *least, int64_t *most)
{
    const struct mgx_dim images = mgx_shape_dim(c->in[0], 0), boxes = mgx_shape_dim(c->in[0], 1);
    const struct mgx_dim classes = mgx_shape_dim(c->in[1], 1);
    bool known =
        c->in_count > 2 && !mgx_shape_is_absent(c->in[2]) && mgx_type_is_integral(c->in[2]->type);
    struct mgx_ints each = {0};
    if (known)
        TRY(mgx_known_ints(c, 2, &known, &each));
    const int64_t bound = known && each.count == 1 ? mgx_max_i64(each.v[0], 0) : MGX_DIM_ANY;
    *most =
        bounded_product(bounded_product(images.max, classes.max), mgx_min_i64(boxes.max, bound));
    *least =
        bounded_product(bounded_product(images.min, classes.min), mgx_min_i64(boxes.min, bound));
    return MGX_OK;
}

static enum mgx_status list_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    int64_t least, most;
    TRY(check_inputs(c));
    TRY(most_rows(c, &least, &most));
    return mgx_listed_shape(c, bounded_product(3, least), bounded_product(3, most), out);
}

static enum mgx_status list_compute(struct mgx_compute_call *c)
{
    const int64_t room = mgx_shape_elements(&c->out->shape) - 1;
    const struct nonmaxsuppression open = {
        ((const struct nonmaxsuppression *)c->attr)->center_point_box, true};
    struct mgx_compute_call all = *c;
    struct mgx_tensor value;
    all.attr = &open;
    TRY(mgx_listed_value(&all, &mgx_op_nonmaxsuppression, &value));
    const int64_t rows = value.shape.lens[0];
    assert(3 * rows <= room);
    memset(c->out->data, 0, mgx_shape_bytes(&c->out->shape));
    mgx_listed_put(c->out->data, &value, rows, 3, 3);
    ((int64_t *)c->out->data)[room] = rows;
    mgx_tensor_release(&value);
    return MGX_OK;
}

const struct mgx_op mgx_op_nonmaxsuppression_list = {
    .name = "nonmaxsuppression_list",
    .meaning = "nonmaxsuppression, zeros up to its largest size, and how many rows there are",
    .fields = fields,
    .attr_size = sizeof(struct nonmaxsuppression),
    .in_min = 2,
    .in_max = 5,
    .shape = list_shape,
    .unranked_type = unranked_type,
    .compute = list_compute,
};
