// SPDX-License-Identifier: MIT
// Attention, from the scores to the weighted sum, becomes one group.
//
//     dot(softmax(f(dot(q, k))), v)  =>  group[tag=attention]      f element-wise, or nothing
//
// What turns the rows of a softmax that see nothing into zeros (engine/guard.h) comes along.
//
// Of bfloat16: convert[bf16](quant_dot(convert[bf16](softmax(f(quant_dot(q, k)))), v)), the outer
// conversion where it is the one reader.
//
// Of bytes, where the target takes it (engine/byte_attention.h):
//
//     h(quant_dot(g(softmax(f(quant_dot(q, k, p, z)))), v, lowest, y))  =>  group[tag=attention_bytes]
//
// g and h element-wise with known values, h or nothing. Where f is not one instruction after all,
// the products of bytes are computed in 32 bits:
//
//     quant_dot(a, b, p, q)  =>  dot(convert(a) - p, convert(b) - q)
//
// Of fp8 f may be nothing, and what is not one group stays as it is.
//
// Runs after element-wise chains were fused, so f is one instruction.
#include "op/op.h"
#include "pass/engine/attention.h"
#include "pass/engine/byte_attention.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"

// A target that is asked says itself which types its kernels take; others take floats.
static bool may_be(const struct mgx_pass_call *c, enum mgx_type type)
{
    return type == MGX_FLOAT || (c->options->target.supports && mgx_type_is_half_or_bf16(type));
}

// Floats of static lengths over the same batch axes. Few rows are faster as products over K and V
// where they lie, unless the target says otherwise.
static bool is_attention(const struct mgx_pass_call *c, const struct mgx_attention_roles *a)
{
    enum { FEW_ROWS = 8 };
    const struct mgx_shape *scores = &a->scores->shape, *weigh = &a->weigh->shape;
    const int64_t axis = mgx_ins_int(a->softmax, "axis");
    return a->weigh->in[1] != a->weigh->in[0] && a->weigh->owner == a->scores->owner &&
           may_be(c, scores->type) && weigh->type == scores->type &&
           a->softmax->shape.type == scores->type && mgx_shape_is_static(scores) &&
           mgx_shape_is_static(weigh) && (axis == scores->rank - 1 || axis == -1) &&
           mgx_shape_same_lens(scores, &a->softmax->shape) &&
           (scores->lens[scores->rank - 2] >= FEW_ROWS || c->options->target.supports) &&
           mgx_shape_elements(scores) > 0;
}

// The product itself, or that of bfloat16, which leaves floats.
static bool is_product(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_dot ||
           (ins->op == &mgx_op_quant_dot && ins->in[0]->shape.type == MGX_BF16);
}

// Its one reader, if that rounds it to bfloat16; else the value itself.
static struct mgx_ins *rounded(struct mgx_ins *ins)
{
    struct mgx_ins *user = mgx_used_once(ins) ? ins->uses->user : NULL;
    const bool rounds = user && user->op == &mgx_op_convert && user->shape.type == MGX_BF16;
    return rounds && user->owner == ins->owner ? user : ins;
}

// Element-wise over the scores, every operand float or bool and of their lengths.
static bool is_between(const struct mgx_ins *ins, const struct mgx_ins *scores)
{
    const enum mgx_type type = scores->shape.type;
    if (!mgx_is_elementwise(ins) || ins->shape.type != type || ins->owner != scores->owner)
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if ((ins->in[i]->shape.type != type && ins->in[i]->shape.type != MGX_BOOL) ||
            !mgx_shape_same_lens(&ins->in[i]->shape, &scores->shape))
            return false;
    return true;
}

static bool is_in(const struct mgx_region *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < r->count; i++)
        if (r->ins[i] == ins)
            return true;
    return false;
}

// Everything from the scores to the weighted sum, each of them read by the next one alone.
static bool gather(const struct mgx_attention_roles *a, struct mgx_ins *weigh,
                   struct mgx_region *region)
{
    struct mgx_ins *const all[] = {a->scores, a->between, a->softmax, a->rounded, a->guard};
    *region = (struct mgx_region){.count = 0};
    if ((a->between && !is_between(a->between, a->scores)) ||
        (a->guard && a->rounded && a->guard->in[0] != a->rounded))
        return false;
    for (int i = 0; i < MGX_COUNT(all); i++)
        if (all[i] && (!mgx_used_once(all[i]) || !mgx_region_add(region, all[i])))
            return false;
    mgx_region_add(region, weigh);
    mgx_region_add(region, weigh->op == &mgx_op_quant_dot ? rounded(weigh) : weigh);
    return mgx_region_closed(region);
}

