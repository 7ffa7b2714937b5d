// SPDX-License-Identifier: MIT
// The Reduce* family: a step before, one of the IR's reductions, a step after. Axes are an
// attribute before opset 18 (13 for ReduceSum) and an input since; without any, all axes are
// reduced, or none with noop_with_empty_axes (the steps before and after still apply). The work
// between runs in double where the type is integral and a root or logarithm is taken.
#include "onnx/build.h"

struct reduction {
    struct mgx_ins *x;
    int64_t axes[MGX_MAX_RANK];
    int count;
    bool keep, none; // none: the reduction itself is the identity
};

static enum mgx_status read(struct mgx_node *n, struct reduction *r, bool *later)
{
    TRY(mgx_node_need(n, 1, 2));
    r->x = n->in[0];
    const int rank = mgx_build_rank(r->x);
    bool given = false, known = false;
    struct mgx_ints axes = {0};
    TRY(mgx_onnx_ints_or_input(n, "axes", 1, &given, &known, &axes));
    *later = rank < 0 || !known;
    if (*later)
        return MGX_OK;
    r->keep = mgx_onnx_int(n, "keepdims", 1) != 0;
    TRY(mgx_build_axes(n, axes, rank, r->axes));
    r->count = axes.count;
    r->none = !axes.count && mgx_onnx_int(n, "noop_with_empty_axes", 0);
    for (int i = 0; !axes.count && !r->none && i < rank; i++)
        r->axes[r->count++] = i;
    r->none |= r->count == 0;
    return MGX_OK;
}

static struct mgx_ins *reduce(struct mgx_node *n, const struct mgx_op *op,
                              const struct reduction *r, struct mgx_ins *x)
{
    return r->none ? x : mgx_build_reduce(n, op, x, r->axes, r->count, r->keep);
}

