// SPDX-License-Identifier: MIT
// What the CPU target fuses after the shared simplification: normalisations, then element-wise
// chains, then the epilogues of products and convolutions.
//
//     ((x - mean(x)) / sqrt(mean((x - mean(x))^2) + e)) * scale + shift  =>  group[tag=layer_norm]
//     x / sqrt(mean(x^2) + e) * scale                                    =>  group[tag=rms_norm]
//     dot(softmax(f(dot(q, k))), v)                                       =>  group[tag=attention]
//     pointwise(convolution(x, w), r...)                                  =>  group[tag=epilogue]
//     convolution(x * factor[channel], w), if that pays                   =>  the same
//     depthwise(convolution(x, w), v), each with its epilogue (expand.c)  =>  group[tag=expand]
//
// A group's body holds the instructions as they were, so the reference can run it, and so does
// every kernel that declines.
#include <assert.h>

#include "op/op.h"
#include "pass/engine/match.h"
#include "targets/cpu/cpu.h"
#include "targets/cpu/group.h"

static bool is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || (ins->op->flags & MGX_OP_POINTWISE);
}

// --- layer and root-mean-square normalisation ---

// x, m: the mean; d: x - mean; q: the squares; v: their mean; e: epsilon; r: the root; other
// letters: views on the way.
static const char *const norm_forms[] = {
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:sqdiff(x, a)), "
    "e#))))",
    "mul(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:mul(d, d)), e#))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:mul(d, d)), e#))))",
    "div(d:sub(x, a:multibroadcast(m:reduce_mean(x))), "
    "b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:sqdiff(x, a)), "
    "e#))))",
    "mul(x, b:multibroadcast(r:rsqrt(s:add(v:reduce_mean(q:mul(x, x)), e#))))",
    "div(x, b:multibroadcast(r:sqrt(s:add(v:reduce_mean(q:mul(x, x)), e#))))",
};

enum { RMS_FORM = 4 }; // the first without a mean
enum { NORM_FORMS = sizeof norm_forms / sizeof *norm_forms };

// The first of the axes that are reduced, when those are all from there to the last; else -1.
static int first_axis(const struct mgx_ins *reduce)
{
    const struct mgx_ints axes = mgx_ins_ints(reduce, "axes");
    const int rank = reduce->in[0]->shape.rank;
    unsigned set = 0;
    for (int i = 0; i < axes.count; i++)
        set |= 1u << (axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]);
    const int first = rank - axes.count;
    return axes.count > 0 && first >= 0 && set == ((1u << rank) - 1) - ((1u << first) - 1) ? first
                                                                                           : -1;
}

// Images lie channels last between convolutions; rows over their pixels would have to be copied.
static bool is_image(const struct mgx_ins *reduce, int first)
{
    return first == 2 && reduce->in[0]->shape.rank > 3;
}

// One value per position of the axes from `first` on, side by side, the same for all rows.
static bool along_rows(const struct mgx_ins *ins, int first)
{
    const struct mgx_shape *s = &ins->shape;
    int64_t step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->lens[i] != 1 && s->strides[i] != (i >= first ? step : 0))
            return false;
        step *= s->lens[i];
    }
    return s->rank > 0;
}

// Scale and shift that follow, while each is the only reader.
static struct mgx_ins *extend(struct cpu_region *r, struct mgx_ins *last, int first)
{
    static const struct mgx_op *const follow[] = {&mgx_op_mul, &mgx_op_add};
    for (int i = 0; i < 2 && mgx_used_once(last); i++) {
        struct mgx_ins *user = last->uses->user;
        if (user->op != follow[i] || user->owner != last->owner)
            continue;
        const struct mgx_ins *other = user->in[user->in[0] == last ? 1 : 0];
        if (other == last || !along_rows(other, first) || !cpu_region_add(r, user))
            break;
        last = user;
    }
    return last;
}

static enum mgx_status fuse_norms(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct mgx_pattern forms[NORM_FORMS];
    if (m->bypass)
        return MGX_OK;
    for (int i = 0; i < NORM_FORMS; i++) {
        const char *text = norm_forms[i];
        const bool good = mgx_pattern_parse(&forms[i], &text);
        assert(good);
        (void)good;
    }
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        if (ins->op != &mgx_op_mul && ins->op != &mgx_op_div)
            continue;
        struct mgx_match match;
        int form = 0;
        while (form < NORM_FORMS && !mgx_pattern_match(&forms[form], ins, &match))
            form++;
        if (form == NORM_FORMS || ins->shape.type != MGX_FLOAT || !mgx_shape_is_static(&ins->shape))
            continue;
        const bool rms = form >= RMS_FORM;
        const int first = first_axis(mgx_var(&match, 'v'));
        if (first < 0 || is_image(mgx_var(&match, 'v'), first) ||
            (!rms && first_axis(mgx_var(&match, 'm')) != first))
            continue;
        struct cpu_region region = {.count = 0};
        for (const char *letter = rms ? "qvsrb" : "madqvsrb"; *letter; letter++)
            cpu_region_add(&region, mgx_var(&match, *letter));
        cpu_region_add(&region, ins);
        struct cpu_region longer = region;
        struct mgx_ins *last = extend(&longer, ins, first);
        if (!cpu_region_closed(&longer))
            continue;
        next = last->next; // everything of the group lies before it
        TRY(cpu_region_group(c, &longer, rms ? "rms_norm" : "layer_norm"));
    }
    return MGX_OK;
}

