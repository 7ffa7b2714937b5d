// SPDX-License-Identifier: MIT
// The roles of what a product takes; see product.h.
#include "pass/engine/product.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/body.h"
#include "pass/engine/constant.h"

enum { LONGEST_WAY = 16 }; // of steps from one to another

static bool is_inside(const struct mgx_ins *ins)
{
    return !(ins->op->flags & MGX_OP_BUILTIN);
}

// What the body does to the product's first operand; the number of instructions that do it.
static int read_before(struct mgx_product_roles *roles)
{
    struct mgx_ins *in = roles->product->in[0];
    if (in->op == &mgx_op_pad && in->in_count == 1) {
        roles->pad = in;
        in = in->in[0];
    }
    if (!is_inside(in))
        return roles->pad != NULL;
    if (in->op == &mgx_op_mul && !roles->pad)
        roles->factor = in;
    else if (in->in_count == 1)
        roles->make = in;
    return 1 + (roles->pad != NULL);
}

static bool read_body(const struct mgx_ins *group, struct mgx_product_roles *roles)
{
    const struct mgx_module *body = roles->body = group->mod[0];
    int count = 0;
    for (struct mgx_ins *i = body->first; i; i = i->next) {
        count += is_inside(i);
        if (mgx_is_product(i) && !roles->product)
            roles->product = i;
    }
    if (!roles->product || mgx_module_result_count(body) != 1)
        return false;
    struct mgx_ins *last = mgx_module_result(body, 0);
    roles->end = last == roles->product ? NULL : last;
    return count == 1 + read_before(roles) + (roles->end != NULL);
}

bool mgx_read_product(const struct mgx_ins *ins, struct mgx_product_roles *out)
{
    *out = (struct mgx_product_roles){.body = NULL};
    if (ins->op == &mgx_op_group && ins->mod_count == 1)
        return strcmp(mgx_attr_text(ins->op, ins->attr, "tag"), "epilogue") == 0 &&
               read_body(ins, out);
    out->product = (struct mgx_ins *)(uintptr_t)ins;
    return mgx_is_product(ins);
}

int mgx_product_operand(const struct mgx_product_roles *roles, int i)
{
    assert(i >= 0 && i < roles->product->in_count);
    if (!roles->body)
        return i;
    const struct mgx_ins *in = roles->product->in[i];
    const struct mgx_ins *before = roles->factor ? roles->factor
                                   : roles->make ? roles->make
                                                 : roles->pad;
    return mgx_parameter_index(i == 0 && before ? before->in[0] : in);
}

static bool leads(const struct mgx_product_roles *roles, const struct mgx_ins *from,
                  const struct mgx_ins *to, int depth)
{
    for (int i = 0; i < to->in_count && depth > 0; i++)
        if (to->in[i] == from || (mgx_body_has(roles->steps, roles->step_count, to->in[i]) &&
                                  leads(roles, from, to->in[i], depth - 1)))
            return true;
    return false;
}

bool mgx_step_leads(const struct mgx_product_roles *roles, const struct mgx_ins *from,
                    const struct mgx_ins *to)
{
    return leads(roles, from, to, LONGEST_WAY);
}

bool mgx_keeps_zeros(const struct mgx_pass_options *options, struct mgx_ins *ins)
{
    const struct mgx_product_roles roles = {.product = ins, .zeros = true};
    double zero;
    bool known = ins->op == &mgx_op_quant_dot && ins->in_count > 2 &&
                 options->target.multiplies_bytes && mgx_type_is_byte(ins->in[0]->shape.type) &&
                 mgx_type_is_byte(ins->in[1]->shape.type);
    for (int i = 2; i < ins->in_count && known; i++)
        known = mgx_splat_value(ins->in[i], &zero);
    return known && mgx_target_takes(options, &roles);
}

bool mgx_target_takes(const struct mgx_pass_options *options, const struct mgx_product_roles *roles)
{
    const struct mgx_pass_target *t = &options->target;
    if (t->takes)
        return t->takes(t->user, roles);
    return !roles->make && !roles->pad && !roles->zeros &&
           !(roles->end && mgx_type_is_half_or_bf16(roles->end->shape.type));
}