// sum, mean, max, min, prod: the reduction alone.
static enum mgx_status plain(struct mgx_node *n)
{
    struct reduction r = {0};
    bool later = false;
    TRY(read(n, &r, &later));
    if (later)
        return mgx_onnx_defer(n);
    n->out[0] =
        r.none ? mgx_build_unary(n, &mgx_op_identity, r.x) : reduce(n, n->rule->op, &r, r.x);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_reduce_sum = {
    .name = "ReduceSum", .import = plain, .op = &mgx_op_reduce_sum};
const struct mgx_onnx_op mgx_onnx_reduce_mean = {
    .name = "ReduceMean", .import = plain, .op = &mgx_op_reduce_mean};
const struct mgx_onnx_op mgx_onnx_reduce_max = {
    .name = "ReduceMax", .import = plain, .op = &mgx_op_reduce_max};
const struct mgx_onnx_op mgx_onnx_reduce_min = {
    .name = "ReduceMin", .import = plain, .op = &mgx_op_reduce_min};
const struct mgx_onnx_op mgx_onnx_reduce_prod = {
    .name = "ReduceProd", .import = plain, .op = &mgx_op_reduce_prod};

static struct mgx_ins *l1(struct mgx_node *n, const struct reduction *r)
{
    return reduce(n, &mgx_op_reduce_sum, r, mgx_build_abs(n, r->x));
}

static struct mgx_ins *sum_square(struct mgx_node *n, const struct reduction *r)
{
    return reduce(n, &mgx_op_reduce_sum, r, mgx_build_mul(n, r->x, r->x));
}

static struct mgx_ins *l2(struct mgx_node *n, const struct reduction *r)
{
    return mgx_build_sqrt(n, sum_square(n, r));
}

static struct mgx_ins *log_sum(struct mgx_node *n, const struct reduction *r)
{
    return mgx_build_log(n, reduce(n, &mgx_op_reduce_sum, r, r->x));
}

// log(sum(exp(x - m))) + m with m the largest x, so that nothing overflows; an infinite m would
// give NaN and is taken as 0.
static struct mgx_ins *log_sum_exp(struct mgx_node *n, const struct reduction *r)
{
    const bool empty = mgx_build_is_static(r->x) && mgx_shape_elements(&r->x->shape) == 0;
    if (r->none || empty)
        return mgx_build_log(n, reduce(n, &mgx_op_reduce_sum, r, mgx_build_exp(n, r->x)));
    struct mgx_ins *top = mgx_build_reduce(n, &mgx_op_reduce_max, r->x, r->axes, r->count, true);
    struct mgx_ins *infinite =
        mgx_build_convert(n, mgx_build_unary(n, &mgx_op_isinf, top), MGX_BOOL);
    struct mgx_ins *m = mgx_build_where(n, infinite, mgx_build_like(n, top, 0), top);
    struct mgx_ins *sum =
        mgx_build_reduce(n, &mgx_op_reduce_sum, mgx_build_exp(n, mgx_build_sub(n, r->x, m)),
                         r->axes, r->count, true);
    struct mgx_ins *y = mgx_build_add(n, mgx_build_log(n, sum), m);
    return r->keep ? y : mgx_build_squeeze(n, y, r->axes, r->count);
}

// The composed ones; `body` sees x as double where integers would lose fractions.
static enum mgx_status composed(struct mgx_node *n, bool fractions,
                                struct mgx_ins *(*body)(struct mgx_node *n,
                                                        const struct reduction *r))
{
    struct reduction r = {0};
    bool later = false;
    TRY(read(n, &r, &later));
    if (later)
        return mgx_onnx_defer(n);
    const enum mgx_type type = r.x->shape.type;
    if (fractions && !mgx_type_is_float(type))
        r.x = mgx_build_convert(n, r.x, MGX_DOUBLE);
    if (!r.x)
        return MGX_OK;
    n->out[0] = mgx_build_convert(n, body(n, &r), type);
    return MGX_OK;
}

static enum mgx_status import_l1(struct mgx_node *n)
{
    return composed(n, false, l1);
}
const struct mgx_onnx_op mgx_onnx_reduce_l1 = {.name = "ReduceL1", .import = import_l1};

static enum mgx_status import_l2(struct mgx_node *n)
{
    return composed(n, true, l2);
}
const struct mgx_onnx_op mgx_onnx_reduce_l2 = {.name = "ReduceL2", .import = import_l2};

static enum mgx_status import_log_sum(struct mgx_node *n)
{
    return composed(n, true, log_sum);
}
const struct mgx_onnx_op mgx_onnx_reduce_log_sum = {.name = "ReduceLogSum",
                                                    .import = import_log_sum};

static enum mgx_status import_log_sum_exp(struct mgx_node *n)
{
    return composed(n, true, log_sum_exp);
}
const struct mgx_onnx_op mgx_onnx_reduce_log_sum_exp = {.name = "ReduceLogSumExp",
                                                        .import = import_log_sum_exp};

static enum mgx_status import_sum_square(struct mgx_node *n)
{
    return composed(n, false, sum_square);
}
const struct mgx_onnx_op mgx_onnx_reduce_sum_square = {.name = "ReduceSumSquare",
                                                       .import = import_sum_square};

// --- argmax, argmin ---

static enum mgx_status arg(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0)
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), rank ? rank : 1, &axis));
    struct mgx_ins *x = rank ? n->in[0] : mgx_build_unsqueeze(n, n->in[0], (int64_t[]){0}, 1);
    struct mgx_ins *y = mgx_build_emit(
        n, n->rule->op,
        MGX_ATTRS(mgx_int("axis", axis),
                  mgx_int("select_last_index", mgx_onnx_int(n, "select_last_index", 0) != 0)),
        MGX_IN(x));
    if (!mgx_onnx_int(n, "keepdims", 1) || !rank)
        y = mgx_build_squeeze(n, y, (int64_t[]){axis}, 1);
    n->out[0] = y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_argmax = {
    .name = "ArgMax", .import = arg, .op = &mgx_op_argmax, .result = "l"};
const struct mgx_onnx_op mgx_onnx_argmin = {
    .name = "ArgMin", .import = arg, .op = &mgx_op_argmin, .result = "l"};

// --- running sums and products ---

static enum mgx_status scan(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    int64_t given = 0;
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0 || !mgx_build_constant_int(n, 1, &given))
        return mgx_onnx_defer(n);
    int axis = 0;
    TRY(mgx_build_axis(n, given, rank, &axis));
    n->out[0] = mgx_build_emit(n, n->rule->op,
                               MGX_ATTRS(mgx_int("axis", axis),
                                         mgx_int("exclusive", mgx_onnx_int(n, "exclusive", 0) != 0),
                                         mgx_int("reverse", mgx_onnx_int(n, "reverse", 0) != 0)),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_cumsum = {
    .name = "CumSum", .import = scan, .op = &mgx_op_prefix_scan_sum};
const struct mgx_onnx_op mgx_onnx_cumprod = {
    .name = "CumProd", .import = scan, .op = &mgx_op_prefix_scan_prod};
