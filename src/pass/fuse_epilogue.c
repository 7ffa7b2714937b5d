// SPDX-License-Identifier: MIT
// Products and convolutions take the element-wise instruction that reads them.
//
//     pointwise(convolution(x, w), r...)            =>  group[tag=epilogue]
//     convolution(x * factor[channel], w), if that pays  =>  the same
//     convolution(pointwise(x), w), if the target packs x anyway  =>  the same
//     pointwise(quant_convolution(pad(x), w), r...), if the target pads on the way  =>  the same
//
// What a product takes before it, and which types it leaves, its target says (roles.h).
// Runs after element-wise chains were fused, so what reads is one instruction.
#include "op/op.h"

#include <assert.h>

#include "op/reference/window.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/product.h"
#include "pass/engine/region.h"

// What kernels that multiply leave without being asked: floats, bytes of sums of bytes, and what a
// product of floats leaves where one of bfloat16 reads it.
static bool may_leave(const struct mgx_pass_call *c, const struct mgx_ins *product,
                      const struct mgx_ins *user)
{
    const enum mgx_type sum = product->shape.type, type = user->shape.type;
    return type == MGX_FLOAT || (sum == MGX_INT32 && mgx_type_is_byte(type)) ||
           (c->options->target.multiplies_bf16 && sum == MGX_FLOAT && type == MGX_BF16);
}

// The factor of every channel that `mul` multiplies an image with?
static bool has_factor(const struct mgx_ins *mul, int64_t channels)
{
    const struct mgx_shape *y = &mul->shape;
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *factor = mul->in[i], *other = mul->in[1 - i];
        if ((factor->op != &mgx_op_multibroadcast && factor->op != &mgx_op_broadcast) ||
            mgx_shape_is_broadcasted(&other->shape) || other->literal)
            continue;
        const struct mgx_shape *from = &factor->in[0]->shape;
        if (from->rank == y->rank && from->lens[1] == channels &&
            mgx_shape_elements(from) == channels)
            return true;
    }
    return false;
}

// A 1 x 1 convolution of one image may take the product that makes its input, x * factor[channel]
// (squeeze and excitation): it scales its weights instead, which is less work when the image has
// more pixels than the convolution has results.
static struct mgx_ins *factor_of(const struct mgx_ins *conv)
{
    struct mgx_ins *mul = conv->in[0];
    const struct mgx_shape *w = &conv->in[1]->shape, *y = &conv->shape;
    if (conv->op != &mgx_op_convolution || mul->op != &mgx_op_mul || mul->owner != conv->owner ||
        !mgx_used_once(mul) || (!conv->in[1]->literal && !mgx_is_joined_weights(conv->in[1])) ||
        mul->shape.type != MGX_FLOAT || w->type != MGX_FLOAT || y->lens[0] != 1 ||
        mgx_ins_int(conv, "group") != 1 || w->lens[1] != mul->shape.lens[1])
        return NULL;
    int64_t pixels = 1;
    for (int i = 2; i < y->rank; i++) {
        if (w->lens[i] != 1)
            return NULL;
        pixels *= y->lens[i];
    }
    return pixels > y->lens[1] && has_factor(mul, w->lens[1]) ? mul : NULL;
}

// What puts values around a convolution's image; bytes alone have it.
static struct mgx_ins *pad_of(const struct mgx_ins *conv)
{
    struct mgx_ins *pad = conv->in[0];
    return conv->op == &mgx_op_quant_convolution && pad->op == &mgx_op_pad && pad->in_count == 1
               ? pad
               : NULL;
}

static bool may_take(const struct mgx_ins *ins, const struct mgx_ins *conv)
{
    return ins->owner == conv->owner && mgx_used_once(ins);
}

// A convolution may take the element-wise instruction that makes its image of one array, where the
// target goes through the image before it multiplies, with whatever follows. Bytes may be padded in
// between.
static bool find_maker(struct mgx_ins *conv, struct mgx_product_roles *roles)
{
    if (conv->op != &mgx_op_quant_convolution && conv->op != &mgx_op_convolution)
        return false;
    struct mgx_ins *pad = pad_of(conv), *make = pad ? pad->in[0] : conv->in[0];
    if ((pad && (!may_take(pad, conv) || mgx_ins_int(pad, "mode") != 0)) || !may_take(make, conv) ||
        make->in_count != 1 || !mgx_is_elementwise(make) || make->in[0]->literal ||
        !mgx_shape_same_lens(&make->shape, &make->in[0]->shape))
        return false;
    roles->make = make;
    roles->pad = pad;
    return true;
}

