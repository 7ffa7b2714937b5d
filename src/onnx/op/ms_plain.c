// SPDX-License-Identifier: MIT
// Small operators of com.microsoft that are other ones in new words: ExpandDims, SampleOp,
// UnfoldTensor, CDist, MatMulInteger16, Inverse, MurmurHash3, NGramRepeatBlock, CropAndResize.
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

static enum mgx_status expand_dims(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 2, 2));
    const int rank = mgx_build_rank(n->in[0]);
    if (rank < 0 || !mgx_build_constant_int(n, 1, &given))
        return mgx_onnx_defer(n);
    if (rank == MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", rank + 1, MGX_MAX_RANK);
    TRY(mgx_build_axis(n, given, rank + 1, &axis));
    n->out[0] = mgx_build_unsqueeze(n, n->in[0], (int64_t[]){axis}, 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_expand_dims = {.name = "ExpandDims",
                                                    .domain = "com.microsoft",
                                                    .import = expand_dims,
                                                    .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status sample(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, &mgx_op_identity, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_sample_op = {
    .name = "SampleOp", .domain = "com.microsoft", .import = sample};

// --- UnfoldTensor ---

// All slices of `size` along an axis, `step` apart; what is in a slice becomes the last axis.
static enum mgx_status unfold(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    if (!mgx_build_is_static(n->in[0]))
        return mgx_onnx_defer(n);
    const struct mgx_shape *x = &n->in[0]->shape;
    const int64_t size = mgx_onnx_int(n, "size", 0), step = mgx_onnx_int(n, "step", 1);
    int axis = 0;
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "dim", -1), x->rank, &axis));
    if (x->rank == MGX_MAX_RANK)
        return mgx_node_unsupported(n, "rank %d is above %d", x->rank + 1, MGX_MAX_RANK);
    if (size < 1 || step < 1 || size > x->lens[axis])
        return mgx_node_invalid(n, "slices of %lld every %lld of %lld", (long long)size,
                                (long long)step, (long long)x->lens[axis]);
    const int64_t count = (x->lens[axis] - size) / step + 1;
    struct mgx_ins *first = mgx_build_iota(n, MGX_INT64, count);
    first = mgx_build_with(n, &mgx_op_mul, first, (double)step);
    first = first ? mgx_build_per_axis(n, first, 0, 2) : NULL;
    struct mgx_ins *at = mgx_build_add(n, first, mgx_build_iota(n, MGX_INT64, size));
    struct mgx_ins *y = mgx_build_gather(n, n->in[0], at, axis);
    int64_t perm[MGX_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i <= axis ? i : i + 1;
    perm[x->rank] = axis + 1;
    n->out[0] = mgx_build_transpose(n, y, perm, x->rank + 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_unfold_tensor = {.name = "UnfoldTensor",
                                                      .domain = "com.microsoft",
                                                      .import = unfold,
                                                      .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- CDist ---

// The distance of every row of A from every row of B.
static enum mgx_status cdist(struct mgx_node *n)
{
    const char *metric = mgx_onnx_text(n, "metric", "sqeuclidean");
    const bool root = strcmp(metric, "euclidean") == 0;
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return mgx_node_unsupported(n, "metric \"%s\"", metric);
    if (mgx_build_rank(n->in[0]) != 2 || mgx_build_rank(n->in[1]) != 2 ||
        !mgx_build_may_agree(n->in[0], 1, n->in[1], 1))
        return mgx_build_misfit(n, "B", n->in[1], "A", n->in[0]);
    struct mgx_ins *a = mgx_build_unsqueeze(n, n->in[0], (int64_t[]){1}, 1);
    struct mgx_ins *b = mgx_build_unsqueeze(n, n->in[1], (int64_t[]){0}, 1);
    struct mgx_ins *y = mgx_build_sqdiff(n, a, b);
    y = mgx_build_reduce(n, &mgx_op_reduce_sum, y, (int64_t[]){2}, 1, false);
    n->out[0] = root ? mgx_build_sqrt(n, y) : y;
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_cdist = {
    .name = "CDist", .domain = "com.microsoft", .import = cdist};

// --- products ---

// Products of 16 bits, summed in 32: unsigned where both operands are.
static enum mgx_status matmul_integer16(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_ranked(n))
        return mgx_onnx_defer(n);
    const bool natural = n->in[0]->shape.type == MGX_UINT16 && n->in[1]->shape.type == MGX_UINT16;
    const enum mgx_type type = natural ? MGX_UINT32 : MGX_INT32;
    n->out[0] = mgx_build_matmul(n, &mgx_op_dot, mgx_build_convert(n, n->in[0], type),
                                 mgx_build_convert(n, n->in[1], type));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_matmul_integer16 = {.name = "MatMulInteger16",
                                                         .domain = "com.microsoft",
                                                         .import = matmul_integer16,
                                                         .result = "i"};

static enum mgx_status inverse(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, &mgx_op_inverse, n->in[0]);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_inverse = {
    .name = "Inverse", .domain = "com.microsoft", .import = inverse};

static enum mgx_status murmur_hash(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_emit(n, &mgx_op_murmur_hash,
                               MGX_ATTRS(mgx_int("seed", mgx_onnx_int(n, "seed", 0)),
                                         mgx_int("positive", mgx_onnx_int(n, "positive", 1) != 0)),
                               MGX_IN(n->in[0]));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_murmur_hash = {.name = "MurmurHash3",
                                                    .domain = "com.microsoft",
                                                    .import = murmur_hash,
                                                    .takes = MGX_ONNX_TEXT};

// --- NGramRepeatBlock ---

// Which windows of `size` tokens are the last ones again, {batch, windows}.
static struct mgx_ins *find_repeats(struct mgx_node *n, int64_t size)
{
    struct mgx_ins *ids = n->in[0], *same = NULL;
    const int64_t tokens = ids->shape.lens[1], windows = tokens - size;
    for (int64_t i = 0; i < size; i++) {
        struct mgx_ins *here = mgx_build_slice(n, ids, 1, i, i + windows);
        struct mgx_ins *last = mgx_build_slice(n, ids, 1, windows + i, windows + i + 1);
        here = mgx_build_equal(n, here, last);
        same = same ? mgx_build_logical_and(n, same, here) : here;
    }
    return same;
}

// The scores of tokens that would make a run of ngram_size tokens that was there become -inf.
static enum mgx_status block_repeats(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (!mgx_build_static(n))
        return mgx_onnx_defer(n);
    const struct mgx_shape *ids = &n->in[0]->shape, *scores = &n->in[1]->shape;
    const int64_t size = mgx_onnx_int(n, "ngram_size", 0) - 1;
    if (ids->rank != 2 || scores->rank != 2 || ids->lens[0] != scores->lens[0])
        return mgx_build_misfit(n, "scores", n->in[1], "ids", n->in[0]);
    if (size < 1 || size > 1 << 10)
        return mgx_node_invalid(n, "ngram_size is %lld", (long long)size + 1);
    n->out[0] = mgx_build_unary(n, &mgx_op_identity, n->in[1]);
    if (ids->lens[1] <= size)
        return MGX_OK;
    const enum mgx_type type = scores->type;
    struct mgx_ins *hit =
        mgx_build_where(n, find_repeats(n, size), mgx_build_scalar(n, type, -INFINITY),
                        mgx_build_scalar(n, type, INFINITY));
    struct mgx_ins *next = mgx_build_slice(n, n->in[0], 1, size, ids->lens[1]);
    n->out[0] = mgx_build_emit(n, &mgx_op_scatter_min, MGX_ATTRS(mgx_int("axis", 1)),
                               MGX_IN(n->in[1], next, hit));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_ngram_repeat_block = {
    .name = "NGramRepeatBlock", .domain = "com.microsoft", .import = block_repeats, .result = "1"};

// --- CropAndResize ---

// Coordinates {boxes, count} on an axis of `length` points: from the box's first edge to its
// second, its middle where there is one only. *inside: which are in the image.
static struct mgx_ins *coordinates(struct mgx_node *n, int64_t first, int64_t length, int64_t count,
                                   struct mgx_ins **inside)
{
    struct mgx_ins *a = mgx_build_slice(n, n->in[1], 1, first, first + 1);
    struct mgx_ins *b = mgx_build_slice(n, n->in[1], 1, first + 2, first + 3);
    const enum mgx_type type = n->in[1]->shape.type;
    struct mgx_ins *at = mgx_build_convert(n, mgx_build_iota(n, MGX_INT64, count), type);
    at = count > 1 ? mgx_build_with(n, &mgx_op_div, at, (double)(count - 1))
                   : mgx_build_with(n, &mgx_op_add, at, 0.5);
    at = mgx_build_add(n, a, mgx_build_mul(n, mgx_build_sub(n, b, a), at));
    struct mgx_ins *below = mgx_build_less(n, at, mgx_build_scalar(n, type, 0));
    struct mgx_ins *above = mgx_build_greater(n, at, mgx_build_scalar(n, type, 1));
    *inside = mgx_build_not(n, mgx_build_logical_or(n, below, above));
    return mgx_build_with(n, &mgx_op_mul, at, (double)(length - 1));
}

// {boxes, height, width} of two vectors for each box, one along each axis.
static struct mgx_ins *spread(struct mgx_node *n, struct mgx_ins *x, int axis, const int64_t *lens)
{
    return mgx_build_expand(n, mgx_build_unsqueeze(n, x, (int64_t[]){axis}, 1), 3, lens);
}

static enum mgx_status check_boxes(struct mgx_node *n, struct mgx_ints size)
{
    const struct mgx_shape *x = &n->in[0]->shape, *r = &n->in[1]->shape, *b = &n->in[2]->shape;
    if (x->rank != 4 || r->rank != 2 || r->lens[1] != 4 || b->rank != 1 || b->lens[0] != r->lens[0])
        return mgx_build_misfit(n, "boxes", n->in[1], "an input of", n->in[0]);
    if (size.count != 2 || size.v[0] < 1 || size.v[1] < 1)
        return mgx_node_invalid(n, "crop_size has %d entries, the first %lld", size.count,
                                size.count ? (long long)size.v[0] : 0LL);
    return MGX_OK;
}

// Between four points, as grid_sample does from coordinates between -1 and 1.
static struct mgx_ins *sample_linear(struct mgx_node *n, struct mgx_ins *y, struct mgx_ins *x)
{
    struct mgx_ins *grid[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        const int64_t last = n->in[0]->shape.lens[3 - i] - 1;
        grid[i] = mgx_build_with(n, &mgx_op_mul, grid[i], last > 0 ? 2 / (double)last : 0);
        grid[i] = mgx_build_with(n, &mgx_op_sub, grid[i], 1);
        grid[i] = mgx_build_unsqueeze(n, grid[i], (int64_t[]){3}, 1);
    }
    return mgx_build_emit(
        n, &mgx_op_grid_sample,
        MGX_ATTRS(mgx_text("mode", "linear"), mgx_text("padding_mode", "border"),
                  mgx_int("align_corners", 1)),
        MGX_IN(mgx_build_gather(n, n->in[0], n->in[2], 0), mgx_build_concat(n, 3, grid, 2)));
}

// The point of an axis that is nearest; of two, the one behind.
static struct mgx_ins *nearest(struct mgx_node *n, struct mgx_ins *at, int64_t length)
{
    at = mgx_build_floor(n, mgx_build_with(n, &mgx_op_add, at, 0.5));
    return mgx_build_convert(n, mgx_build_clamp(n, at, 0, (double)(length - 1)), MGX_INT64);
}

static struct mgx_ins *sample_nearest(struct mgx_node *n, struct mgx_ins *y, struct mgx_ins *x)
{
    const int64_t *lens = n->in[0]->shape.lens, rows = lens[0] * lens[2] * lens[3];
    struct mgx_ins *points = mgx_build_transpose(n, n->in[0], (int64_t[]){0, 2, 3, 1}, 4);
    struct mgx_ins *at = mgx_build_convert(n, n->in[2], MGX_INT64);
    points = mgx_build_reshape(n, points, (int64_t[]){rows, lens[1]}, 2);
    at = at ? mgx_build_per_axis(n, at, 0, 3) : NULL;
    at = mgx_build_with(n, &mgx_op_mul, at, (double)lens[2]);
    at = mgx_build_add(n, at, nearest(n, y, lens[2]));
    at = mgx_build_with(n, &mgx_op_mul, at, (double)lens[3]);
    at = mgx_build_add(n, at, nearest(n, x, lens[3]));
    return mgx_build_transpose(n, mgx_build_gather(n, points, at, 0), (int64_t[]){0, 3, 1, 2}, 4);
}

static enum mgx_status crop_and_resize(struct mgx_node *n)
{
    struct mgx_ints size = {0};
    TRY(mgx_node_need(n, 4, 4));
    if (!mgx_node_constant_ints(n, 3, &size) || !mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(check_boxes(n, size));
    const struct mgx_shape *s = &n->in[0]->shape;
    const int64_t lens[3] = {n->in[1]->shape.lens[0], size.v[0], size.v[1]};
    struct mgx_ins *in_y, *in_x;
    struct mgx_ins *y = coordinates(n, 0, s->lens[2], size.v[0], &in_y);
    struct mgx_ins *x = coordinates(n, 1, s->lens[3], size.v[1], &in_x);
    y = spread(n, y, 2, lens);
    x = spread(n, x, 1, lens);
    in_y = mgx_build_logical_and(n, spread(n, in_y, 2, lens), spread(n, in_x, 1, lens));
    const bool linear = strcmp(mgx_onnx_text(n, "mode", "bilinear"), "nearest") != 0;
    struct mgx_ins *z = linear ? sample_linear(n, y, x) : sample_nearest(n, y, x);
    const double other = mgx_onnx_real(n, "extrapolation_value", 0);
    n->out[0] = mgx_build_where(n, mgx_build_unsqueeze(n, in_y, (int64_t[]){1}, 1), z,
                                mgx_build_scalar(n, s->type, other));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_ms_crop_and_resize = {
    .name = "CropAndResize", .domain = "com.microsoft", .import = crop_and_resize};
