// SPDX-License-Identifier: MIT
// A value made of totals of one tensor becomes a group, which reads the tensor once.
//
//     f(reduce_min(x), reduce_max(x), s)  =>  group[tag=total](x, s)       f element-wise, one value
//
// What the scale and the zero point of a dynamic quantization are. Runs after element-wise chains
// were fused, so f is one instruction.
#include "pass/engine/region.h"
#include "pass/engine/total.h"
#include "pass/engine/walk.h"

// Of one tensor, each for itself alone, the first first as the module has them.
static bool find_totals(struct mgx_ins *value, struct mgx_region *r)
{
    const struct mgx_ins *x = NULL;
    for (int i = 0; i < value->in_count; i++) {
        struct mgx_ins *in = value->in[i];
        if (!mgx_is_total(in))
            continue;
        if ((x && in->in[0] != x) || in->owner != value->owner)
            return false;
        for (const struct mgx_use *use = in->uses; use; use = use->next)
            if (use->user != value)
                return false;
        x = in->in[0];
        if (!mgx_region_add(r, in))
            return false;
    }
    return x != NULL;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        struct mgx_region region = {.count = 0};
        if (mgx_is_one_step(ins) && find_totals(ins, &region) && mgx_region_add(&region, ins) &&
            mgx_region_closed(&region))
            TRY(mgx_region_fuse(c, &region, "total"));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_totals = {
    .name = "fuse_totals",
    .meaning = "a value made of totals of one tensor becomes a group",
    .module = run,
    .by_size = true,
};
