// SPDX-License-Identifier: MIT
// MatMul and Gemm.
#include "onnx/build.h"

static enum mgx_status matmul(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    for (int i = 0; i < 2; i++)
        if (mgx_build_rank(n->in[i]) == 0)
            return mgx_node_invalid(n, "operand %d is a scalar", i);
    n->out[0] = mgx_build_matmul(n, &mgx_op_dot, n->in[0], n->in[1]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_matmul = {.name = "MatMul", .import = matmul};

// factor * x; integers are scaled in double, where a fraction is still one.
static struct mgx_ins *scale(struct mgx_node *n, struct mgx_ins *x, double factor)
{
    if (factor == 1 || !x)
        return x;
    const enum mgx_type type = x->shape.type;
    struct mgx_ins *wide = mgx_type_is_float(type) ? x : mgx_build_convert(n, x, MGX_DOUBLE);
    return mgx_build_convert(n, mgx_build_with(n, &mgx_op_mul, wide, factor), type);
}

// alpha * A' * B' + beta * C; C broadcasts to the product.
static enum mgx_status gemm(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const int64_t swap[2] = {1, 0};
    struct mgx_ins *v[2] = {n->in[0], n->in[1]};
    for (int i = 0; i < 2; i++) {
        if (mgx_build_rank(v[i]) != 2)
            return mgx_node_invalid(n, "operand %d has rank %d, not 2", i, mgx_build_rank(v[i]));
        if (mgx_onnx_int(n, i ? "transB" : "transA", 0))
            v[i] = mgx_build_transpose(n, v[i], swap, 2);
    }
    const double beta = mgx_onnx_real(n, "beta", 1);
    const bool whole = mgx_type_is_float(n->in[0]->shape.type);
    const double alpha = mgx_onnx_real(n, "alpha", 1);
    struct mgx_ins *y = mgx_build_dot(n, whole ? scale(n, v[0], alpha) : v[0], v[1]);
    if (!whole)
        y = scale(n, y, alpha);
    struct mgx_ins *c = mgx_node_in(n, 2);
    n->out[0] = c && beta != 0 ? mgx_build_add(n, y, scale(n, c, beta)) : y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_gemm = {.name = "Gemm", .import = gemm};
