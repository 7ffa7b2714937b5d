// SPDX-License-Identifier: MIT
// Choosing by values: Select, Where, TopKV2, NonMaxSuppression in its versions, Unique; and Cast,
// MatrixBandPart.
#include <math.h>
#include <string.h>

#include "tf/node.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_COMPLEX)

static enum mgx_status cast(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_convert(n, n->in[0], mgx_tf_type(n, "DstT", MGX_FLOAT));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_cast = {.name = "Cast", .import = cast};

// The same bits under another name: a quantised type is its integer here.
static enum mgx_status bitcast(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const enum mgx_type type = mgx_tf_type(n, "type", n->in[0]->shape.type);
    if (type != n->in[0]->shape.type)
        return mgx_node_unsupported(n, "a bitcast from %s to %s",
                                    mgx_type_name(n->in[0]->shape.type), mgx_type_name(type));
    n->out[0] = n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_bitcast = {.name = "Bitcast", .import = bitcast};

// A vector as the condition chooses among rows.
static enum mgx_status choose(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ins *condition = n->in[0];
    const int rank = mgx_build_rank(n->in[1]);
    const bool rows = strcmp(n->op_type, "Select") == 0 && mgx_build_rank(condition) == 1;
    if (rows && rank > 1)
        condition = mgx_build_per_axis(n, condition, 0, rank);
    n->out[0] = mgx_build_where(n, condition, n->in[1], n->in[2]);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_select = {.name = "Select", .import = choose};
const struct mgx_tf_op mgx_tf_select_v2 = {.name = "SelectV2", .import = choose};

// Places of what is not 0, a row each.
static enum mgx_status where(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *rows = mgx_build_unary(n, &mgx_op_nonzero, n->in[0]);
    n->out[0] = mgx_build_transpose(n, rows, (int64_t[]){1, 0}, 2);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_where = {.name = "Where", .import = where};

static enum mgx_status top_k(struct mgx_node *n)
{
    int64_t k = 0;
    TRY(mgx_node_need(n, 1, 2));
    TRY(mgx_tf_results(n, 2));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 1)
        return mgx_node_invalid(n, "input has rank %d, below 1", rank);
    if (n->in_count > 1)
        TRY(mgx_tf_need_int(n, 1, "k", &k));
    else
        k = mgx_tf_int(n, "k", 0);
    struct mgx_ins *both =
        mgx_build_emit(n, &mgx_op_topk,
                       MGX_ATTRS(mgx_int("k", k), mgx_int("axis", rank - 1), mgx_int("largest", 1)),
                       MGX_IN(n->in[0]));
    n->out[0] = mgx_build_member(n, both, 0);
    n->out[1] =
        mgx_build_convert(n, mgx_build_member(n, both, 1), mgx_tf_type(n, "index_type", MGX_INT32));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_top_k = {
    .name = "TopK", .import = top_k, .outputs = "values,indices"};
const struct mgx_tf_op mgx_tf_top_k_v2 = {
    .name = "TopKV2", .import = top_k, .outputs = "values,indices"};

static enum mgx_status unique(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_results(n, 3));
    const enum mgx_type type = mgx_tf_type(n, "out_idx", MGX_INT32);
    struct mgx_ins *all =
        mgx_build_emit(n, &mgx_op_unique, MGX_ATTRS(mgx_int("sorted", 0)), MGX_IN(n->in[0]));
    n->out[0] = mgx_build_member(n, all, 0);
    n->out[1] = mgx_build_convert(n, mgx_build_member(n, all, 2), type);
    n->out[2] = mgx_build_convert(n, mgx_build_member(n, all, 3), type);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_unique = {.name = "Unique", .import = unique, .outputs = "y,idx"};
const struct mgx_tf_op mgx_tf_unique_with_counts = {
    .name = "UniqueWithCounts", .import = unique, .outputs = "y,idx,count"};

// --- boxes ---

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

// --- bands ---

// Keeps what is at most `lower` below and `upper` above the diagonal; negative: everything.
static enum mgx_status band_part(struct mgx_node *n)
{
    int64_t lower = 0, upper = 0;
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_int(n, 1, "num_lower", &lower));
    TRY(mgx_tf_need_int(n, 2, "num_upper", &upper));
    struct mgx_ins *x = n->in[0];
    const int rank = x->shape.rank;
    if (rank < 2)
        return mgx_node_invalid(n, "input has rank %d, below 2", rank);
    const int64_t rows = x->shape.lens[rank - 2], columns = x->shape.lens[rank - 1];
    const struct mgx_shape shape = mgx_shape_make(MGX_BOOL, 2, (int64_t[]){rows, columns});
    struct mgx_tensor t = {0};
    TRY(mgx_build_create(n, &shape, &t));
    bool *keep = t.data;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            keep[i * columns + j] = (lower < 0 || i - j <= lower) && (upper < 0 || j - i <= upper);
    struct mgx_ins *mask = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    n->out[0] = mgx_build_where(n, mask, x, mgx_build_like(n, x, 0));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_matrix_band_part = {.name = "MatrixBandPart", .import = band_part};
