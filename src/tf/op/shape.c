// SPDX-License-Identifier: MIT
// What changes or asks for lengths: Shape, Size, Rank, Reshape, ExpandDims, Squeeze, Transpose,
// BroadcastTo, Tile, concatenation and splitting, Pack and Unpack.
#include <string.h>

#include "base/size.h"
#include "tf/node.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_COMPLEX)

// --- asking ---

// The lengths of x as a vector.
static struct mgx_ins *lengths(struct mgx_node *n, struct mgx_ins *x, enum mgx_type type)
{
    if (!mgx_build_is_static(x))
        return mgx_build_convert(n, mgx_build_emit(n, &mgx_op_dimensions_of, NULL, MGX_IN(x)),
                                 type);
    const struct mgx_shape shape = mgx_shape_vector(type, x->shape.rank);
    return mgx_build_ints(n, &shape, x->shape.lens);
}

static enum mgx_status shape_of(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    TRY(mgx_tf_results(n, n->in_count));
    for (int i = 0; i < n->in_count; i++)
        n->out[i] = lengths(n, n->in[i], mgx_tf_type(n, "out_type", MGX_INT32));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_shape_op = {.name = "Shape", .import = shape_of, .takes = ANY};
const struct mgx_tf_op mgx_tf_shape_n = {.name = "ShapeN", .import = shape_of, .takes = ANY};

static enum mgx_status size_of(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const enum mgx_type type = mgx_tf_type(n, "out_type", MGX_INT32);
    if (mgx_build_is_static(n->in[0])) {
        n->out[0] = mgx_build_scalar(n, type, (double)mgx_shape_elements(&n->in[0]->shape));
        return MGX_OK;
    }
    struct mgx_ins *all = lengths(n, n->in[0], type);
    n->out[0] = mgx_build_reduce(n, &mgx_op_reduce_prod, all, (int64_t[]){0}, 1, false);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_size = {.name = "Size", .import = size_of, .takes = ANY};

static enum mgx_status rank_of(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_node_unsupported(n, "the rank is known at run time only");
    n->out[0] = mgx_build_scalar(n, MGX_INT32, mgx_build_rank(n->in[0]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_rank = {.name = "Rank", .import = rank_of, .takes = ANY};

// --- other lengths ---

// -1 takes what is left over; 0 is a length of 0, unlike in the IR.
static enum mgx_status reshape(struct mgx_node *n)
{
    struct mgx_ints dims;
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_node_constant_ints(n, 1, &dims)) {
        struct mgx_ins *wide = mgx_build_convert(n, n->in[1], MGX_INT64);
        n->out[0] = mgx_build_emit(n, &mgx_op_reshape, NULL, MGX_IN(n->in[0], wide));
        return MGX_OK;
    }
    if (dims.count > MGX_MAX_RANK)
        return mgx_node_invalid(n, "rank %d is above %d", dims.count, MGX_MAX_RANK);
    bool zero = false;
    for (int i = 0; i < dims.count; i++) {
        zero |= dims.v[i] == 0;
        if (dims.v[i] < -1 || dims.v[i] > MGX_DIM_ANY)
            return mgx_node_invalid(n, "length %lld of axis %d", (long long)dims.v[i], i);
    }
    if (!zero) {
        n->out[0] = mgx_build_reshape(n, n->in[0], dims.v, dims.count);
        return MGX_OK;
    }
    int64_t lens[MGX_MAX_RANK];
    for (int i = 0; i < dims.count; i++)
        lens[i] = dims.v[i] < 0 ? 0 : dims.v[i];
    if (!mgx_build_is_static(n->in[0]) || mgx_shape_elements(&n->in[0]->shape))
        return mgx_node_invalid(n, "a tensor with elements is reshaped to none");
    const struct mgx_shape empty = mgx_shape_make(n->in[0]->shape.type, dims.count, lens);
    n->out[0] = mgx_build_doubles(n, &empty, NULL);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_reshape = {.name = "Reshape", .import = reshape};

static enum mgx_status expand_dims(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_int(n, 1, "dim", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(n->in[0]) + 1, &axis));
    n->out[0] = mgx_build_unsqueeze(n, n->in[0], (int64_t[]){axis}, 1);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_expand_dims = {
    .name = "ExpandDims", .import = expand_dims, .takes = ANY};

static enum mgx_status squeeze(struct mgx_node *n)
{
    int64_t axes[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_ints given = mgx_tf_ints(n, mgx_tf_has(n, "axis") ? "axis" : "squeeze_dims");
    struct mgx_ins *x = n->in[0];
    int count = given.count;
    TRY(mgx_build_axes(n, given, mgx_build_rank(x), axes));
    for (int i = 0; !given.count && i < x->shape.rank; i++)
        if (mgx_build_fixed_dim(x, i) && mgx_shape_dim(&x->shape, i).min == 1)
            axes[count++] = i;
    n->out[0] = count ? mgx_build_squeeze(n, x, axes, count) : x;
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_squeeze = {.name = "Squeeze", .import = squeeze, .takes = ANY};

static enum mgx_status transpose(struct mgx_node *n)
{
    struct mgx_ints list;
    int64_t permutation[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 1, "perm", &list));
    const int rank = mgx_build_rank(n->in[0]);
    if (list.count != rank)
        return mgx_node_invalid(n, "%d axes for rank %d", list.count, rank);
    TRY(mgx_build_axes(n, list, rank, permutation));
    n->out[0] = rank ? mgx_build_transpose(n, n->in[0], permutation, rank) : n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_transpose = {.name = "Transpose", .import = transpose};

static enum mgx_status broadcast_to(struct mgx_node *n)
{
    struct mgx_ints dims;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_ints(n, 1, "shape", &dims));
    if (dims.count > MGX_MAX_RANK || dims.count < n->in[0]->shape.rank)
        return mgx_node_invalid(n, "rank %d for an input of rank %d", dims.count,
                                n->in[0]->shape.rank);
    n->out[0] = mgx_build_expand(n, n->in[0], dims.count, dims.v);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_broadcast_to = {.name = "BroadcastTo", .import = broadcast_to};

static enum mgx_status tile(struct mgx_node *n)
{
    struct mgx_ints multiples;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_ints(n, 1, "multiples", &multiples));
    return mgx_build_tile(n, n->in[0], multiples, &n->out[0]);
}
const struct mgx_tf_op mgx_tf_tile = {.name = "Tile", .import = tile};

static enum mgx_status broadcast_args(struct mgx_node *n)
{
    struct mgx_ints a, b;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 0, "s0", &a));
    TRY(mgx_tf_need_ints(n, 1, "s1", &b));
    if (a.count > MGX_MAX_RANK || b.count > MGX_MAX_RANK)
        return mgx_node_invalid(n, "ranks %d and %d", a.count, b.count);
    struct mgx_shape x = mgx_shape_make(MGX_FLOAT, a.count, a.v);
    struct mgx_shape y = mgx_shape_make(MGX_FLOAT, b.count, b.v);
    int rank;
    int64_t lens[MGX_MAX_RANK];
    if (!mgx_build_common_lens(&x, &y, &rank, lens))
        return mgx_node_invalid(n, "the shapes do not broadcast");
    const struct mgx_shape shape = mgx_shape_vector(n->in[0]->shape.type, rank);
    n->out[0] = mgx_build_ints(n, &shape, lens);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_broadcast_args = {.name = "BroadcastArgs", .import = broadcast_args};

static enum mgx_status invert_permutation(struct mgx_node *n)
{
    struct mgx_ints p;
    int64_t axes[MGX_MAX_RANK], inverse[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_ints(n, 0, "x", &p));
    if (p.count > MGX_MAX_RANK)
        return mgx_node_unsupported(n, "%d entries are above %d", p.count, MGX_MAX_RANK);
    TRY(mgx_build_axes(n, p, p.count, axes));
    for (int i = 0; i < p.count; i++)
        inverse[axes[i]] = i;
    n->out[0] = mgx_build_ints(n, &n->in[0]->shape, inverse);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_invert_permutation = {.name = "InvertPermutation",
                                                    .import = invert_permutation};