// --- of bytes ---

// Element-wise over one value and numbers, for all of `like`'s places.
static bool is_of_one(const struct mgx_ins *ins, const struct mgx_ins *value)
{
    double number;
    bool is = mgx_is_elementwise(ins) && mgx_shape_same_lens(&ins->shape, &value->shape);
    for (int i = 0; i < ins->in_count; i++)
        is = is && (ins->in[i] == value || mgx_splat_value(ins->in[i], &number));
    return is;
}

static bool is_fp8(const struct mgx_byte_attention *a)
{
    return mgx_type_is_fp8(a->scores->in[0]->shape.type);
}

// f, which is not one instruction: false; of fp8 there may be none.
static bool add_between(struct mgx_region *region, const struct mgx_byte_attention *a)
{
    struct mgx_ins *f = a->scores->uses->user;
    mgx_region_add(region, a->scores);
    if (f == a->softmax)
        return is_fp8(a);
    if (!mgx_used_once(f) || f->uses->user != a->softmax)
        return false;
    mgx_region_add(region, f);
    return true;
}

static bool add_rest(struct mgx_region *region, const struct mgx_byte_attention *a)
{
    struct mgx_ins *g = a->softmax->uses->user;
    mgx_region_add(region, a->softmax);
    if (!mgx_used_once(g) || g->uses->user != a->weigh || !is_of_one(g, a->softmax))
        return false;
    mgx_region_add(region, g);
    mgx_region_add(region, a->weigh);
    struct mgx_ins *h = mgx_used_once(a->weigh) ? a->weigh->uses->user : NULL;
    if (h && h->owner == a->weigh->owner && is_of_one(h, a->weigh))
        mgx_region_add(region, h);
    return mgx_region_closed(region);
}

static bool in_numbers(struct mgx_ins *dot)
{
    struct mgx_ins *zero[2] = {NULL, NULL};
    for (int i = 2; i < dot->in_count; i++)
        zero[i - 2] = dot->in[i];
    struct mgx_ins *a = mgx_emit_shifted(dot, dot->in[0], zero[0], 0, MGX_INT32);
    struct mgx_ins *b = mgx_emit_shifted(dot, dot->in[1], zero[1], dot->shape.rank - 1, MGX_INT32);
    struct mgx_ins *y = mgx_emit_before(dot, &mgx_op_dot, NULL, MGX_IN(a, b));
    if (y)
        mgx_replace_uses(dot, y);
    return y;
}

static enum mgx_status fuse_bytes(struct mgx_pass_call *c, const struct mgx_byte_attention *a,
                                  struct mgx_ins **next)
{
    struct mgx_region region = {.count = 0};
    const struct mgx_pass_options *o = c->options;
    if (add_between(&region, a) && add_rest(&region, a) &&
        o->target.supports(o->target.user, "attention_bytes", &region)) {
        while (*next && is_in(&region, *next))
            *next = (*next)->next;
        return mgx_region_group(c, &region, "attention_bytes");
    }
    if (is_fp8(a))
        return MGX_OK;
    c->changed = true;
    return in_numbers(a->scores) && in_numbers(a->weigh) ? MGX_OK
                                                         : mgx_program_status(c->program, c->diag);
}

static enum mgx_status fuse_attentions(struct mgx_pass_call *c, struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        struct mgx_byte_attention bytes;
        if (mgx_find_byte_attention(c->options, ins, &bytes) && ins == bytes.scores) {
            TRY(fuse_bytes(c, &bytes, &next));
            continue;
        }
        struct mgx_attention_roles a;
        struct mgx_region region;
        if (!is_product(ins) || !mgx_read_attention(ins, &a) || !is_attention(c, &a) ||
            !gather(&a, ins, &region))
            continue;
        while (next && is_in(&region, next))
            next = next->next;
        TRY(mgx_region_fuse(c, &region, "attention"));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_attention = {
    .name = "fuse_attention",
    .meaning = "dot(softmax(f(dot(q, k))), v) becomes one group",
    .module = fuse_attentions,
    .by_size = true,
};
