// SPDX-License-Identifier: MIT
// Shape and Size: literals where the lengths are known, else dimensions_of at run time.
#include "onnx/build.h"

#include <assert.h>

// A slice bound as Python has it: negative counts from the end, then clamped.
static int64_t clamp_bound(int64_t at, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    return at < 0 ? (at + rank < 0 ? 0 : at + rank) : (at > rank ? rank : at);
}

static bool all_fixed(const struct mgx_ins *x, int64_t start, int64_t end)
{
    for (int64_t i = start; i < end; i++)
        if (!mgx_build_fixed_dim(x, (int)i))
            return false;
    return true;
}

static struct mgx_ins *dims(struct mgx_node *n, struct mgx_ins *x, int64_t start, int64_t end)
{
    if (end <= start || all_fixed(x, start, end)) {
        const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, end > start ? end - start : 0);
        return mgx_build_ints(n, &shape, x->shape.lens + start);
    }
    return mgx_build_emit(n, &mgx_op_dimensions_of,
                          MGX_ATTRS(mgx_int("start", start), mgx_int("end", end)), MGX_IN(x));
}

static enum mgx_status shape(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0)
        return mgx_onnx_defer(n);
    n->out[0] = dims(n, n->in[0], clamp_bound(mgx_onnx_int(n, "start", 0), rank),
                     clamp_bound(mgx_onnx_int(n, "end", rank), rank));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_shape = {
    .name = "Shape", .import = shape, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX, .result = "l"};

static enum mgx_status size(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_onnx_defer(n);
    if (mgx_build_is_static(x)) {
        const struct mgx_shape scalar = mgx_shape_scalar(MGX_INT64);
        n->out[0] = mgx_build_ints(n, &scalar, (int64_t[]){mgx_shape_elements(&x->shape)});
        return MGX_OK;
    }
    n->out[0] =
        mgx_build_reduce(n, &mgx_op_reduce_prod, dims(n, x, 0, rank), (int64_t[]){0}, 1, false);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_size = {
    .name = "Size", .import = size, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX, .result = "l"};
