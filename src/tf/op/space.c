// SPDX-License-Identifier: MIT
// Blocks of places moved into channels or batch and back: SpaceToDepth, DepthToSpace,
// SpaceToBatchND, BatchToSpaceND. All are a reshape, a transpose and a reshape.
#include <string.h>

#include "base/size.h"
#include "tf/node.h"

struct image {
    struct mgx_ins *x; // {n, height, width, channels}
    int64_t n, h, w, c, block;
    bool last;
};

// NCHW is brought to NHWC: TensorFlow's channel order within a block is the same in both.
static enum mgx_status read_image(struct mgx_node *n, struct image *i)
{
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_channels_last(n, &i->last));
    i->block = mgx_tf_int(n, "block_size", 0);
    if (n->in[0]->shape.rank != 4 || i->block < 1 || i->block > INT32_MAX)
        return mgx_node_invalid(n, "rank %d, block_size %lld", n->in[0]->shape.rank,
                                (long long)i->block);
    i->x = mgx_tf_from_channels_first(n, n->in[0], !i->last);
    if (!i->x)
        return MGX_OK;
    const int64_t *lens = i->x->shape.lens;
    i->n = lens[0];
    i->h = lens[1];
    i->w = lens[2];
    i->c = lens[3];
    int64_t most; // of the longest axis that can come of it
    if (!mgx_mul_i64(i->block, i->block, &most) || !mgx_mul_i64(most, i->c + 1, &most) ||
        !mgx_mul_i64(i->block, i->h + i->w, &most))
        return mgx_node_invalid(n, "blocks of %lld for {%lld, %lld, %lld}", (long long)i->block,
                                (long long)i->h, (long long)i->w, (long long)i->c);
    return MGX_OK;
}

static void finish(struct mgx_node *n, const struct image *i, struct mgx_ins *y,
                   const int64_t *dims)
{
    y = mgx_build_reshape(n, y, dims, 4);
    n->out[0] = mgx_tf_to_channels_first(n, y, !i->last);
}