// A convolution of bytes that something element-wise reads may take what puts bytes around its
// image.
static bool may_pad(const struct mgx_ins *conv)
{
    const struct mgx_ins *pad = pad_of(conv);
    if (!pad)
        return false;
    const struct mgx_window_attr window = mgx_window_of(conv);
    return pad->owner == conv->owner && mgx_ins_int(pad, "mode") == 0 && conv->in_count == 2 &&
           mgx_used_once(conv) && mgx_is_elementwise(conv->uses->user) &&
           mgx_window_is_unpadded(&window);
}

static bool find_padding(struct mgx_ins *conv, struct mgx_product_roles *roles)
{
    struct mgx_ins *pad = pad_of(conv);
    if (!may_pad(conv) || !mgx_used_once(pad))
        return false;
    roles->pad = pad;
    return true;
}

// What is put around an image for several convolutions, each of which may take it: one for each.
static enum mgx_status part_padding(const struct mgx_pass_call *c, struct mgx_ins *pad)
{
    for (const struct mgx_use *use = pad->uses; use; use = use->next) {
        const struct mgx_product_roles roles = {.product = use->user, .pad = pad};
        if (!mgx_is_product(use->user) || pad_of(use->user) != pad || !may_pad(use->user) ||
            !mgx_target_takes(c->options, &roles))
            return MGX_OK;
    }
    while (pad->uses && pad->uses->next) {
        struct mgx_ins *conv = pad->uses->user, *own = mgx_emit_again(conv, pad, pad->in, 1);
        if (!own)
            return mgx_program_status(c->program, c->diag);
        mgx_set_input(conv, 0, own);
    }
    return MGX_OK;
}

// What the product takes of what is done before it.
static void find_before(const struct mgx_pass_call *c, struct mgx_product_roles *roles)
{
    struct mgx_ins *product = roles->product;
    const struct mgx_product_roles alone = *roles;
    roles->factor = product->in_count == 2 ? factor_of(product) : NULL;
    if (roles->factor && mgx_target_takes(c->options, roles))
        return;
    *roles = alone;
    if (find_maker(product, roles) && mgx_target_takes(c->options, roles))
        return;
    *roles = alone;
    if (!find_padding(product, roles) || !mgx_target_takes(c->options, roles))
        *roles = alone;
}

static struct mgx_region region_of(const struct mgx_product_roles *roles)
{
    struct mgx_ins *const all[] = {roles->factor, roles->make, roles->pad, roles->product,
                                   roles->end};
    struct mgx_region region = {.count = 0};
    for (int i = 0; i < MGX_COUNT(all); i++)
        if (all[i])
            mgx_region_add(&region, all[i]);
    return region;
}

// The element-wise instruction that reads the product, if it alone does and may end it.
static void find_end(const struct mgx_pass_call *c, struct mgx_product_roles *roles)
{
    const struct mgx_ins *product = roles->product;
    struct mgx_product_roles longer = *roles;
    struct mgx_ins *user = longer.end = product->uses->user;
    if (user->owner != product->owner || !mgx_is_elementwise(user) ||
        !mgx_shape_same_lens(&user->shape, &product->shape) ||
        (!may_leave(c, product, user) && !mgx_target_takes(c->options, &longer)))
        return;
    struct mgx_region region = region_of(&longer);
    if (mgx_region_closed(&region))
        *roles = longer;
}

static enum mgx_status fuse_epilogues(struct mgx_pass_call *c, struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_pad && ins->uses && ins->uses->next)
            TRY(part_padding(c, ins));
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        if (!mgx_is_product(ins) || !ins->uses || !mgx_shape_is_static(&ins->shape))
            continue;
        struct mgx_product_roles roles = {.product = ins};
        find_before(c, &roles);
        find_end(c, &roles);
        struct mgx_region region = region_of(&roles);
        const bool pads = roles.pad && !roles.make;
        if (region.count < 2 || (!roles.end && (pads || !mgx_region_closed(&region))))
            continue;
        next = next == roles.end ? roles.end->next : next;
        TRY(mgx_region_fuse(c, &region, "epilogue"));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_epilogue = {
    .name = "fuse_epilogue",
    .meaning = "products and convolutions take the element-wise instruction that reads them",
    .module = fuse_epilogues,
    .by_size = true,
};
