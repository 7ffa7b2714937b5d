// SPDX-License-Identifier: MIT
// Attention within windows has windows beside images all along.
//
//     dot(reshape(softmax(f(reshape(g(dot(q, k)))))), v)
//         => reshape(dot(softmax(f(g'(dot(q', k')))), v'))
//
// f adds what differs from window to window but not from image to image, so it has the axes
// {images, windows, heads, ..} where everything else has {images x windows, heads, ..}. A reshape
// on either side of it parts the two products, which are one attention otherwise. Here q, k, v and
// what g reads are parted as f's scores are (a prime); lengths of rows and columns stay.
//
// Holds: shapes are static; nobody else reads what lies between the products; reshapes change the
// axes in front of the last two alone. Cost: O(instructions).
#include <string.h>

#include "base/size.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"
#include "pass/engine/view.h"

enum { DEEP = 6, CHAIN = 12 };

static bool is_work(const struct mgx_ins *ins)
{
    return (ins->op->flags & MGX_OP_POINTWISE) && mgx_used_once(ins);
}

// Are these the same rows and columns, with other axes in front?
static bool regroups_front(const struct mgx_shape *a, const struct mgx_shape *b)
{
    return a->rank >= 2 && b->rank >= 2 && a->lens[a->rank - 1] == b->lens[b->rank - 1] &&
           a->lens[a->rank - 2] == b->lens[b->rank - 2];
}

static bool leads_to_product(const struct mgx_ins *ins, int depth)
{
    if (ins->op == &mgx_op_dot)
        return mgx_used_once(ins);
    for (int i = 0; depth > 0 && is_work(ins) && i < ins->in_count; i++)
        if (leads_to_product(ins->in[i], depth - 1))
            return true;
    return false;
}

// The reshape behind f's element-wise work; NULL: there is none.
static struct mgx_ins *find_reshape(struct mgx_ins *ins, int depth)
{
    if (ins->op == &mgx_op_reshape && ins->in_count == 1)
        return mgx_used_once(ins) && regroups_front(&ins->shape, &ins->in[0]->shape) &&
                       leads_to_product(ins->in[0], DEEP)
                   ? ins
                   : NULL;
    for (int i = 0; depth > 0 && is_work(ins) && i < ins->in_count; i++) {
        struct mgx_ins *found = find_reshape(ins->in[i], depth - 1);
        if (found)
            return found;
    }
    return NULL;
}

// x in other axes in front of the last two, which come from `front`; views of it are made anew.
static struct mgx_ins *regroup(struct mgx_ins *at, struct mgx_ins *x, const struct mgx_shape *front)
{
    struct mgx_ins *step[CHAIN], *core = x;
    struct mgx_view view;
    struct mgx_view_plan plan;
    int64_t lens[MGX_MAX_RANK];
    int count = 0;
    memcpy(lens, front->lens, (size_t)(front->rank - 2) * sizeof *lens);
    memcpy(lens + front->rank - 2, x->shape.lens + x->shape.rank - 2, 2 * sizeof *lens);
    for (; count < CHAIN && mgx_is_reshaper(core) && core->in_count == 1; core = core->in[0])
        step[count++] = core;
    bool known = mgx_view_start(&view, &core->shape);
    for (int i = count - 1; i >= 0 && known; i--)
        known = mgx_view_apply(&view, step[i]);
    if (!known || !mgx_view_reshape(&view, lens, front->rank) || !mgx_view_plan(&view, &plan))
        return mgx_emit_reshape(at, x, lens, front->rank);
    return mgx_view_emit(at, core, &view, &plan);
}

// g and the product, in the axes of `front`.
static struct mgx_ins *part(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_shape *front,
                            int depth)
{
    enum { MOST = 8 };
    struct mgx_ins *in[MOST];
    if (!leads_to_product(ins, depth) || ins->in_count > MOST)
        return regroup(at, ins, front);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = ins->op == &mgx_op_dot ? regroup(at, ins->in[i], front)
                                       : part(at, ins->in[i], front, depth - 1);
        if (!in[i])
            return NULL;
    }
    return mgx_emit_again(at, ins, in, ins->in_count);
}

// f with `by` in the place of `old`.
static struct mgx_ins *replace(struct mgx_ins *at, struct mgx_ins *ins, struct mgx_ins *old,
                               struct mgx_ins *by)
{
    enum { MOST = 8 };
    struct mgx_ins *in[MOST];
    if (ins == old)
        return by;
    if (!find_reshape(ins, DEEP) || ins->in_count > MOST)
        return ins;
    for (int i = 0; i < ins->in_count; i++)
        if (!(in[i] = replace(at, ins->in[i], old, by)))
            return NULL;
    return mgx_emit_again(at, ins, in, ins->in_count);
}

static struct mgx_ins *part_attention(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    struct mgx_ins *back = ins->in[0], *softmax = mgx_var(m, 's'), *v = ins->in[1];
    const struct mgx_shape *front = &softmax->shape;
    (void)r;
    if (!mgx_shape_is_static(front) || !mgx_shape_is_static(&v->shape) ||
        mgx_wrap_axis(mgx_ins_int(softmax, "axis"), front->rank) != front->rank - 1 ||
        !regroups_front(front, &back->shape) || v->shape.rank != back->shape.rank ||
        memcmp(v->shape.lens, back->shape.lens,
               (size_t)(back->shape.rank - 2) * sizeof *back->shape.lens) != 0)
        return NULL;
    struct mgx_ins *reshape = find_reshape(softmax->in[0], DEEP);
    if (!reshape || !mgx_shape_same_lens(&reshape->shape, front))
        return NULL;
    struct mgx_ins *x = part(ins, reshape->in[0], front, DEEP);
    x = x ? replace(ins, softmax->in[0], reshape, x) : NULL;
    x = x ? mgx_emit_again(ins, softmax, &x, 1) : NULL;
    x = x ? mgx_emit_binary(ins, &mgx_op_dot, x, regroup(ins, v, front)) : NULL;
    return x ? mgx_emit_reshape(ins, x, ins->shape.lens, ins->shape.rank) : NULL;
}

static const struct mgx_rule rules[] = {
    {"dot(reshape!(s:softmax!), v) ~> reshape(dot(softmax, v))", MGX_IF_FLOAT | MGX_IF_STATIC,
     .rewrite = part_attention},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return m->bypass ? MGX_OK : mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_part_windows = {
    .name = "part_windows",
    .meaning = "attention within windows has windows beside images all along",
    .module = run,
};
