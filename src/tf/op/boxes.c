// SPDX-License-Identifier: MIT
// Boxes that overlap less than so much: NonMaxSuppression in its versions, and the one over images
// and classes, CombinedNonMaxSuppression.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "tf/node.h"

// A scalar of that type, whatever the input is.
static struct mgx_ins *scalar(struct mgx_node *n, int i, enum mgx_type type)
{
    struct mgx_ins *x = mgx_build_convert(n, n->in[i], type);
    return x && x->shape.rank ? mgx_build_reshape(n, x, NULL, 0) : x;
}

// The boxes that stay, best first: the third column of {image, class, box} rows.
static struct mgx_ins *suppress(struct mgx_node *n, struct mgx_ins *overlap, struct mgx_ins *least)
{
    struct mgx_ins *boxes = mgx_build_unsqueeze(n, n->in[0], (int64_t[]){0}, 1);
    struct mgx_ins *scores = mgx_build_unsqueeze(n, n->in[1], (int64_t[]){0, 1}, 2);
    struct mgx_ins *rows =
        mgx_build_emit(n, &mgx_op_nonmaxsuppression, MGX_ATTRS(mgx_int("use_dyn_output", 1)),
                       MGX_IN(boxes, scores, scalar(n, 2, MGX_INT64), overlap, least));
    struct mgx_ins *column = mgx_build_slice(n, rows, 1, 2, 3);
    return mgx_build_convert(n, mgx_build_squeeze(n, column, (int64_t[]){1}, 1), MGX_INT32);
}

static enum mgx_status check_boxes(struct mgx_node *n, int inputs)
{
    TRY(mgx_node_need(n, inputs, 6));
    if (mgx_build_rank(n->in[0]) != 2 || mgx_build_rank(n->in[1]) != 1)
        return mgx_node_invalid(n, "boxes have rank %d, scores %d", mgx_build_rank(n->in[0]),
                                mgx_build_rank(n->in[1]));
    return MGX_OK;
}

