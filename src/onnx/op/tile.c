// SPDX-License-Identifier: MIT
// Tile, DepthToSpace, SpaceToDepth: rearrangements made of reshape, transpose and broadcast.
#include <string.h>

#include "base/size.h"
#include "import/spans.h"
#include "onnx/build.h"

// --- Tile ---

// Where lengths are not known, copies are joined axis by axis.
static enum mgx_status repeat_ranges(struct mgx_node *n, struct mgx_ints repeats)
{
    enum { MOST = 256 };
    struct mgx_ins *copies[MOST], *y = n->in[0];
    if (repeats.count != mgx_build_rank(y))
        return mgx_node_invalid(n, "%d repeats for rank %d", repeats.count, mgx_build_rank(y));
    for (int i = 0; i < repeats.count; i++)
        if (repeats.v[i] < 1 || repeats.v[i] > MOST)
            return mgx_onnx_defer(n);
    for (int i = 0; i < repeats.count; i++) {
        for (int64_t k = 0; k < repeats.v[i]; k++)
            copies[k] = y;
        if (repeats.v[i] > 1)
            y = mgx_build_concat(n, i, copies, (int)repeats.v[i]);
    }
    n->out[0] = y == n->in[0] ? mgx_build_unary(n, &mgx_op_identity, y) : y;
    return MGX_OK;
}

// A number of repeats, which is refused below 0: nothing could have that many values.
static struct mgx_ins *repeats_of(struct mgx_node *n, int axis)
{
    struct mgx_ins *times = mgx_build_slice(n, n->in[1], 0, axis, axis + 1),
                   *zero =
                       mgx_build_reshape(n, mgx_build_scalar(n, MGX_INT64, 0), (int64_t[]){1}, 1),
                   *values =
                       mgx_build_emit(n, &mgx_op_broadcast_with_dims, NULL, MGX_IN(zero, times));
    return mgx_build_emit(n, &mgx_op_dimensions_of,
                          MGX_ATTRS(mgx_int("start", 0), mgx_int("end", 1)), MGX_IN(values));
}

// Where repeats are not known, every axis is read by its indices, again and again.
static enum mgx_status repeat_late(struct mgx_node *n)
{
    struct mgx_ins *x = n->in[0], *repeats = n->in[1], *y = x;
    struct mgx_dim spans[MGX_MAX_RANK];
    const int rank = mgx_build_rank(x);
    int count = 0;
    if (mgx_build_rank(repeats) != 1 || repeats->shape.type != MGX_INT64 ||
        !mgx_build_is_static(repeats))
        return mgx_onnx_defer(n);
    if (repeats->shape.lens[0] != rank)
        return mgx_node_invalid(n, "%lld repeats for rank %d", (long long)repeats->shape.lens[0],
                                rank);
    const bool known = mgx_build_spans(repeats, spans, &count) && count == rank;
    for (int i = 0; i < rank; i++) {
        if (known && spans[i].min == 1 && spans[i].max == 1)
            continue;
        struct mgx_ins *length = mgx_build_dim(n, x, i);
        struct mgx_ins *to =
            mgx_build_indices_to(n, mgx_build_binary(n, &mgx_op_mul, repeats_of(n, i), length));
        y = mgx_build_gather(n, y, mgx_build_binary(n, &mgx_op_mod, to, length), i);
    }
    n->out[0] = y == x ? mgx_build_unary(n, &mgx_op_identity, y) : y;
    return MGX_OK;
}

// Opset 1 repeats along one axis, both given as inputs.
static enum mgx_status tile_axis(struct mgx_node *n)
{
    int64_t tiles = 0, given = 0, repeats[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 3, 3));
    if (!mgx_build_is_static(n->in[0]) || !mgx_build_constant_int(n, 1, &tiles) ||
        !mgx_build_constant_int(n, 2, &given))
        return mgx_onnx_defer(n);
    const int rank = n->in[0]->shape.rank;
    int axis = 0;
    TRY(mgx_build_axis(n, given, rank, &axis));
    for (int i = 0; i < rank; i++)
        repeats[i] = i == axis ? tiles : 1;
    return mgx_build_tile(n, n->in[0], (struct mgx_ints){repeats, rank}, &n->out[0]);
}