static enum mgx_status space_to_depth(struct mgx_node *n)
{
    struct image i = {0};
    TRY(read_image(n, &i));
    const int64_t b = i.block;
    if (i.h % b || i.w % b)
        return mgx_node_invalid(n, "%lld x %lld places in blocks of %lld", (long long)i.h,
                                (long long)i.w, (long long)b);
    struct mgx_ins *y = mgx_build_reshape(n, i.x, (int64_t[]){i.n, i.h / b, b, i.w / b, b, i.c}, 6);
    y = mgx_build_transpose(n, y, (int64_t[]){0, 1, 3, 2, 4, 5}, 6);
    finish(n, &i, y, (int64_t[]){i.n, i.h / b, i.w / b, b * b * i.c});
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_space_to_depth = {.name = "SpaceToDepth", .import = space_to_depth};

static enum mgx_status depth_to_space(struct mgx_node *n)
{
    struct image i = {0};
    TRY(read_image(n, &i));
    const int64_t b = i.block;
    if (i.c / b % b || i.c % b)
        return mgx_node_invalid(n, "%lld channels in blocks of %lld", (long long)i.c, (long long)b);
    const int64_t c = i.c / b / b;
    struct mgx_ins *y = mgx_build_reshape(n, i.x, (int64_t[]){i.n, i.h, i.w, b, b, c}, 6);
    y = mgx_build_transpose(n, y, (int64_t[]){0, 1, 3, 2, 4, 5}, 6);
    finish(n, &i, y, (int64_t[]){i.n, i.h * b, i.w * b, c});
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_depth_to_space = {.name = "DepthToSpace", .import = depth_to_space};

// --- batch ---

struct blocks {
    struct mgx_ints shape, edges; // block_shape; paddings or crops, {begin, end} per axis
    int spatial;
    int64_t product;
};

static enum mgx_status read_blocks(struct mgx_node *n, const char *edges, struct blocks *b)
{
    TRY(mgx_node_need(n, 3, 3));
    TRY(mgx_tf_need_static(n));
    TRY(mgx_tf_need_ints(n, 1, "block_shape", &b->shape));
    TRY(mgx_tf_need_ints(n, 2, edges, &b->edges));
    b->spatial = b->shape.count;
    b->product = 1;
    if (b->edges.count != 2 * b->spatial || n->in[0]->shape.rank < b->spatial + 1 ||
        n->in[0]->shape.rank + b->spatial > MGX_MAX_RANK)
        return mgx_node_invalid(n, "%d blocks and %d %s for rank %d", b->spatial, b->edges.count,
                                edges, n->in[0]->shape.rank);
    for (int i = 0; i < b->spatial; i++)
        if (b->shape.v[i] < 1 || !mgx_mul_i64(b->product, b->shape.v[i], &b->product) ||
            b->product > MGX_DIM_ANY)
            return mgx_node_invalid(n, "block of %lld", (long long)b->shape.v[i]);
    for (int i = 0; i < b->edges.count; i++)
        if (b->edges.v[i] < 0 || b->edges.v[i] > MGX_DIM_ANY)
            return mgx_node_invalid(n, "%s of %lld", edges, (long long)b->edges.v[i]);
    return MGX_OK;
}

// How a block is moved: the reshape before, the transpose, the reshape behind.
struct move {
    int64_t split[MGX_MAX_RANK], order[MGX_MAX_RANK], merged[MGX_MAX_RANK];
};

static struct mgx_ins *emit_move(struct mgx_node *n, const struct blocks *b, const struct move *m,
                                 struct mgx_ins *x)
{
    const int rank = n->in[0]->shape.rank, wide = rank + b->spatial;
    x = mgx_build_transpose(n, mgx_build_reshape(n, x, m->split, wide), m->order, wide);
    return mgx_build_reshape(n, x, m->merged, rank);
}

static struct mgx_ins *pad_blocks(struct mgx_node *n, const struct blocks *b)
{
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    for (int i = 0; i < b->spatial; i++) {
        pads[1 + i] = b->edges.v[2 * i];
        pads[n->in[0]->shape.rank + 1 + i] = b->edges.v[2 * i + 1];
    }
    return mgx_build_pad(n, n->in[0], pads, 0);
}

// {n, s0 b0, s1 b1, .., rest} to {b0, b1, .., n, s0, s1, .., rest}
static enum mgx_status plan_to_batch(struct mgx_node *n, const struct blocks *b,
                                     const struct mgx_shape *x, struct move *m)
{
    const int s = b->spatial;
    m->split[0] = x->lens[0];
    if (!mgx_mul_i64(m->split[0], b->product, &m->merged[0]))
        return mgx_node_invalid(n, "a batch of %lld times %lld", (long long)m->split[0],
                                (long long)b->product);
    m->order[s] = 0;
    for (int i = 0; i < s; i++) {
        const int64_t length = x->lens[1 + i];
        if (length % b->shape.v[i])
            return mgx_node_invalid(n, "%lld places in blocks of %lld", (long long)length,
                                    (long long)b->shape.v[i]);
        m->split[1 + 2 * i] = m->merged[1 + i] = length / b->shape.v[i];
        m->split[2 + 2 * i] = b->shape.v[i];
        m->order[i] = 2 + 2 * i;
        m->order[s + 1 + i] = 1 + 2 * i;
    }
    for (int i = s + 1; i < x->rank; i++) {
        m->split[s + i] = m->merged[i] = x->lens[i];
        m->order[s + i] = s + i;
    }
    return MGX_OK;
}

static enum mgx_status space_to_batch(struct mgx_node *n)
{
    struct blocks b = {0};
    struct move m;
    TRY(read_blocks(n, "paddings", &b));
    struct mgx_ins *x = pad_blocks(n, &b);
    if (!x)
        return MGX_OK;
    TRY(plan_to_batch(n, &b, &x->shape, &m));
    n->out[0] = emit_move(n, &b, &m, x);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_space_to_batch_nd = {.name = "SpaceToBatchND",
                                                   .import = space_to_batch};

// {b0, b1, .., n, s0, s1, .., rest} to {n, s0 b0, s1 b1, .., rest}
static enum mgx_status plan_to_space(struct mgx_node *n, const struct blocks *b,
                                     const struct mgx_shape *x, struct move *m)
{
    const int s = b->spatial;
    if (x->lens[0] % b->product)
        return mgx_node_invalid(n, "a batch of %lld in blocks of %lld", (long long)x->lens[0],
                                (long long)b->product);
    m->split[s] = m->merged[0] = x->lens[0] / b->product;
    m->order[0] = s;
    for (int i = 0; i < s; i++) {
        m->split[i] = b->shape.v[i];
        m->order[1 + 2 * i] = s + 1 + i;
        m->order[2 + 2 * i] = i;
        if (!mgx_mul_i64(x->lens[1 + i], b->shape.v[i], &m->merged[1 + i]))
            return mgx_node_invalid(n, "%lld places times %lld", (long long)x->lens[1 + i],
                                    (long long)b->shape.v[i]);
        if (b->edges.v[2 * i] + b->edges.v[2 * i + 1] > m->merged[1 + i])
            return mgx_node_invalid(n, "crops of more than there is");
    }
    for (int i = 1; i < x->rank; i++)
        m->split[s + i] = x->lens[i];
    for (int i = s + 1; i < x->rank; i++) {
        m->merged[i] = x->lens[i];
        m->order[s + i] = s + i;
    }
    return MGX_OK;
}

static struct mgx_ins *crop_blocks(struct mgx_node *n, const struct blocks *b,
                                   const int64_t *merged, struct mgx_ins *x)
{
    const int64_t *crop = b->edges.v;
    for (int i = 0; i < b->spatial; i++, crop += 2)
        if (crop[0] || crop[1])
            x = mgx_build_slice(n, x, 1 + i, crop[0], merged[1 + i] - crop[1]);
    return x;
}

static enum mgx_status batch_to_space(struct mgx_node *n)
{
    struct blocks b = {0};
    struct move m;
    TRY(read_blocks(n, "crops", &b));
    TRY(plan_to_space(n, &b, &n->in[0]->shape, &m));
    n->out[0] = crop_blocks(n, &b, m.merged, emit_move(n, &b, &m, n->in[0]));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_batch_to_space_nd = {.name = "BatchToSpaceND",
                                                   .import = batch_to_space};
