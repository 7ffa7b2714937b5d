// SPDX-License-Identifier: MIT
// What products of a card take before and behind them, for passes that ask (mgx_pass_target.takes).
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/product.h"
#include "targets/gpu/lower/lower.h"

// A step that costs no more than a few instructions.
static bool is_light(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_add || ins->op == &mgx_op_mul || ins->op == &mgx_op_sub ||
           ins->op == &mgx_op_max || ins->op == &mgx_op_min || ins->op == &mgx_op_relu ||
           ins->op == &mgx_op_clip || ins->op == &mgx_op_dequantizelinear ||
           ins->op == &mgx_op_quantizelinear;
}

// Is it made in light steps, that nobody else reads, of one array of bytes in memory and of
// constants? *from: that array, NULL before the first call.
static bool is_near_bytes(const struct mgx_ins *ins, const struct mgx_ins **from, int depth)
{
    if (!is_light(ins) || !mgx_used_once(ins) || depth == 0)
        return false;
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_ins *in = ins->in[i];
        if (mgx_is_spread_literal(in) || in == *from)
            continue;
        if (is_light(in) && !mgx_type_is_byte(in->shape.type)) {
            if (!is_near_bytes(in, from, depth - 1))
                return false;
        } else if (*from || mgx_is_product(in) || !mgx_type_is_byte(in->shape.type)) {
            return false;
        } else {
            *from = in;
        }
    }
    return *from != NULL;
}

static bool comes_from_bytes(const struct mgx_ins *quantized)
{
    enum { LIGHT = 8 };
    const struct mgx_ins *from = NULL;
    return is_near_bytes(quantized, &from, LIGHT);
}

// Behind bytes an end mixes in one operand, as a sum or a product. Two values that are quantized,
// neither from the other, come from two products, and one of them is one's end; but what is made in
// a few steps from bytes in memory is made on the way.
static bool takes_bytes(const struct mgx_product_roles *roles)
{
    if (roles->meet && roles->meet->op != &mgx_op_add && roles->meet->op != &mgx_op_mul)
        return false;
    const bool near = comes_from_bytes(roles->bytes);
    for (int i = 1; i < roles->step_count && !near; i++)
        if (roles->steps[i]->op == &mgx_op_quantizelinear &&
            !mgx_step_leads(roles, roles->bytes, roles->steps[i]) &&
            !comes_from_bytes(roles->steps[i]))
            return false;
    return true;
}

// Ends leave 16 bits; fp8 of products of that, and bytes or fp8 of products of 16 bits, which stand
// between products of 8.
static bool ends_with(enum mgx_type end, enum mgx_type factor)
{
    return mgx_type_is_half_or_bf16(end) ||
           (mgx_type_is_fp8(end) &&
            (mgx_type_is_fp8(factor) || mgx_type_is_half_or_bf16(factor))) ||
           (mgx_type_is_byte(end) && mgx_type_is_half_or_bf16(factor));
}

// Of what is done before a product, some is done where its image is read. Kernels are written for
// what is behind it.
bool gpu_takes(void *user, const struct mgx_product_roles *roles)
{
    if (roles->bytes)
        return takes_bytes(roles);
    if (roles->zeros)
        return gpu_product_takes_zeros(user, roles->product);
    if (roles->end)
        return ends_with(roles->end->shape.type, roles->product->in[0]->shape.type);
    if (roles->make)
        return gpu_wgmma_packs(user, roles->make, roles->product);
    if (roles->pad)
        return gpu_direct_pads(roles->pad, roles->product) ||
               gpu_wgmma_pads(user, roles->pad, roles->product);
    return !roles->factor;
}
