// SPDX-License-Identifier: MIT
// Joined weights; see join.h. Those that anything but a product of the main module reads become
// literals before.
#include "plan/join.h"

#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "op/eval/eval.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

struct mgx_plan_join {
    struct mgx_plan_join *next;
    const struct mgx_ins *ins;
    struct mgx_shape shape;
    unsigned char *data;
    size_t bytes;
    bool full, kept;
};

enum { BEHIND = 4096 }; // kernels may read a vector beyond the end

// --- which stay in pieces ---

static bool is_product(const struct mgx_op *op)
{
    return op == &mgx_op_dot || op == &mgx_op_convolution;
}

static bool is_static(const struct mgx_ins *ins)
{
    bool all = mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count; i++)
        all = all && mgx_shape_is_static(&ins->in[i]->shape);
    return all;
}

// Is input `slot` of a group the weights of its product, and nothing else there?
static bool is_weight_inside(const struct mgx_ins *group, int slot)
{
    struct mgx_ins *params[MGX_REGION_INPUTS];
    if (mgx_module_parameters(group->mod[0], params, MGX_REGION_INPUTS) != group->in_count)
        return false;
    const struct mgx_use *use = params[slot]->uses;
    return use && !use->next && use->slot == 1 && is_product(use->user->op);
}

static bool only_weights(const struct mgx_ins *ins, int depth)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        if (user->owner != ins->owner || !is_static(user))
            return false;
        const bool view = (user->op->flags & MGX_OP_VIEW) && depth && only_weights(user, depth - 1);
        const bool inside = user->op == &mgx_op_group && user->in_count <= MGX_REGION_INPUTS &&
                            is_weight_inside(user, use->slot);
        if (!view && !inside && !(is_product(user->op) && use->slot == 1))
            return false;
    }
    return ins->uses != NULL;
}

static enum mgx_status make_literal(struct mgx_ins *ins, struct mgx_diag *diag)
{
    struct mgx_arena arena;
    struct mgx_eval eval = {.strings = &arena};
    struct mgx_tensor whole = {0};
    mgx_arena_init(&arena);
    const struct mgx_tensor **in = MGX_NEW_ARRAY(&arena, const struct mgx_tensor *, ins->in_count);
    enum mgx_status status = in ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; in && i < ins->in_count; i++)
        in[i] = ins->in[i]->literal;
    if (status == MGX_OK)
        status = mgx_eval_op(&eval, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape,
                             &whole, diag);
    struct mgx_ins *literal = status == MGX_OK ? mgx_add_literal(ins->owner, &whole) : NULL;
    if (literal)
        mgx_replace(ins, literal);
    mgx_tensor_release(&whole);
    mgx_arena_fini(&arena);
    TRY(status);
    return mgx_program_status(literal ? literal->owner->program : ins->owner->program, diag);
}

enum mgx_status mgx_plan_settle_joins(struct mgx_program *p, struct mgx_diag *diag)
{
    for (int m = 0; m < p->module_count; m++)
        MGX_EACH (ins, p->modules[m]) {
            if (mgx_is_joined_weights(ins) && (m > 0 || !only_weights(ins, 2)))
                TRY(make_literal(ins, diag));
        }
    return MGX_OK;
}

// --- addresses ---

static void release(void *user)
{
    const struct mgx_plan_join *j = user;
    mgx_memory_unreserve(j->data, j->bytes + BEHIND);
}

const void *mgx_plan_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                          const struct mgx_shape *shape, struct mgx_diag *diag)
{
    struct mgx_plan_join *j = MGX_NEW(&store->arena, struct mgx_plan_join);
    if (!j) {
        mgx_fail_memory(diag);
        return NULL;
    }
    assert(mgx_is_joined_weights(ins) && !store->parent);
    j->ins = ins;
    j->shape = *shape;
    j->bytes = (size_t)mgx_shape_space(shape) * mgx_type_size(shape->type);
    j->data = mgx_memory_reserve(j->bytes + BEHIND);
    if (!j->data) {
        mgx_fail(diag, MGX_NO_MEMORY, "out of memory: joined weights of %zu bytes", j->bytes);
        return NULL;
    }
    if (!mgx_plan_at_end(store, release, j, diag))
        return NULL;
    const struct mgx_plan_source source = {-1 - store->join_count, 0};
    if (!mgx_plan_note_source(store, j->data, j->bytes, source)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    store->join_count++;
    j->next = store->joins;
    store->joins = j;
    return j->data;
}

static struct mgx_plan_join *find(const struct mgx_plan_store *store, const void *data)
{
    for (struct mgx_plan_join *j = store->joins; j; j = j->next)
        if ((uintptr_t)data - (uintptr_t)j->data < j->bytes)
            return j;
    return NULL;
}

void mgx_plan_join_fill(struct mgx_plan_store *store, const void *data, bool keep)
{
    struct mgx_plan_join *j = find(store, data);
    if (!j)
        return;
    j->kept |= keep;
    if (j->full)
        return;
    int64_t axis = mgx_ins_int(j->ins, "axis"), at = 0;
    axis += axis < 0 ? j->shape.rank : 0;
    const int64_t step = j->shape.strides[axis] * (int64_t)mgx_type_size(j->shape.type);
    for (int i = 0; i < j->ins->in_count; i++) {
        const struct mgx_tensor *from = j->ins->in[i]->literal;
        struct mgx_shape slice = from->shape;
        memcpy(slice.strides, j->shape.strides, sizeof slice.strides);
        struct mgx_tensor to = mgx_tensor_borrow(&slice, j->data + at * step);
        mgx_tensor_copy(from, &to);
        at += from->shape.lens[axis];
        mgx_file_forget_at(from->data,
                           (size_t)mgx_shape_space(&from->shape) * mgx_type_size(from->shape.type));
    }
    j->full = true;
}

void mgx_plan_join_drop(struct mgx_plan_store *store, const void *data)
{
    struct mgx_plan_join *j = find(store, data);
    if (!j || j->kept || !j->full)
        return;
    mgx_memory_forget(j->data, j->bytes + BEHIND);
    j->full = false;
}
