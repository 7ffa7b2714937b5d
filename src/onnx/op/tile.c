// SPDX-License-Identifier: MIT
// Tile, DepthToSpace, SpaceToDepth: rearrangements made of reshape, transpose and broadcast.
#include <string.h>

#include "base/size.h"
#include "onnx/build.h"

// --- Tile ---

// (d0, d1, ...) to (1, d0, 1, d1, ...), broadcast to (r0, d0, r1, d1, ...), merged pairwise.
static enum mgx_status repeat(struct mgx_onnx_node *n, struct mgx_ints repeats)
{
    struct mgx_ins *x = n->in[0];
    const int rank = x->shape.rank;
    int64_t wide[MGX_MAX_RANK], split[MGX_MAX_RANK], merged[MGX_MAX_RANK];
    int count = 0;
    if (repeats.count != rank)
        return mgx_onnx_invalid(n, "%d repeats for rank %d", repeats.count, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t r = repeats.v[i];
        if (r < 0 || !mgx_mul_i64(r, x->shape.lens[i], &merged[i]) || merged[i] > MGX_DIM_ANY)
            return mgx_onnx_invalid(n, "repeat %lld of axis %d", (long long)r, i);
        const bool pair = r != 1 && x->shape.lens[i] != 1;
        if (count + 1 + pair > MGX_MAX_RANK)
            return mgx_onnx_unsupported(n, "more than %d axes are needed", MGX_MAX_RANK);
        if (pair) {
            split[count] = 1;
            wide[count++] = r;
        }
        split[count] = x->shape.lens[i];
        wide[count++] = pair ? x->shape.lens[i] : merged[i];
    }
    struct mgx_shape result = mgx_shape_make(x->shape.type, rank, merged);
    if (mgx_shape_check(&result, n->diag) != MGX_OK)
        return MGX_INVALID;
    if (mgx_shape_elements(&result) == 0) {
        n->out[0] = mgx_build_doubles(n, &result, NULL);
        return MGX_OK;
    }
    struct mgx_ins *y = count == rank ? x : mgx_onnx_reshape(n, x, split, count);
    y = mgx_build_expand(n, y, count, wide);
    n->out[0] = count == rank ? y : mgx_onnx_reshape(n, y, merged, rank);
    return MGX_OK;
}

// Opset 1 repeats along one axis, both given as inputs.
static enum mgx_status tile_axis(struct mgx_onnx_node *n)
{
    int64_t tiles = 0, given = 0, repeats[MGX_MAX_RANK];
    TRY(mgx_onnx_need(n, 3, 3));
    if (!mgx_onnx_is_static(n->in[0]) || !mgx_build_constant_int(n, 1, &tiles) ||
        !mgx_build_constant_int(n, 2, &given))
        return mgx_onnx_defer(n);
    const int rank = n->in[0]->shape.rank;
    int axis = 0;
    TRY(mgx_build_axis(n, given, rank, &axis));
    for (int i = 0; i < rank; i++)
        repeats[i] = i == axis ? tiles : 1;
    return repeat(n, (struct mgx_ints){repeats, rank});
}

static enum mgx_status tile(struct mgx_onnx_node *n)
{
    if (n->opset < 6)
        return tile_axis(n);
    struct mgx_ints repeats = {0};
    TRY(mgx_onnx_need(n, 2, 2));
    if (!mgx_onnx_is_static(n->in[0]) || !mgx_onnx_constant_ints(n, 1, &repeats))
        return mgx_onnx_defer(n);
    return repeat(n, repeats);
}
const struct mgx_onnx_op mgx_onnx_tile = {.name = "Tile", .import = tile};

// --- DepthToSpace, SpaceToDepth ---

// Reshape to 6 axes, transpose, reshape to 4. The batch may be a range: 0 keeps it.
static struct mgx_ins *shuffle(struct mgx_onnx_node *n, const int64_t *six, const int64_t *perm,
                               const int64_t *four)
{
    struct mgx_ins *x = n->in[0];
    if (mgx_onnx_is_static(x) && mgx_shape_elements(&x->shape) == 0) {
        struct mgx_shape empty = mgx_shape_make(x->shape.type, 4, four);
        empty.lens[0] = x->shape.lens[0];
        return mgx_build_reshape_like(n, x, &empty);
    }
    struct mgx_ins *y = mgx_onnx_reshape(n, x, six, 6);
    y = mgx_onnx_transpose(n, y, perm, 6);
    return mgx_onnx_reshape(n, y, four, 4);
}

static enum mgx_status block(struct mgx_onnx_node *n, int64_t *size, bool *later)
{
    TRY(mgx_onnx_need(n, 1, 1));
    const struct mgx_ins *x = n->in[0];
    *later = mgx_onnx_rank(x) < 0;
    if (*later)
        return MGX_OK;
    *size = mgx_onnx_int(n, "blocksize", 0);
    if (mgx_onnx_rank(x) != 4 || *size < 1 || *size > INT16_MAX)
        return mgx_onnx_invalid(n, "rank %d with blocksize %lld", mgx_onnx_rank(x),
                                (long long)*size);
    for (int i = 1; i < 4; i++)
        *later |= !mgx_build_fixed_dim(x, i);
    return MGX_OK;
}

static enum mgx_status depth_to_space(struct mgx_onnx_node *n)
{
    int64_t b = 0;
    bool later = false;
    TRY(block(n, &b, &later));
    if (later)
        return mgx_onnx_defer(n);
    const int64_t *d = n->in[0]->shape.lens;
    if (d[1] % (b * b) != 0)
        return mgx_onnx_invalid(n, "%lld channels with blocksize %lld", (long long)d[1],
                                (long long)b);
    const int64_t c = d[1] / (b * b), four[4] = {0, c, d[2] * b, d[3] * b};
    const int64_t dcr[6] = {0, b, b, c, d[2], d[3]}, dcr_perm[6] = {0, 3, 4, 1, 5, 2};
    const int64_t crd[6] = {0, c, b, b, d[2], d[3]}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    const char *mode = mgx_onnx_text(n, "mode", "DCR");
    if (strcmp(mode, "DCR") == 0)
        n->out[0] = shuffle(n, dcr, dcr_perm, four);
    else if (strcmp(mode, "CRD") == 0)
        n->out[0] = shuffle(n, crd, crd_perm, four);
    else
        return mgx_onnx_invalid(n, "mode \"%s\" is neither DCR nor CRD", mode);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_depth_to_space = {.name = "DepthToSpace",
                                                    .import = depth_to_space};

static enum mgx_status space_to_depth(struct mgx_onnx_node *n)
{
    int64_t b = 0;
    bool later = false;
    TRY(block(n, &b, &later));
    if (later)
        return mgx_onnx_defer(n);
    const int64_t *d = n->in[0]->shape.lens;
    if (d[2] % b != 0 || d[3] % b != 0)
        return mgx_onnx_invalid(n, "%lld x %lld places with blocksize %lld", (long long)d[2],
                                (long long)d[3], (long long)b);
    const int64_t four[4] = {0, d[1] * b * b, d[2] / b, d[3] / b};
    const int64_t six[6] = {0, d[1], d[2] / b, b, d[3] / b, b};
    const int64_t dcr_perm[6] = {0, 3, 5, 1, 2, 4}, crd_perm[6] = {0, 1, 3, 5, 2, 4};
    const char *mode = mgx_onnx_text(n, "mode", "DCR");
    n->out[0] = shuffle(n, six, strcmp(mode, "CRD") == 0 ? crd_perm : dcr_perm, four);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_space_to_depth = {.name = "SpaceToDepth",
                                                    .import = space_to_depth};
