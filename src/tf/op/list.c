// SPDX-License-Identifier: MIT
// Lists of tensors: {count, member..} as one tensor. One that was reserved without knowing its
// members' shape is a handle until something is put in.
#include <string.h>

#include "tf/graph.h"

static enum mgx_status reserve(struct mgx_node *n)
{
    struct mgx_tf_handle list = {.kind = MGX_TF_LIST_OF_TENSORS, .rank = -1};
    struct mgx_ints lens;
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 0, "element_shape", &lens));
    TRY(mgx_tf_need_int(n, 1, "num_elements", &list.count));
    list.type = mgx_tf_type(n, "element_dtype", MGX_FLOAT);
    bool known = n->in[0]->shape.rank == 1 && lens.count < MGX_MAX_RANK;
    for (int i = 0; known && i < lens.count; i++) {
        known = lens.v[i] >= 0;
        list.lens[i + 1] = lens.v[i];
    }
    if (list.count < 0 || list.count > MGX_DIM_ANY)
        return mgx_node_invalid(n, "a list of %lld members", (long long)list.count);
    list.lens[0] = list.count;
    n->out[0] = known ? mgx_build_filled(n, list.type, lens.count + 1, list.lens, 0)
                      : mgx_tf_new_handle(n, list);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_list_reserve = {.name = "TensorListReserve",
                                                     .import = reserve};

// The list as a tensor; one without members becomes one of zeros of the member's shape.
static enum mgx_status as_tensor(struct mgx_node *n, const struct mgx_ins *member,
                                 struct mgx_ins **out)
{
    const struct mgx_tf_handle *list = mgx_tf_handle_of(n, n->in[0]);
    int64_t lens[MGX_MAX_RANK];
    *out = n->in[0];
    if (!list)
        return MGX_OK;
    if (list->kind != MGX_TF_LIST_OF_TENSORS || !member)
        return mgx_node_unsupported(n, "a list that nothing was put into");
    if (!mgx_build_is_static(member) || member->shape.rank == MGX_MAX_RANK)
        return mgx_node_unsupported(n, "a member whose lengths are known at run time only");
    lens[0] = list->count;
    memcpy(lens + 1, member->shape.lens, (size_t)member->shape.rank * sizeof *lens);
    *out = mgx_build_filled(n, member->shape.type, member->shape.rank + 1, lens, 0);
    return MGX_OK;
}

static enum mgx_status set_item(struct mgx_node *n)
{
    struct mgx_ins *list, *member;
    TRY(mgx_node_need(n, 3, 3));
    member = n->in[2];
    if (mgx_tf_handle_of(n, member))
        return mgx_node_unsupported(n, "a list of lists");
    TRY(as_tensor(n, member, &list));
    struct mgx_ins *place = mgx_build_convert(n, n->in[1], MGX_INT64);
    place = mgx_build_reshape(n, place, (int64_t[]){1, 1}, 2);
    struct mgx_ins *row = mgx_build_unsqueeze(n, member, (int64_t[]){0}, 1);
    n->out[0] = mgx_build_emit(n, &mgx_op_scatternd_none, NULL, MGX_IN(list, place, row));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_list_set_item = {
    .name = "TensorListSetItem", .import = set_item, .takes = MGX_TF_HANDLES};

static enum mgx_status pick(struct mgx_node *n)
{
    struct mgx_ins *list;
    TRY(mgx_node_need(n, 3, 3));
    TRY(as_tensor(n, NULL, &list));
    n->out[0] = mgx_build_gather(n, list, n->in[1], 0);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_list_gather = {
    .name = "TensorListGather", .import = pick, .takes = MGX_TF_HANDLES};
const struct mgx_tf_op mgx_tf_tensor_list_get_item = {
    .name = "TensorListGetItem", .import = pick, .takes = MGX_TF_HANDLES};

static enum mgx_status from_tensor(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    n->out[0] = n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_list_from_tensor = {.name = "TensorListFromTensor",
                                                         .import = from_tensor};

static enum mgx_status stack(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    return as_tensor(n, NULL, &n->out[0]);
}
const struct mgx_tf_op mgx_tf_tensor_list_stack = {
    .name = "TensorListStack", .import = stack, .takes = MGX_TF_HANDLES};

static enum mgx_status length(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_tf_handle *list = mgx_tf_handle_of(n, n->in[0]);
    struct mgx_ins *count =
        list ? mgx_build_scalar(n, MGX_INT64, (double)list->count) : mgx_build_dim(n, n->in[0], 0);
    count = mgx_build_convert(n, count, MGX_INT32);
    n->out[0] = count && count->shape.rank ? mgx_build_reshape(n, count, NULL, 0) : count;
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_tensor_list_length = {
    .name = "TensorListLength", .import = length, .takes = MGX_TF_HANDLES};
