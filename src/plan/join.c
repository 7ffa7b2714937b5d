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
#include "plan/shared.h"

// --- which stay in pieces ---

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
    return use && !use->next && use->slot == 1 && mgx_is_product(use->user);
}

static bool only_weights(const struct mgx_ins *ins, int depth, bool late)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        if (user->owner != ins->owner || (!late && !is_static(user)))
            return false;
        if (user->op != &mgx_op_convert && mgx_is_joined_weights(user)) // it speaks for itself
            continue;
        const bool view =
            (user->op->flags & MGX_OP_VIEW) && depth && only_weights(user, depth - 1, late);
        const bool inside = user->op == &mgx_op_group && user->in_count <= MGX_REGION_INPUTS &&
                            is_weight_inside(user, use->slot);
        if (!view && !inside && !(mgx_is_product(user) && use->slot == 1))
            return false;
    }
    return ins->uses != NULL;
}

static enum mgx_status make_literal(struct mgx_ins *ins, struct mgx_diag *diag)
{
    struct mgx_tensor whole = {0};
    TRY(mgx_tensor_create(&whole, &ins->shape, diag));
    mgx_plan_join_write(NULL, ins, &whole);
    struct mgx_ins *literal = mgx_add_literal(ins->owner, &whole);
    if (literal)
        mgx_replace(ins, literal);
    mgx_tensor_release(&whole);
    return mgx_program_status(literal ? literal->owner->program : ins->owner->program, diag);
}

enum mgx_status mgx_plan_settle_joins(struct mgx_program *p, bool late, struct mgx_diag *diag)
{
    for (int m = 0; m < p->module_count; m++)
        MGX_EACH (ins, p->modules[m]) {
            if (mgx_is_joined_weights(ins) && (m > 0 || !only_weights(ins, 2, late)))
                TRY(make_literal(ins, diag));
        }
    return MGX_OK;
}

// --- addresses ---

static void release(void *user)
{
    const struct mgx_plan_join *j = user;
    assert(atomic_load(&j->storage.refs) == 1);
    mgx_memory_unreserve(j->data, j->bytes + MGX_PLAN_BEHIND);
}

// The plan's own share is the last.
static void keep_storage(struct mgx_storage *storage)
{
    (void)storage;
    assert(false);
}

static struct mgx_plan_join *new_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                                      const struct mgx_shape *shape)
{
    struct mgx_plan_join *j = MGX_NEW(&store->arena, struct mgx_plan_join);
    if (!j)
        return NULL;
    j->ins = ins;
    j->shape = *shape;
    j->bytes = (size_t)mgx_shape_space(shape) * mgx_type_size(shape->type);
    return j;
}

// By which a file names them, and plans for other sizes.
static bool name_join(struct mgx_plan_store *store, const struct mgx_plan_join *j)
{
    const struct mgx_carry_source source = {-1 - store->join_count, 0};
    return mgx_plan_note_source(store, j->data, j->bytes, source) &&
           mgx_plan_shared_name_join(store, source.number, j->ins, &j->shape);
}

const void *mgx_plan_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                          const struct mgx_shape *shape, struct mgx_diag *diag)
{
    assert(mgx_is_joined_weights(ins) && !store->parent);
    struct mgx_plan_join *j = new_join(store, ins, shape);
    if (!j) {
        mgx_fail_memory(diag);
        return NULL;
    }
    j->data = mgx_memory_reserve(j->bytes + MGX_PLAN_BEHIND);
    if (!j->data) {
        mgx_fail(diag, MGX_NO_MEMORY, "out of memory: joined weights of %zu bytes", j->bytes);
        return NULL;
    }
    j->storage = (struct mgx_storage){
        .refs = 1, .data = j->data, .bytes = j->bytes, .release = keep_storage};
    if (!mgx_plan_at_end(store, release, j, diag))
        return NULL;
    if (!name_join(store, j)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    store->join_count++;
    j->next = store->joins;
    store->joins = j;
    return j->data;
}
