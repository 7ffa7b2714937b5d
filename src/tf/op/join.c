// SPDX-License-Identifier: MIT
// One tensor of several and several of one: ConcatV2, Concat, Pack, Unpack, Split, SplitV.
#include <string.h>

#include "tf/node.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_COMPLEX)

// Inputs first..first + count - 1 along the axis that input `at` gives.
static enum mgx_status concat(struct mgx_node *n, int first, int count, int at)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_tf_need_int(n, at, "axis", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(n->in[first]), &axis));
    n->out[0] = count == 1 ? n->in[first] : mgx_build_concat(n, axis, n->in + first, count);
    return MGX_OK;
}

static enum mgx_status concat_v2(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, -1));
    return concat(n, 0, n->in_count - 1, n->in_count - 1);
}
const struct mgx_tf_op mgx_tf_concat_v2 = {.name = "ConcatV2", .import = concat_v2, .takes = ANY};

static enum mgx_status concat_v1(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, -1));
    return concat(n, 1, n->in_count - 1, 0);
}
const struct mgx_tf_op mgx_tf_concat = {.name = "Concat", .import = concat_v1, .takes = ANY};

static enum mgx_status pack(struct mgx_node *n)
{
    int axis = 0;
    TRY(mgx_node_need_all(n));
    TRY(mgx_build_axis(n, mgx_tf_int(n, "axis", 0), mgx_build_rank(n->in[0]) + 1, &axis));
    struct mgx_ins **parts = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    if (!parts)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < n->in_count; i++)
        parts[i] = mgx_build_unsqueeze(n, n->in[i], (int64_t[]){axis}, 1);
    n->out[0] = n->in_count == 1 ? parts[0] : mgx_build_concat(n, axis, parts, n->in_count);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_pack = {.name = "Pack", .import = pack, .takes = ANY};

static enum mgx_status need_length(struct mgx_node *n, const struct mgx_ins *x, int axis)
{
    if (mgx_build_fixed_dim(x, axis))
        return MGX_OK;
    return mgx_node_unsupported(n, "the length of axis %d is known at run time only", axis);
}

static enum mgx_status unpack(struct mgx_node *n)
{
    int axis = 0;
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    TRY(mgx_build_axis(n, mgx_tf_int(n, "axis", 0), mgx_build_rank(x), &axis));
    TRY(need_length(n, x, axis));
    const int64_t count = x->shape.lens[axis], said = mgx_tf_int(n, "num", count);
    if (said != count)
        return mgx_node_invalid(n, "num is %lld, the axis has %lld", (long long)said,
                                (long long)count);
    TRY(mgx_tf_results(n, count));
    for (int i = 0; i < n->out_count; i++)
        n->out[i] =
            mgx_build_squeeze(n, mgx_build_slice(n, x, axis, i, i + 1), (int64_t[]){axis}, 1);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_unpack = {.name = "Unpack", .import = unpack, .takes = ANY};

static enum mgx_status slices(struct mgx_node *n, struct mgx_ins *x, int axis, const int64_t *sizes,
                              int64_t count)
{
    int64_t start = 0;
    TRY(mgx_tf_results(n, count));
    for (int i = 0; i < n->out_count; start += sizes[i++])
        n->out[i] = mgx_build_slice(n, x, axis, start, start + sizes[i]);
    return MGX_OK;
}

static enum mgx_status split(struct mgx_node *n)
{
    int64_t given = 0;
    int axis = 0;
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *x = n->in[1];
    TRY(mgx_tf_need_int(n, 0, "split_dim", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(x), &axis));
    TRY(need_length(n, x, axis));
    const int64_t parts = mgx_tf_int(n, "num_split", 0), length = x->shape.lens[axis];
    if (parts < 1 || length % parts || parts > INT32_MAX)
        return mgx_node_invalid(n, "%lld parts of a length of %lld", (long long)parts,
                                (long long)length);
    TRY(mgx_tf_results(n, parts));
    int64_t *sizes = MGX_NEW_ARRAY(n->scratch, int64_t, parts);
    if (!sizes)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < parts; i++)
        sizes[i] = length / parts;
    return slices(n, x, axis, sizes, parts);
}
const struct mgx_tf_op mgx_tf_split = {.name = "Split", .import = split, .takes = ANY};

// One size may be -1: what is left over.
static enum mgx_status split_v(struct mgx_node *n)
{
    int64_t given = 0, left;
    int axis = 0, open = -1;
    struct mgx_ints list;
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ins *x = n->in[0];
    TRY(mgx_tf_need_ints(n, 1, "size_splits", &list));
    TRY(mgx_tf_need_int(n, 2, "split_dim", &given));
    TRY(mgx_build_axis(n, given, mgx_build_rank(x), &axis));
    TRY(need_length(n, x, axis));
    int64_t *sizes = MGX_NEW_ARRAY(n->scratch, int64_t, list.count);
    if (!sizes)
        return mgx_fail_memory(n->diag);
    left = x->shape.lens[axis];
    for (int i = 0; i < list.count; i++) {
        sizes[i] = list.v[i];
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] < 0 || sizes[i] > left)
            return mgx_node_invalid(n, "size %lld of part %d does not fit in %lld",
                                    (long long)sizes[i], i, (long long)x->shape.lens[axis]);
        else
            left -= sizes[i];
    }
    if (open < 0 && left)
        return mgx_node_invalid(n, "the sizes leave %lld over", (long long)left);
    if (open >= 0)
        sizes[open] = left;
    return slices(n, x, axis, sizes, list.count);
}
const struct mgx_tf_op mgx_tf_split_v = {.name = "SplitV", .import = split_v, .takes = ANY};
