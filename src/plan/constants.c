// SPDX-License-Identifier: MIT
// Constants that steps read as they are: weights nobody packed, small operands.
//
// A constant that lies in a model's file at an address that does not suit its type is copied to one
// that does. A constant that a kernel in the machine's own memory reads got a twin there when the
// steps were made; here the bytes are copied to all twins, once.
#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "plan/build.h"
#include "plan/join.h"

// The bytes of a root that a step reads, moved to an address that suits their type.
static enum mgx_status align_root(struct mgx_plan_store *store, struct mgx_plan_value *root,
                                  struct mgx_diag *diag)
{
    if (root->place != MGX_PLAN_CONST || root->side != MGX_PLAN_HOST)
        return MGX_OK;
    const struct mgx_tensor t = mgx_tensor_borrow(&root->shape, root->data);
    mgx_plan_join_fill(store, root->data, true);
    if (mgx_tensor_is_aligned(&t))
        return MGX_OK;
    const size_t bytes = (size_t)mgx_shape_space(&root->shape) * mgx_type_size(root->shape.type);
    void *data = mgx_plan_take(store, bytes, diag);
    if (!data)
        return diag->status;
    memcpy(data, root->data, bytes);
    mgx_file_forget_at(root->data, bytes);
    root->data = data;
    assert((uintptr_t)data % 64 == 0);
    return MGX_OK;
}

// Its kernel is chosen at run time, and knows constants by their addresses (choice.h).
static bool is_dynamic(const struct mgx_plan_step *step)
{
    bool dynamic = step->out_value->dynamic;
    for (int i = 0; i < step->in_count && !dynamic; i++)
        dynamic = step->in_value[i]->dynamic;
    return dynamic;
}

static enum mgx_status align_all(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_step *step = &plan->steps[s];
        for (int i = 0; i < step->in_count && !is_dynamic(step); i++)
            if (!step->skip[i] && !(i < 32 && step->kernel->any_address >> i & 1))
                TRY(align_root(&plan->store, mgx_plan_root(step->in_value[i], NULL), diag));
    }
    return MGX_OK;
}

// --- the machine's own memory ---

static enum mgx_status upload(struct mgx_build *b, struct mgx_queue *queue,
                              struct mgx_plan_value *host, struct mgx_diag *diag)
{
    struct mgx_plan_store *store = &b->plan->store;
    struct mgx_plan_value *twin = host->twin;
    const size_t bytes = (size_t)mgx_shape_space(&host->shape) * mgx_type_size(host->shape.type);
    assert(twin->place == MGX_PLAN_CONST && twin->side == MGX_PLAN_DEVICE && !twin->data);
    assert(mgx_shape_equal(&twin->shape, &host->shape));
    int64_t order[1 + 2 * MGX_MAX_RANK] = {
        (int64_t)bytes}; // a literal's, or one that a kernel wanted
    for (int axis = 0; axis < host->shape.rank; axis++) {
        order[1 + 2 * axis] = host->shape.lens[axis];
        order[2 + 2 * axis] = host->shape.strides[axis];
    }
    const struct mgx_plan_key key = {
        .kernel = "upload",
        .source = {host->ins->literal ? host->ins->literal->data : host->data},
        .desc = order,
        .desc_bytes = sizeof order};
    bool fresh;
    void *data = mgx_plan_device_share(store, &key, bytes, &fresh, diag);
    twin->data = data;
    if (!data || !fresh)
        return diag->status;
    mgx_plan_join_fill(store, host->data, false);
    b->plan->uploaded_bytes += bytes;
    return store->machine->memory->copy_in(queue, data, host->data, bytes, diag);
}

static enum mgx_status upload_all(struct mgx_build *b, struct mgx_queue *queue,
                                  struct mgx_diag *diag)
{
    for (int i = 0; i < b->all.count; i++) {
        struct mgx_plan_value *v = b->all.v[i];
        if (v->root == v && v->place == MGX_PLAN_CONST && v->side == MGX_PLAN_HOST && v->twin)
            TRY(upload(b, queue, v, diag));
    }
    TRY(b->plan->machine->memory->wait(queue, diag));
    for (int i = 0; i < b->all.count; i++)
        if (b->all.v[i]->place == MGX_PLAN_CONST && b->all.v[i]->side == MGX_PLAN_HOST)
            mgx_plan_join_drop(&b->plan->store, b->all.v[i]->data);
    return MGX_OK;
}

enum mgx_status mgx_plan_build_constants(struct mgx_build *b, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = b->plan->machine->memory;
    TRY(align_all(b->plan, diag));
    if (!memory)
        return MGX_OK;
    struct mgx_queue *queue = memory->queue_create(memory);
    if (!queue)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a queue of %s", memory->name);
    const enum mgx_status status = upload_all(b, queue, diag);
    memory->queue_destroy(queue);
    return status;
}
