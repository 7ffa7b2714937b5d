// SPDX-License-Identifier: MIT
// Products and convolutions take the element-wise instruction that reads them.
//
//     pointwise(convolution(x, w), r...)            =>  group[tag=epilogue]
//     convolution(x * factor[channel], w), if that pays  =>  the same
//     convolution(pointwise(x), w), if the target packs x anyway  =>  the same
//     pointwise(quant_convolution(pad(x), w), r...), if the target pads on the way  =>  the same
//
// Runs after element-wise chains were fused, so what reads is one instruction.
#include "op/op.h"

#include <assert.h>

#include "pass/engine/constant.h"
#include "pass/engine/region.h"

// Bytes that a product of bytes leaves.
static bool is_quantized(const struct mgx_ins *product, const struct mgx_ins *user)
{
    assert(product->uses);
    return product->shape.type == MGX_INT32 && mgx_type_is_byte(user->shape.type);
}

// What a product of floats leaves where one of bfloat16 reads it.
static bool is_rounded(const struct mgx_pass_call *c, const struct mgx_ins *product,
                       const struct mgx_ins *user)
{
    return c->options->target.multiplies_bf16 && product->shape.type == MGX_FLOAT &&
           user->shape.type == MGX_BF16;
}

// A 1 x 1 convolution of one image may take the product that makes its input, x * factor[channel]
// (squeeze and excitation): it scales its weights instead, which is less work when the image has
// more pixels than the convolution has results.
static bool takes_factor(const struct mgx_ins *conv, const struct mgx_ins *mul)
{
    const struct mgx_shape *w = &conv->in[1]->shape, *y = &conv->shape;
    if (conv->op != &mgx_op_convolution || mul->op != &mgx_op_mul || mul->owner != conv->owner ||
        !mgx_used_once(mul) || (!conv->in[1]->literal && !mgx_is_joined_weights(conv->in[1])) ||
        mul->shape.type != MGX_FLOAT || w->type != MGX_FLOAT || y->lens[0] != 1 ||
        mgx_ins_int(conv, "group") != 1 || w->lens[1] != mul->shape.lens[1])
        return false;
    int64_t pixels = 1;
    for (int i = 2; i < y->rank; i++) {
        if (w->lens[i] != 1)
            return false;
        pixels *= y->lens[i];
    }
    for (int i = 0; i < 2 && pixels > y->lens[1]; i++) {
        const struct mgx_ins *factor = mul->in[i], *other = mul->in[1 - i];
        if ((factor->op != &mgx_op_multibroadcast && factor->op != &mgx_op_broadcast) ||
            mgx_shape_is_broadcasted(&other->shape) || other->literal)
            continue;
        const struct mgx_shape *from = &factor->in[0]->shape;
        if (from->rank == y->rank && from->lens[1] == w->lens[1] &&
            mgx_shape_elements(from) == w->lens[1])
            return true;
    }
    return false;
}

// A target that is asked says itself which types its kernels leave; others leave floats.
static bool may_leave(const struct mgx_pass_call *c, enum mgx_type type)
{
    return type == MGX_FLOAT || (c->options->target.supports && mgx_type_is_half_or_bf16(type));
}

// A target that does not know such products is asked for tag "factor" and takes the rest of the
// group.
static bool wants_factor(const struct mgx_pass_call *c)
{
    const struct mgx_region none = {.count = 0};
    const struct mgx_pass_options *o = c->options;
    return !o->target.supports || o->target.supports(o->target.user, "factor", &none);
}

// A convolution may take the element-wise instruction that makes its image of one array, where the
// target goes through the image before it multiplies: it is asked for tag "packed" and takes the
// two, with whatever follows. Bytes may be padded in between.
static bool takes_maker(const struct mgx_pass_call *c, struct mgx_ins *conv,
                        struct mgx_region *region)
{
    const struct mgx_pass_options *o = c->options;
    const bool bytes = conv->op == &mgx_op_quant_convolution;
    struct mgx_ins *make = bytes || conv->op == &mgx_op_convolution ? conv->in[0] : NULL;
    struct mgx_ins *pad = bytes && make->op == &mgx_op_pad && make->in_count == 1 ? make : NULL;
    if (pad && (pad->owner != conv->owner || !mgx_used_once(pad) || mgx_ins_int(pad, "mode") != 0))
        return false;
    make = pad ? pad->in[0] : make;
    if (!o->target.supports || !make || make->owner != conv->owner || make->in_count != 1 ||
        !mgx_is_elementwise(make) || !mgx_used_once(make) || make->in[0]->literal ||
        !mgx_shape_same_lens(&make->shape, &make->in[0]->shape))
        return false;
    const struct mgx_region pair = {.ins = {make, conv}, .count = 2};
    if (!o->target.supports(o->target.user, "packed", &pair))
        return false;
    return mgx_region_add(region, make) && (!pad || mgx_region_add(region, pad));
}

// A convolution of bytes that something element-wise reads may take what puts bytes around its
// image: the target is asked for tag "padded".
static bool takes_padding(const struct mgx_pass_call *c, struct mgx_ins *conv,
                          struct mgx_region *region)
{
    const struct mgx_pass_options *o = c->options;
    struct mgx_ins *pad = conv->op == &mgx_op_quant_convolution ? conv->in[0] : NULL;
    if (!o->target.supports || !pad || pad->op != &mgx_op_pad || pad->in_count != 1 ||
        pad->owner != conv->owner || !mgx_used_once(pad) || mgx_ins_int(pad, "mode") != 0 ||
        conv->in_count != 2 || !mgx_used_once(conv) || !mgx_is_elementwise(conv->uses->user) ||
        !mgx_ints_all(mgx_ins_ints(conv, "padding"), 0) || mgx_ins_int(conv, "padding_mode") != 0)
        return false;
    const struct mgx_region pair = {.ins = {pad, conv}, .count = 2};
    return o->target.supports(o->target.user, "padded", &pair) && mgx_region_add(region, pad);
}

// Adds the element-wise instruction that reads `ins`, if it alone does.
static struct mgx_ins *add_user(const struct mgx_pass_call *c, struct mgx_region *region,
                                struct mgx_ins *ins)
{
    struct mgx_ins *user = ins->uses->user;
    struct mgx_region longer = *region;
    const bool fits =
        may_leave(c, user->shape.type) || is_quantized(ins, user) || is_rounded(c, ins, user);
    if (user->owner != ins->owner || !mgx_is_elementwise(user) || !fits ||
        !mgx_shape_same_lens(&user->shape, &ins->shape) || !mgx_region_add(&longer, user) ||
        !mgx_region_closed(&longer))
        return NULL;
    *region = longer;
    return user;
}

static enum mgx_status fuse_epilogues(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (m->bypass)
        return MGX_OK;
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        if (!mgx_is_product(ins) || !ins->uses || !mgx_shape_is_static(&ins->shape))
            continue;
        struct mgx_region region = {.count = 0};
        if (ins->in_count == 2 && takes_factor(ins, ins->in[0]) && wants_factor(c))
            mgx_region_add(&region, ins->in[0]);
        else if (!takes_maker(c, ins, &region))
            takes_padding(c, ins, &region);
        mgx_region_add(&region, ins);
        const struct mgx_ins *user = add_user(c, &region, ins);
        const bool pads = region.ins[0]->op == &mgx_op_pad;
        if (region.count < 2 || (!user && (pads || !mgx_region_closed(&region))))
            continue;
        next = next == user ? user->next : next;
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
