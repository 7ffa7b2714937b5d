// SPDX-License-Identifier: MIT
// AveragePool, MaxPool, LpPool, their global forms, MaxUnpool.
#include "onnx/build.h"
#include "onnx/window.h"

static struct mgx_ins *emit(struct mgx_node *n, const char *mode, const struct mgx_import_window *w,
                            int64_t order, bool dynamic)
{
    return mgx_build_emit(
        n, &mgx_op_pooling,
        MGX_ATTRS(mgx_text("mode", mode), mgx_ints("padding", w->pads, 2 * w->spatial),
                  mgx_int("padding_mode", w->padding_mode),
                  mgx_ints("stride", w->strides, w->spatial),
                  mgx_ints("lengths", w->kernel, w->spatial),
                  mgx_ints("dilations", w->dilations, w->spatial),
                  mgx_int("ceil_mode", mgx_onnx_int(n, "ceil_mode", 0) != 0),
                  mgx_int("count_include_pad", mgx_onnx_int(n, "count_include_pad", 0) != 0),
                  mgx_int("lp_order", order), mgx_int("dyn_global", dynamic)),
        MGX_IN(n->in[0]));
}

static enum mgx_status pool(struct mgx_node *n, const char *mode, int64_t order)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_import_window w;
    TRY(mgx_onnx_window_read(n, n->in[0], NULL, &w));
    n->out[0] = emit(n, mode, &w, order, false);
    return MGX_OK;
}

static enum mgx_status global(struct mgx_node *n, const char *mode, int64_t order)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0)
        return mgx_onnx_defer(n);
    if (rank < 3)
        return mgx_node_invalid(n, "input has rank %d, below 3", rank);
    struct mgx_import_window w;
    mgx_onnx_window_global(n->in[0], &w);
    bool dynamic = false;
    for (int i = 0; i < w.spatial; i++)
        dynamic |= !mgx_build_fixed_dim(n->in[0], i + 2);
    n->out[0] = emit(n, mode, &w, order, dynamic);
    return MGX_OK;
}

// p was a float in opset 1.
static int64_t order(struct mgx_node *n)
{
    return n->opset < 2 ? (int64_t)mgx_onnx_real(n, "p", 2) : mgx_onnx_int(n, "p", 2);
}

static enum mgx_status average_pool(struct mgx_node *n)
{
    return pool(n, "average", 2);
}
const struct mgx_onnx_op mgx_onnx_average_pool = {.name = "AveragePool", .import = average_pool};

static enum mgx_status lp_pool(struct mgx_node *n)
{
    if (order(n) < 1)
        return mgx_node_invalid(n, "p is %lld, below 1", (long long)order(n));
    return pool(n, "lpnorm", order(n));
}
const struct mgx_onnx_op mgx_onnx_lp_pool = {.name = "LpPool", .import = lp_pool};

static enum mgx_status global_average_pool(struct mgx_node *n)
{
    return global(n, "average", 2);
}
const struct mgx_onnx_op mgx_onnx_global_average_pool = {.name = "GlobalAveragePool",
                                                         .import = global_average_pool};

static enum mgx_status global_max_pool(struct mgx_node *n)
{
    return global(n, "max", 2);
}
const struct mgx_onnx_op mgx_onnx_global_max_pool = {.name = "GlobalMaxPool",
                                                     .import = global_max_pool};

static enum mgx_status global_lp_pool(struct mgx_node *n)
{
    return global(n, "lpnorm", order(n));
}
const struct mgx_onnx_op mgx_onnx_global_lp_pool = {.name = "GlobalLpPool",
                                                    .import = global_lp_pool};

// With a second output the places of the maxima too.
static enum mgx_status max_pool(struct mgx_node *n)
{
    if (n->out_count < 2)
        return pool(n, "max", 2);
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_import_window w;
    TRY(mgx_onnx_window_read(n, n->in[0], NULL, &w));
    struct mgx_ins *both = mgx_build_emit_n(
        n, &mgx_op_max_pool_indices,
        MGX_ATTRS(mgx_ints("padding", w.pads, 2 * w.spatial),
                  mgx_int("padding_mode", w.padding_mode), mgx_ints("stride", w.strides, w.spatial),
                  mgx_ints("lengths", w.kernel, w.spatial),
                  mgx_ints("dilations", w.dilations, w.spatial),
                  mgx_int("ceil_mode", mgx_onnx_int(n, "ceil_mode", 0) != 0),
                  mgx_int("storage_order", mgx_onnx_int(n, "storage_order", 0))),
        n->in, 1);
    n->out[0] = mgx_build_member(n, both, 0);
    n->out[1] = mgx_build_member(n, both, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_max_pool = {
    .name = "MaxPool", .import = max_pool, .result = "0l"};

static enum mgx_status max_unpool(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 3));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    struct mgx_import_window w;
    TRY(mgx_onnx_window_read(n, n->in[0], NULL, &w));
    n->out[0] = mgx_build_emit_n(n, &mgx_op_max_unpool,
                                 MGX_ATTRS(mgx_ints("lengths", w.kernel, w.spatial),
                                           mgx_ints("stride", w.strides, w.spatial),
                                           mgx_ints("padding", w.pads, 2 * w.spatial)),
                                 n->in, mgx_node_in(n, 2) ? 3 : 2);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_max_unpool = {.name = "MaxUnpool", .import = max_unpool};
