// SPDX-License-Identifier: MIT
// Results of an operator that gives several, one by one.
//
//     get_tuple_elem[i](f(x))  =>  group[member](x), whose body is just that
//
// For targets whose steps have one result: whoever reads two of them has f computed twice, beside
// the rest and not on the host. Asks the target about every member (tag "member").
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/pass.h"

static bool wants(const struct mgx_pass_call *c, struct mgx_ins *member)
{
    struct mgx_ins *from = member->in[0];
    const struct mgx_region r = {.ins = {from, member}, .count = 2};
    return from->shape.type == MGX_TUPLE && !from->mod_count && !mgx_is(from, &mgx_op_param) &&
           mgx_shape_is_static(&member->shape) && c->options->target.supports &&
           c->options->target.supports(c->options->target.user, "member", &r);
}

static enum mgx_status split(struct mgx_pass_call *c, struct mgx_ins *member)
{
    struct mgx_ins *from = member->in[0];
    struct mgx_ins *own = mgx_emit_again(member, from, from->in, from->in_count);
    struct mgx_ins *result = own ? mgx_emit_again(member, member, &own, 1) : NULL;
    if (!result)
        return mgx_program_status(c->program, c->diag);
    if (member == member->owner->last)
        mgx_add_return(member->owner, &result, 1);
    mgx_replace_uses(member, result);
    struct mgx_region r = {.ins = {own, result}, .count = 2};
    c->changed = true;
    return mgx_region_closed(&r) ? mgx_region_group(c, &r, "member") : MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m)
        if (mgx_is(ins, &mgx_op_get_tuple_elem) && ins->uses && wants(c, ins))
            TRY(split(c, ins));
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_split_members = {
    .name = "split_members",
    .meaning = "results of an operator that gives several are computed one by one",
    .module = run,
    .by_size = true,
};