static const struct mgx_pass pass_fuse_norm = {
    .name = "fuse_norm",
    .meaning = "layer and root-mean-square normalisations become one group",
    .module = fuse_norms,
};

// --- attention ---

// Floats of static lengths over the same batch axes; few rows are faster as products over K and V
// where they lie.
static bool is_attention(const struct mgx_ins *scores, const struct mgx_ins *softmax,
                         const struct mgx_ins *weigh)
{
    enum { FEW_ROWS = 8 };
    const int rank = scores->shape.rank;
    const int64_t axis = mgx_ins_int(softmax, "axis");
    return weigh->op == &mgx_op_dot && weigh->in[0] == softmax && weigh->in[1] != softmax &&
           weigh->owner == scores->owner && scores->shape.type == MGX_FLOAT &&
           weigh->shape.type == MGX_FLOAT && mgx_shape_is_static(&scores->shape) &&
           mgx_shape_is_static(&weigh->shape) && (axis == rank - 1 || axis == -1) &&
           mgx_shape_same_lens(&scores->shape, &softmax->shape) &&
           scores->shape.lens[rank - 2] >= FEW_ROWS && mgx_shape_elements(&scores->shape) > 0;
}

// Element-wise over the scores, every operand float or bool and of their lengths.
static bool is_between(const struct mgx_ins *ins, const struct mgx_ins *scores)
{
    if (!is_elementwise(ins) || ins->shape.type != MGX_FLOAT || ins->owner != scores->owner)
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if ((ins->in[i]->shape.type != MGX_FLOAT && ins->in[i]->shape.type != MGX_BOOL) ||
            !mgx_shape_same_lens(&ins->in[i]->shape, &scores->shape))
            return false;
    return true;
}

static enum mgx_status fuse_attentions(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (m->bypass)
        return MGX_OK;
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        if (ins->op != &mgx_op_dot || !mgx_used_once(ins))
            continue;
        struct cpu_region region = {.count = 0};
        cpu_region_add(&region, ins);
        struct mgx_ins *last = ins->uses->user;
        if (is_between(last, ins) && mgx_used_once(last)) {
            cpu_region_add(&region, last);
            last = last->uses->user;
        }
        if (last->op != &mgx_op_softmax || !mgx_used_once(last))
            continue;
        struct mgx_ins *weigh = last->uses->user;
        if (!is_attention(ins, last, weigh))
            continue;
        cpu_region_add(&region, last);
        cpu_region_add(&region, weigh);
        if (!cpu_region_closed(&region))
            continue;
        while (next && (next == last || next == weigh || region.ins[1] == next))
            next = next->next;
        TRY(cpu_region_group(c, &region, "attention"));
    }
    return MGX_OK;
}

static const struct mgx_pass pass_fuse_attention = {
    .name = "fuse_attention",
    .meaning = "dot(softmax(f(dot(q, k))), v) becomes one group",
    .module = fuse_attentions,
};

// --- epilogues ---

static bool has_epilogue(const struct mgx_op *op)
{
    return op == &mgx_op_dot || op == &mgx_op_convolution || op == &mgx_op_convolution_backwards;
}

// A 1 x 1 convolution of one image may take the product that makes its input, x * factor[channel]
// (squeeze and excitation): it scales its weights instead, which is less work when the image has
// more pixels than the convolution has results.
static bool takes_factor(const struct mgx_ins *conv, const struct mgx_ins *mul)
{
    const struct mgx_shape *w = &conv->in[1]->shape, *y = &conv->shape;
    if (conv->op != &mgx_op_convolution || mul->op != &mgx_op_mul || mul->owner != conv->owner ||
        !mgx_used_once(mul) || (!conv->in[1]->literal && !cpu_is_join(conv->in[1])) ||
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

// Adds the element-wise instruction that reads `ins`, if it alone does.
static struct mgx_ins *add_user(struct cpu_region *region, struct mgx_ins *ins)
{
    struct mgx_ins *user = ins->uses->user;
    struct cpu_region longer = *region;
    if (user->owner != ins->owner || !is_elementwise(user) || user->shape.type != MGX_FLOAT ||
        !mgx_shape_same_lens(&user->shape, &ins->shape) || !cpu_region_add(&longer, user) ||
        !cpu_region_closed(&longer))
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
        if (!has_epilogue(ins->op) || !ins->uses || !mgx_shape_is_static(&ins->shape))
            continue;
        struct cpu_region region = {.count = 0};
        if (ins->in_count == 2 && takes_factor(ins, ins->in[0]))
            cpu_region_add(&region, ins->in[0]);
        cpu_region_add(&region, ins);
        const struct mgx_ins *user = add_user(&region, ins);
        if (region.count < 2 || (!user && !cpu_region_closed(&region)))
            continue;
        next = next == user ? user->next : next;
        TRY(cpu_region_group(c, &region, "epilogue"));
    }
    return MGX_OK;
}

static const struct mgx_pass pass_fuse_epilogue = {
    .name = "fuse_epilogue",
    .meaning = "products and convolutions take the element-wise instruction that reads them",
    .module = fuse_epilogues,
};

const struct mgx_pass *const cpu_pipeline[] = {&cpu_pass_find_softmax,
                                               &pass_fuse_norm,
                                               &mgx_pass_fuse_pointwise,
                                               &pass_fuse_attention,
                                               &pass_fuse_epilogue,
                                               &cpu_pass_fuse_expand,
                                               NULL};
