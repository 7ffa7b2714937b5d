// SPDX-License-Identifier: MIT
// Groups; see region.h.
#include "pass/engine/region.h"

#include <assert.h>

#include "op/op.h"
#include "pass/engine/body.h"
#include "pass/engine/name.h"
#include "pass/engine/walk.h"

bool mgx_is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || (ins->op->flags & MGX_OP_POINTWISE);
}

bool mgx_is_one_step(const struct mgx_ins *ins)
{
    return mgx_is_elementwise(ins) && mgx_shape_is_static(&ins->shape) &&
           mgx_shape_elements(&ins->shape) == 1;
}

struct mgx_ins *mgx_group_gives(const struct mgx_ins *group, const struct mgx_ins *inner)
{
    const int i = mgx_parameter_index(inner);
    return i >= 0 && i < group->in_count ? group->in[i] : NULL;
}

bool mgx_region_has_kernel(const struct mgx_pass_call *c, struct mgx_ins *ins, const char *tag)
{
    const struct mgx_region one = {.ins = {ins}, .count = 1};
    const struct mgx_pass_target *target = &c->options->target;
    return target->supports && target->supports(target->user, tag, &one);
}

bool mgx_region_keeps(const struct mgx_pass_call *c, struct mgx_ins *ins, const char *tag)
{
    const struct mgx_pass_target *t = &c->options->target;
    const struct mgx_region one = {.ins = {ins}, .count = 1};
    if (ins && t->supports && !t->supports(t->user, tag, &one)) {
        mgx_erase_dead(ins);
        return false;
    }
    return ins;
}

bool mgx_region_add(struct mgx_region *r, struct mgx_ins *ins)
{
    if (mgx_body_has(r->ins, r->count, ins))
        return true;
    if (r->count == MGX_REGION_INS)
        return false;
    r->ins[r->count++] = ins;
    return true;
}

bool mgx_region_closed(struct mgx_region *r)
{
    mgx_body_sort(r->ins, r->count);
    const struct mgx_ins *inputs[MGX_REGION_INPUTS];
    int count = 0;
    for (int i = 0; i < r->count; i++) {
        for (const struct mgx_use *use = r->ins[i]->uses; use && i + 1 < r->count; use = use->next)
            if (!mgx_body_has(r->ins, r->count, use->user))
                return false;
        for (int k = 0; k < r->ins[i]->in_count; k++) {
            bool known = mgx_body_has(r->ins, r->count, r->ins[i]->in[k]);
            for (int j = 0; j < count && !known; j++)
                known = inputs[j] == r->ins[i]->in[k];
            if (!known && count == MGX_REGION_INPUTS)
                return false;
            if (!known)
                inputs[count++] = r->ins[i]->in[k];
        }
    }
    return true;
}

// What the region reads from outside becomes a parameter where it is first read.
static struct mgx_ins *make_param(struct mgx_body *b, struct mgx_ins *in)
{
    return b->in_count < MGX_REGION_INPUTS ? mgx_body_param(b, in, &in->shape) : NULL;
}

static enum mgx_status fill_body(struct mgx_pass_call *c, const struct mgx_region *r,
                                 struct mgx_body *b)
{
    struct mgx_ins *last = NULL;
    for (int i = 0; i < r->count; i++) {
        last = mgx_body_copy(b, r->ins[i]);
        if (last)
            mgx_copy_origin(last, r->ins[i]);
    }
    mgx_add_return(b->module, &last, 1);
    TRY(mgx_program_status(c->program, c->diag));
    if (!last)
        return mgx_fail(c->diag, MGX_INTERNAL, "a group of %d instructions could not be copied",
                        r->count);
    return MGX_OK;
}

enum mgx_status mgx_region_group(struct mgx_pass_call *c, struct mgx_region *r, const char *tag)
{
    char name[MGX_GROUP_NAME];
    mgx_name_group(r->ins, r->count, tag, name);
    struct mgx_body b = {.make = make_param};
    if (!mgx_body_begin(&b, c->program, name))
        return mgx_program_status(c->program, c->diag);
    const enum mgx_status status = fill_body(c, r, &b);
    mgx_body_end(&b);
    TRY(status);
    struct mgx_ins *last = r->ins[r->count - 1];
    void *attr = NULL;
    TRY(mgx_attr_make(&mgx_op_group, MGX_ATTRS(mgx_text("tag", tag)), &c->program->arena, &attr,
                      c->diag));
    struct mgx_ins *group =
        mgx_insert(last->owner, last, &mgx_op_group, attr, b.in, b.in_count, &b.module, 1);
    TRY(mgx_program_status(c->program, c->diag));
    for (int i = 0; i < r->count; i++)
        mgx_copy_origin(group, r->ins[i]);
    mgx_replace_uses(last, group);
    for (int i = r->count; i-- > 0;)
        mgx_remove(r->ins[i]);
    c->changed = true;
    return MGX_OK;
}

enum mgx_status mgx_region_fuse(struct mgx_pass_call *c, struct mgx_region *r, const char *tag)
{
    const struct mgx_pass_options *options = c->options;
    assert(r->count > 0 && mgx_region_closed(r));
    if (options->target.supports && !options->target.supports(options->target.user, tag, r))
        return MGX_OK;
    return mgx_region_group(c, r, tag);
}
