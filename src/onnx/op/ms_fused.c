// SPDX-License-Identifier: MIT
// Products and convolutions of com.microsoft with something fused to them: a transposition, a
// factor, an activation, a summand, a layout. Each is taken apart again into the standard operator
// and what came with it; fusing is the passes' business.
#include <string.h>

#include "onnx/build.h"

// --- activations ---

static enum mgx_status activate(struct mgx_node *n, const char *name, double alpha, double beta,
                                struct mgx_ins **y)
{
    struct mgx_ins *x = *y;
    if (strcmp(name, "") == 0)
        return MGX_OK;
    if (strcmp(name, "Relu") == 0)
        *y = mgx_build_relu(n, x);
    else if (strcmp(name, "Sigmoid") == 0)
        *y = mgx_build_sigmoid(n, x);
    else if (strcmp(name, "Tanh") == 0)
        *y = mgx_build_tanh(n, x);
    else if (strcmp(name, "Gelu") == 0)
        *y = mgx_build_gelu(n, x, false);
    else if (strcmp(name, "LeakyRelu") == 0)
        *y = mgx_build_emit(n, &mgx_op_leaky_relu, MGX_ATTRS(mgx_real("alpha", alpha)), MGX_IN(x));
    else if (strcmp(name, "Clip") == 0)
        *y = mgx_build_clamp(n, x, alpha, beta);
    else if (strcmp(name, "HardSigmoid") == 0)
        *y = mgx_build_clamp(
            n, mgx_build_with(n, &mgx_op_add, mgx_build_with(n, &mgx_op_mul, x, alpha), beta), 0,
            1);
    else
        return mgx_node_unsupported(n, "activation %s", name);
    return MGX_OK;
}

// --- FusedMatMul, TransposeMatMul, FusedMatMulActivation ---

// The first axis of x moved before the last one, then the last two exchanged, as asked.
static struct mgx_ins *turn(struct mgx_node *n, struct mgx_ins *x, const char *batch_name,
                            const char *matrix_name)
{
    const bool batch = mgx_onnx_int(n, batch_name, 0) != 0;
    const bool matrix = mgx_onnx_int(n, matrix_name, 0) != 0;
    const int rank = mgx_build_rank(x);
    int64_t perm[MGX_MAX_RANK];
    if (rank < 2 || (!batch && !matrix))
        return x;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = 0; batch && i < rank - 1; i++)
        perm[i] = i < rank - 2 ? i + 1 : 0;
    if (matrix) {
        const int64_t kept = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = kept;
    }
    return mgx_build_transpose(n, x, perm, rank);
}

static enum mgx_status fused_matmul(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    for (int i = 0; i < 2; i++)
        if (mgx_build_rank(n->in[i]) == 0)
            return mgx_node_invalid(n, "operand %d is a scalar", i);
    struct mgx_ins *a = turn(n, n->in[0], "transBatchA", "transA");
    struct mgx_ins *b = turn(n, n->in[1], "transBatchB", "transB");
    struct mgx_ins *y = mgx_build_matmul(n, &mgx_op_dot, a, b);
    const double alpha = mgx_onnx_real(n, "alpha", 1);
    if (alpha != 1)
        y = mgx_build_with(n, &mgx_op_mul, y, alpha);
    TRY(activate(n, mgx_onnx_text(n, "activation", ""), mgx_onnx_real(n, "activation_alpha", 0.01),
                 mgx_onnx_real(n, "activation_beta", 0), &y));
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_fused_matmul = {
    .name = "FusedMatMul", .domain = "com.microsoft", .import = fused_matmul};
// A sparse matrix is a dense one here.
const struct mgx_onnx_op mgx_onnx_ms_sparse_to_dense_matmul = {
    .name = "SparseToDenseMatMul", .domain = "com.microsoft", .import = fused_matmul};
const struct mgx_onnx_op mgx_onnx_ms_transpose_matmul = {
    .name = "TransposeMatMul", .domain = "com.microsoft", .import = fused_matmul};
const struct mgx_onnx_op mgx_onnx_ms_fused_matmul_activation = {
    .name = "FusedMatMulActivation", .domain = "com.microsoft", .import = fused_matmul};

// --- FusedGemm ---

static enum mgx_status fused_gemm(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    TRY(mgx_onnx_gemm.import(n));
    const char *name = mgx_onnx_text(n, "activation", "");
    const double alpha = strcmp(name, "HardSigmoid") == 0 ? 0.2 : 0.01;
    return activate(n, name, mgx_onnx_real(n, "activation_alpha", alpha),
                    mgx_onnx_real(n, "activation_beta", 0.5), &n->out[0]);
}
const struct mgx_onnx_op mgx_onnx_ms_fused_gemm = {
    .name = "FusedGemm", .domain = "com.microsoft", .import = fused_gemm};

// --- FusedConv, NhwcConv ---

// Conv of x, w and the bias at input 2, with the attributes of this node.
static enum mgx_status convolve(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *w,
                                struct mgx_ins **y)
{
    struct mgx_ins *const in[3] = {x, w, mgx_node_in(n, 2)};
    struct mgx_node plain = *n;
    if (!x || !w)
        return mgx_program_status(n->module->program, n->diag);
    plain.in = in;
    plain.in_count = in[2] ? 3 : 2;
    plain.out = y;
    plain.out_count = 1;
    return mgx_onnx_conv.import(&plain);
}

// activation(Conv(X, W) + B + Z)
static enum mgx_status fused_conv(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 4));
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[1]))
        return mgx_onnx_defer(n);
    const struct mgx_doubles params = mgx_onnx_reals(n, "activation_params");
    const char *name = mgx_onnx_text(n, "activation", "");
    const int wanted = strcmp(name, "LeakyRelu") == 0                                  ? 1
                       : strcmp(name, "Clip") == 0 || strcmp(name, "HardSigmoid") == 0 ? 2
                                                                                       : 0;
    if (params.count < wanted)
        return mgx_node_invalid(n, "%s takes %d activation_params, not %d", name, wanted,
                                params.count);
    struct mgx_ins *y = NULL, *z = mgx_node_in(n, 3);
    TRY(convolve(n, n->in[0], n->in[1], &y));
    if (z)
        y = mgx_build_add(n, y, z);
    TRY(activate(n, name, wanted ? params.v[0] : 0, wanted > 1 ? params.v[1] : 0, &y));
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_fused_conv = {
    .name = "FusedConv", .domain = "com.microsoft", .import = fused_conv};

// Input (N, H, W, C), weights (M, kH, kW, C / group), output (N, H, W, M).
static enum mgx_status nhwc_conv(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    if (!mgx_build_ranked(n) || !mgx_build_is_static(n->in[1]))
        return mgx_onnx_defer(n);
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 3 || mgx_build_rank(n->in[1]) != rank)
        return mgx_node_invalid(n, "input of rank %d, weights of rank %d", rank,
                                mgx_build_rank(n->in[1]));
    int64_t first[MGX_MAX_RANK] = {0, rank - 1}, last[MGX_MAX_RANK] = {0};
    for (int i = 2; i < rank; i++) {
        first[i] = i - 1;
        last[i - 1] = i;
    }
    last[rank - 1] = 1;
    struct mgx_ins *y = NULL;
    TRY(convolve(n, mgx_build_transpose(n, n->in[0], first, rank),
                 mgx_build_transpose(n, n->in[1], first, rank), &y));
    n->out[0] = mgx_build_transpose(n, y, last, rank);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_nhwc_conv = {
    .name = "NhwcConv", .domain = "com.microsoft", .import = nhwc_conv};