static enum mgx_status tile(struct mgx_node *n)
{
    if (n->opset < 6)
        return tile_axis(n);
    struct mgx_ints repeats = {0};
    TRY(mgx_node_need(n, 2, 2));
    if (mgx_build_rank(n->in[0]) < 0)
        return mgx_onnx_defer(n);
    if (!mgx_node_constant_ints(n, 1, &repeats))
        return repeat_late(n);
    return mgx_build_is_static(n->in[0]) ? mgx_build_tile(n, n->in[0], repeats, &n->out[0])
                                         : repeat_ranges(n, repeats);
}
const struct mgx_onnx_op mgx_onnx_tile = {
    .name = "Tile", .import = tile, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

// --- DepthToSpace, SpaceToDepth ---

// Reshape to 6 axes, transpose, reshape to 4. Batch, height and width may be ranges.
static struct mgx_ins *shuffle(struct mgx_node *n, const struct mgx_build_len *six,
                               const int64_t *perm, const struct mgx_build_len *four)
{
    struct mgx_ins *y = mgx_build_reshape_to(n, n->in[0], six, 6);
    return mgx_build_reshape_to(n, mgx_build_transpose(n, y, perm, 6), four, 4);
}

static enum mgx_status block(struct mgx_node *n, int64_t *size, bool *later)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_ins *x = n->in[0];
    *later = mgx_build_rank(x) < 0;
    if (*later)
        return MGX_OK;
    *size = mgx_onnx_int(n, "blocksize", 0);
    if (mgx_build_rank(x) != 4 || *size < 1 || *size > INT16_MAX)
        return mgx_node_invalid(n, "rank %d with blocksize %lld", mgx_build_rank(x),
                                (long long)*size);
    *later |= !mgx_build_fixed_dim(x, 1);
    return MGX_OK;
}

static enum mgx_status depth_to_space(struct mgx_node *n)
{
    int64_t b = 0;
    bool later = false;
    TRY(block(n, &b, &later));
    if (later)
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    if (x->shape.lens[1] % (b * b) != 0)
        return mgx_node_invalid(n, "%lld channels with blocksize %lld", (long long)x->shape.lens[1],
                                (long long)b);
    const struct mgx_build_len batch = {x, 0}, h = {x, 2}, w = {x, 3}, part = {.times = b},
                               c = {.times = x->shape.lens[1] / (b * b)};
    const struct mgx_build_len four[4] = {batch, c, {x, 2, b}, {x, 3, b}};
    const struct mgx_build_len dcr[6] = {batch, part, part, c, h, w},
                               crd[6] = {batch, c, part, part, h, w};
    const int64_t dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    const char *mode = mgx_onnx_text(n, "mode", "DCR");
    if (strcmp(mode, "DCR") == 0)
        n->out[0] = shuffle(n, dcr, dcr_perm, four);
    else if (strcmp(mode, "CRD") == 0)
        n->out[0] = shuffle(n, crd, crd_perm, four);
    else
        return mgx_node_invalid(n, "mode \"%s\" is neither DCR nor CRD", mode);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_depth_to_space = {
    .name = "DepthToSpace", .import = depth_to_space, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};

static enum mgx_status space_to_depth(struct mgx_node *n)
{
    int64_t b = 0;
    bool later = false;
    TRY(block(n, &b, &later));
    if (later)
        return mgx_onnx_defer(n);
    struct mgx_ins *x = n->in[0];
    for (int i = 2; i < 4; i++)
        if (mgx_build_fixed_dim(x, i) && x->shape.lens[i] % b != 0)
            return mgx_node_invalid(n, "length %lld of axis %d with blocksize %lld",
                                    (long long)x->shape.lens[i], i, (long long)b);
    const struct mgx_build_len batch = {x, 0}, c = {x, 1}, h = {x, 2, 1, b}, w = {x, 3, 1, b},
                               part = {.times = b};
    const struct mgx_build_len four[4] = {batch, {x, 1, b * b}, h, w};
    const struct mgx_build_len six[6] = {batch, c, h, part, w, part};
    const int64_t dcr_perm[6] = {0, 3, 5, 1, 2, 4}, crd_perm[6] = {0, 1, 3, 5, 2, 4};
    const char *mode = mgx_onnx_text(n, "mode", "DCR");
    n->out[0] = shuffle(n, six, strcmp(mode, "CRD") == 0 ? crd_perm : dcr_perm, four);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_space_to_depth = {
    .name = "SpaceToDepth", .import = space_to_depth, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
