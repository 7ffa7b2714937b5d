// SPDX-License-Identifier: MIT
// Choosing by values: Select, Where, TopKV2, Unique; and Cast, Bitcast, MatrixBandPart.
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
