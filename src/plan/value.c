// SPDX-License-Identifier: MIT
// Making values and finding them; see value.h and build.h.
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
    assert(v->offset == 0 && sum >= 0);
    if (offset)
        *offset = sum;
    return v;
}

bool mgx_plan_lies_inside(struct mgx_plan_value *v)
{
    int64_t offset;
    const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    if (v->dynamic || root->dynamic || !mgx_shape_elements(&v->shape))
        return true;
    return offset >= 0 && (size_t)offset <= mgx_shape_bytes(&root->shape) &&
           mgx_shape_bytes(&v->shape) <= mgx_shape_bytes(&root->shape) - (size_t)offset;
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
        assert(mgx_plan_lies_inside(v) && v->side == mgx_plan_root(v, NULL)->side);
    }
    return v;
}
