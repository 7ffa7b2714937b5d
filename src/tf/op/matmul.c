// SPDX-License-Identifier: MIT
// MatMul, BatchMatMul in its versions, Einsum.
#include "tf/node.h"

// x with its last two axes exchanged if `turn`.
static struct mgx_ins *turned(struct mgx_node *n, struct mgx_ins *x, bool turn)
{
    int64_t permutation[MGX_MAX_RANK];
    const int rank = x->shape.rank;
    if (!turn)
        return x;
    for (int i = 0; i < rank; i++)
        permutation[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    return mgx_build_transpose(n, x, permutation, rank);
}

static enum mgx_status product(struct mgx_node *n, const char *turn_a, const char *turn_b)
{
    TRY(mgx_node_need(n, 2, 2));
    for (int i = 0; i < 2; i++)
        if (mgx_build_rank(n->in[i]) < 2)
            return mgx_node_invalid(n, "input %d has rank %d, below 2", i,
                                    mgx_build_rank(n->in[i]));
    struct mgx_ins *a = turned(n, n->in[0], mgx_tf_flag(n, turn_a, false));
    struct mgx_ins *b = turned(n, n->in[1], mgx_tf_flag(n, turn_b, false));
    n->out[0] = mgx_build_matmul(n, &mgx_op_dot, a, b);
    return MGX_OK;
}

static enum mgx_status mat_mul(struct mgx_node *n)
{
    return product(n, "transpose_a", "transpose_b");
}
const struct mgx_tf_op mgx_tf_mat_mul = {.name = "MatMul", .import = mat_mul};

static enum mgx_status batch_mat_mul(struct mgx_node *n)
{
    return product(n, "adj_x", "adj_y");
}
const struct mgx_tf_op mgx_tf_batch_mat_mul = {.name = "BatchMatMul", .import = batch_mat_mul};
const struct mgx_tf_op mgx_tf_batch_mat_mul_v2 = {.name = "BatchMatMulV2", .import = batch_mat_mul};

// The result has a type of its own; bytes are summed as the integers that it holds.
static enum mgx_status batch_mat_mul_v3(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_node inner = *n;
    struct mgx_ins *in[2];
    const enum mgx_type type = mgx_tf_type(n, "Tout", n->in[0]->shape.type);
    for (int i = 0; i < 2; i++)
        if (!(in[i] = mgx_build_convert(n, n->in[i], type)))
            return MGX_OK;
    inner.in = in;
    return batch_mat_mul(&inner);
}
const struct mgx_tf_op mgx_tf_batch_mat_mul_v3 = {.name = "BatchMatMulV3",
                                                  .import = batch_mat_mul_v3};

static enum mgx_status einsum(struct mgx_node *n)
{
    bool later = false;
    TRY(mgx_node_need_all(n));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_build_einsum(n, mgx_tf_text(n, "equation", ""), &later));
    return later ? mgx_node_unsupported(n, "lengths are known at run time only") : MGX_OK;
}
const struct mgx_tf_op mgx_tf_einsum = {.name = "Einsum", .import = einsum};
