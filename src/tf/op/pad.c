// SPDX-License-Identifier: MIT
// Pad, PadV2, MirrorPad. The paddings are rows {before, after}, one per axis.
#include <string.h>

#include "tf/node.h"

enum { REFLECT = 1 }; // of the IR operator

static enum mgx_status read_pads(struct mgx_node *n, int64_t *pads)
{
    struct mgx_ints list;
    const int rank = mgx_build_rank(n->in[0]);
    TRY(mgx_tf_need_ints(n, 1, "paddings", &list));
    if (rank < 0 || list.count != 2 * rank)
        return mgx_node_invalid(n, "%d paddings for rank %d", list.count, rank);
    for (int i = 0; i < rank; i++)
        for (int end = 0; end < 2; end++) {
            const int64_t pad = list.v[2 * i + end];
            if (pad < 0 || pad > MGX_DIM_ANY)
                return mgx_node_invalid(n, "padding %lld of axis %d", (long long)pad, i);
            pads[end * rank + i] = pad;
        }
    return MGX_OK;
}

// pad(transpose(x)) as transpose(pad(x)): a convolution that follows takes the padding in.
static struct mgx_ins *pad_under(struct mgx_node *n, struct mgx_ins *x, const int64_t *pads,
                                 double value)
{
    int64_t inner[2 * MGX_MAX_RANK];
    const int rank = x->shape.rank;
    if (!mgx_is(x, &mgx_op_transpose))
        return mgx_build_pad(n, x, pads, value);
    const struct mgx_ints permutation = mgx_ins_ints(x, "permutation");
    for (int i = 0; i < rank; i++) {
        inner[permutation.v[i]] = pads[i];
        inner[rank + permutation.v[i]] = pads[rank + i];
    }
    struct mgx_ins *y = mgx_build_pad(n, x->in[0], inner, value);
    return mgx_build_transpose(n, y, permutation.v, rank);
}

static enum mgx_status pad(struct mgx_node *n)
{
    int64_t pads[2 * MGX_MAX_RANK];
    double value = 0;
    TRY(mgx_node_need(n, 2, 3));
    TRY(read_pads(n, pads));
    if (n->in_count > 2)
        TRY(mgx_tf_need_real(n, 2, "constant_values", &value));
    n->out[0] = pad_under(n, n->in[0], pads, value);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_pad = {.name = "Pad", .import = pad};
const struct mgx_tf_op mgx_tf_pad_v2 = {.name = "PadV2", .import = pad};

// SYMMETRIC repeats the edge: one copy of the edge, then its reflection without it, axis by axis.
static struct mgx_ins *mirror(struct mgx_node *n, struct mgx_ins *x, const int64_t *pads)
{
    const int rank = x->shape.rank;
    for (int i = 0; x && i < rank; i++) {
        struct mgx_ins *parts[3];
        int count = 0;
        const int64_t length = x->shape.lens[i];
        const struct mgx_attr *axis = MGX_ATTRS(mgx_ints("axes", (int64_t[]){i}, 1));
        if (pads[i])
            parts[count++] = mgx_build_emit(n, &mgx_op_reverse, axis,
                                            MGX_IN(mgx_build_slice(n, x, i, 0, pads[i])));
        parts[count++] = x;
        if (pads[rank + i])
            parts[count++] =
                mgx_build_emit(n, &mgx_op_reverse, axis,
                               MGX_IN(mgx_build_slice(n, x, i, length - pads[rank + i], length)));
        x = count > 1 ? mgx_build_concat(n, i, parts, count) : x;
    }
    return x;
}

static enum mgx_status mirror_pad(struct mgx_node *n)
{
    int64_t pads[2 * MGX_MAX_RANK];
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_static(n));
    TRY(read_pads(n, pads));
    const char *mode = mgx_tf_text(n, "mode", "");
    const bool reflect = strcmp(mode, "REFLECT") == 0;
    const int rank = n->in[0]->shape.rank;
    if (!reflect && strcmp(mode, "SYMMETRIC") != 0)
        return mgx_node_invalid(n, "mode is \"%.40s\", not REFLECT or SYMMETRIC", mode);
    for (int i = 0; i < 2 * rank; i++)
        if (pads[i] > n->in[0]->shape.lens[i % rank] - reflect)
            return mgx_node_invalid(n, "padding %lld of axis %d is longer than the axis",
                                    (long long)pads[i], i % rank);
    n->out[0] =
        reflect
            ? mgx_build_emit(n, &mgx_op_pad,
                             MGX_ATTRS(mgx_int("mode", REFLECT), mgx_ints("pads", pads, 2 * rank)),
                             MGX_IN(n->in[0]))
            : mirror(n, n->in[0], pads);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_mirror_pad = {.name = "MirrorPad", .import = mirror_pad};