static enum mgx_status non_max_suppression(struct mgx_node *n)
{
    TRY(check_boxes(n, 3));
    struct mgx_ins *overlap =
        n->in_count > 3 ? scalar(n, 3, MGX_FLOAT)
                        : mgx_build_scalar(n, MGX_FLOAT, mgx_tf_real(n, "iou_threshold", 0.5));
    struct mgx_ins *least =
        n->in_count > 4 ? scalar(n, 4, MGX_FLOAT) : mgx_build_scalar(n, MGX_FLOAT, -INFINITY);
    n->out[0] = suppress(n, overlap, least);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_non_max_suppression = {.name = "NonMaxSuppression",
                                                     .import = non_max_suppression};
const struct mgx_tf_op mgx_tf_non_max_suppression_v2 = {.name = "NonMaxSuppressionV2",
                                                        .import = non_max_suppression};
const struct mgx_tf_op mgx_tf_non_max_suppression_v3 = {.name = "NonMaxSuppressionV3",
                                                        .import = non_max_suppression};

// With the number of boxes, and in V5 their scores. Padding fills up with zeros.
static enum mgx_status counted_suppression(struct mgx_node *n)
{
    const bool scored = strcmp(n->op_type, "NonMaxSuppressionV5") == 0;
    double sigma = 0;
    TRY(check_boxes(n, 5));
    if (n->in_count > 5)
        TRY(mgx_tf_need_real(n, 5, "soft_nms_sigma", &sigma));
    if (sigma != 0 || mgx_tf_flag(n, "pad_to_max_output_size", false))
        return mgx_node_unsupported(n, "soft suppression and padding of the result");
    TRY(mgx_tf_results(n, 3));
    struct mgx_ins *boxes = suppress(n, scalar(n, 3, MGX_FLOAT), scalar(n, 4, MGX_FLOAT));
    struct mgx_ins *count = mgx_build_convert(n, mgx_build_dim(n, boxes, 0), MGX_INT32);
    n->out[0] = boxes;
    n->out[scored ? 2 : 1] = mgx_build_reshape(n, count, NULL, 0);
    if (scored)
        n->out[1] = mgx_build_gather(n, n->in[1], boxes, 0);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_non_max_suppression_v4 = {.name = "NonMaxSuppressionV4",
                                                        .import = counted_suppression,
                                                        .outputs =
                                                            "selected_indices,valid_outputs"};
const struct mgx_tf_op mgx_tf_non_max_suppression_v5 = {
    .name = "NonMaxSuppressionV5",
    .import = counted_suppression,
    .outputs = "selected_indices,selected_scores,valid_outputs"};

// --- all images and classes at once ---

struct detections {
    int64_t images, boxes, classes;
    int64_t kept, total; // that can be, and that the result has room for
    bool own;            // each class has boxes of its own
};

static enum mgx_status read_sizes(struct mgx_node *n, struct detections *d)
{
    int64_t each = 0;
    TRY(mgx_node_need(n, 6, 6));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_int(n, 2, "max_output_size_per_class", &each));
    TRY(mgx_tf_need_int(n, 3, "max_total_size", &d->total));
    const struct mgx_shape *boxes = &n->in[0]->shape, *scores = &n->in[1]->shape;
    if (boxes->rank != 4 || scores->rank != 3 || boxes->lens[3] != 4 ||
        boxes->lens[0] != scores->lens[0] || boxes->lens[1] != scores->lens[1] ||
        (boxes->lens[2] != 1 && boxes->lens[2] != scores->lens[2]))
        return mgx_node_invalid(n, "boxes and scores are not {images, boxes, 1 or classes, 4} and "
                                   "{images, boxes, classes}");
    d->images = scores->lens[0];
    d->boxes = scores->lens[1];
    d->classes = scores->lens[2];
    d->own = boxes->lens[2] != 1;
    if (each < 1 || each > INT32_MAX || d->total < 1 || d->total > INT32_MAX || !d->boxes ||
        !d->classes)
        return mgx_node_invalid(n, "%lld a class and %lld in all, of %lld boxes and %lld classes",
                                (long long)each, (long long)d->total, (long long)d->boxes,
                                (long long)d->classes);
    const int64_t most = mgx_min_i64(each, d->boxes) * d->classes;
    if (mgx_tf_flag(n, "pad_per_class", false))
        d->total =
            mgx_min_i64(d->total, each > INT32_MAX / d->classes ? d->total : each * d->classes);
    d->kept = mgx_min_i64(d->total, most);
    return MGX_OK;
}

// The scores {images, classes, boxes} that stay; -infinity where a box goes.
static struct mgx_ins *staying(struct mgx_node *n, const struct detections *d,
                               struct mgx_ins *boxes, struct mgx_ins *scores)
{
    const int64_t images = d->own ? d->images * d->classes : d->images;
    const int64_t classes = d->own ? 1 : d->classes;
    scores = mgx_build_reshape(n, scores, (int64_t[]){images, classes, d->boxes}, 3);
    struct mgx_ins *rows = mgx_build_emit(
        n, &mgx_op_nonmaxsuppression, MGX_ATTRS(mgx_int("use_dyn_output", 1)),
        MGX_IN(mgx_build_reshape(n, boxes, (int64_t[]){images, d->boxes, 4}, 3), scores,
               scalar(n, 2, MGX_INT64), scalar(n, 4, MGX_FLOAT), scalar(n, 5, MGX_FLOAT)));
    struct mgx_ins *stay = mgx_build_emit(n, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", 0)),
                                          MGX_IN(scores, rows));
    struct mgx_ins *none =
        scores ? mgx_build_filled(n, scores->shape.type, 3, scores->shape.lens, -INFINITY) : NULL;
    return mgx_build_emit(n, &mgx_op_scatternd_none, NULL, MGX_IN(none, rows, stay));
}

// x {images, kept..} where a box is, zeros up to the total.
static struct mgx_ins *padded(struct mgx_node *n, const struct detections *d, struct mgx_ins *x,
                              struct mgx_ins *valid)
{
    if (!x || !valid)
        return NULL;
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    const int rank = x->shape.rank;
    pads[rank + 1] = d->total - d->kept;
    if (rank == 3)
        valid = mgx_build_unsqueeze(n, valid, (int64_t[]){2}, 1);
    return mgx_build_pad(n, mgx_build_where(n, valid, x, mgx_build_like(n, x, 0)), pads, 0);
}

static enum mgx_status combined_suppression(struct mgx_node *n)
{
    struct detections d;
    TRY(read_sizes(n, &d));
    TRY(mgx_tf_results(n, 4));
    const int64_t all = d.boxes * d.classes;
    struct mgx_ins *boxes = mgx_build_transpose(n, n->in[0], (int64_t[]){0, 2, 1, 3}, 4);
    struct mgx_ins *scores = mgx_build_transpose(n, n->in[1], (int64_t[]){0, 2, 1}, 3);
    struct mgx_ins *stay =
        mgx_build_reshape(n, staying(n, &d, boxes, scores), (int64_t[]){d.images, all}, 2);
    struct mgx_ins *best = mgx_build_emit(
        n, &mgx_op_topk, MGX_ATTRS(mgx_int("k", d.kept), mgx_int("axis", 1), mgx_int("largest", 1)),
        MGX_IN(stay));
    struct mgx_ins *top = mgx_build_member(n, best, 0), *at = mgx_build_member(n, best, 1);
    struct mgx_ins *valid = mgx_build_greater(n, top, mgx_build_like(n, top, -INFINITY));
    struct mgx_ins *class = mgx_build_with(n, &mgx_op_div, at, (double)d.boxes);
    struct mgx_ins *place = d.own ? at : mgx_build_with(n, &mgx_op_mod, at, (double)d.boxes);
    boxes = mgx_build_reshape(n, boxes, (int64_t[]){d.images, d.own ? all : d.boxes, 4}, 3);
    struct mgx_ins *picked =
        mgx_build_emit(n, &mgx_op_gathernd, MGX_ATTRS(mgx_int("batch_dims", 1)),
                       MGX_IN(boxes, mgx_build_unsqueeze(n, place, (int64_t[]){2}, 1)));
    if (mgx_tf_flag(n, "clip_boxes", true))
        picked = mgx_build_clamp(n, picked, 0, 1);
    n->out[0] = padded(n, &d, picked, valid);
    n->out[1] = padded(n, &d, top, valid);
    n->out[2] = padded(n, &d, mgx_build_convert(n, class, MGX_FLOAT), valid);
    n->out[3] = mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_convert(n, valid, MGX_INT32),
                                 (int64_t[]){1}, 1, false);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_combined_non_max_suppression = {
    .name = "CombinedNonMaxSuppression",
    .import = combined_suppression,
    .outputs = "nmsed_boxes,nmsed_scores,nmsed_classes,valid_detections"};
