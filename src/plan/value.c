// SPDX-License-Identifier: MIT
// Values and their twins; see value.h and build.h.
#include "plan/value.h"

#include <assert.h>
#include <string.h>

#include "plan/build.h"
#include "plan/transfer.h"

struct mgx_plan_value *mgx_plan_root(struct mgx_plan_value *v, int64_t *offset)
{
    int64_t sum = v->offset;
    while (v->root != v) {
        v = v->root;
        sum += v->root != v ? v->offset : 0;
    }
    if (offset)
        *offset = sum;
    return v;
}

struct mgx_plan_value *mgx_plan_value_of(const struct mgx_plan *plan, const struct mgx_ins *ins)
{
    const bool ours = ins->owner == mgx_program_main(plan->program);
    assert(!ours || (ins->index >= 0 && ins->index < plan->value_count &&
                     plan->values[ins->index].ins == ins));
    return ours ? &plan->values[ins->index] : NULL;
}

bool mgx_plan_build_list(struct mgx_build *b, struct mgx_plan_value *v)
{
    return MGX_PUSH(&b->all, &b->plan->store.arena, v);
}

struct mgx_plan_value *mgx_plan_build_value(struct mgx_build *b, const struct mgx_ins *ins,
                                            const struct mgx_shape *shape, enum mgx_plan_side side)
{
    struct mgx_plan_value *v = MGX_NEW(&b->plan->store.arena, struct mgx_plan_value);
    assert(side == MGX_PLAN_HOST || b->plan->machine->memory);
    if (!v || !mgx_plan_build_list(b, v))
        return NULL;
    v->ins = ins;
    v->shape = *shape;
    v->root = v;
    v->side = side;
    return v;
}

struct mgx_plan_value *mgx_plan_build_slice(struct mgx_build *b, const struct mgx_ins *ins,
                                            const struct mgx_shape *shape,
                                            struct mgx_plan_value *of, int64_t offset)
{
    struct mgx_plan_value *v = mgx_plan_build_value(b, ins, shape, mgx_plan_root(of, NULL)->side);
    if (v) {
        v->root = of;
        v->offset = offset;
    }
    return v;
}

// The root's bytes on the other side, as they are now.
static enum mgx_status find_twin(struct mgx_build *b, const struct mgx_ins *ins,
                                 struct mgx_plan_value *root, struct mgx_plan_value **out,
                                 struct mgx_diag *diag)
{
    const bool constant = root->place == MGX_PLAN_CONST;
    assert(!constant || root->side == MGX_PLAN_HOST);
    if (root->twin && root->twin_age == root->writes) {
        *out = root->twin;
        return MGX_OK;
    }
    *out = mgx_plan_build_value(b, root->ins, &root->shape,
                                root->side == MGX_PLAN_HOST ? MGX_PLAN_DEVICE : MGX_PLAN_HOST);
    if (!*out)
        return mgx_fail_memory(diag);
    if (constant)
        (*out)->place = MGX_PLAN_CONST; // its bytes are there before any run
    else
        TRY(mgx_plan_build_transfer(b, ins, root, *out, diag));
    root->twin = *out;
    root->twin_age = root->writes;
    return MGX_OK;
}

enum mgx_status mgx_plan_build_on(struct mgx_build *b, const struct mgx_ins *ins,
                                  struct mgx_plan_value *v, enum mgx_plan_side side,
                                  struct mgx_plan_value **out, struct mgx_diag *diag)
{
    int64_t offset;
    struct mgx_plan_value *root = mgx_plan_root(v, &offset), *twin;
    *out = v;
    if (root->side == side)
        return MGX_OK;
    assert(b->plan->machine->memory && !root->dynamic);
    TRY(find_twin(b, ins, root, &twin, diag));
    *out = v == root ? twin : mgx_plan_build_slice(b, v->ins, &v->shape, twin, offset);
    return *out ? MGX_OK : mgx_fail_memory(diag);
}
