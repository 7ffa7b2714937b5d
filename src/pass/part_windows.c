// SPDX-License-Identifier: MIT
// Attention within windows has windows beside images all along.
//
//     dot(reshape(softmax(f(reshape(g(dot(q, k)))))), v)
//         => reshape(dot(softmax(f(g'(dot(q', k')))), v'))
//
// Likewise of bytes: quant_dot, and a quantizelinear between softmax and reshape.
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

enum { DEEP = 12, CHAIN = 12 }; // steps of f, or of g; views of an operand

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

static bool is_product(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_dot || ins->op == &mgx_op_quant_dot;
}

static bool leads_to_product(const struct mgx_ins *ins, int depth)
{
    if (is_product(ins))
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

// g and the product, in the axes of `front`. Zero points of products stay.
static struct mgx_ins *part(struct mgx_ins *at, struct mgx_ins *ins, const struct mgx_shape *front,
                            int depth)
{
    enum { MOST = 8 };
    struct mgx_ins *in[MOST];
    if (!leads_to_product(ins, depth) || ins->in_count > MOST)
        return regroup(at, ins, front);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = !is_product(ins) ? part(at, ins->in[i], front, depth - 1)
                : i < 2          ? regroup(at, ins->in[i], front)
                                 : ins->in[i];
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

// Softmax in the axes of f, behind scores in the same; NULL: the two products are not parted so.
static struct mgx_ins *part_softmax(struct mgx_ins *at, const struct mgx_ins *softmax)
{
    const struct mgx_ins *back = at->in[0], *v = at->in[1];
    const struct mgx_shape *front = &softmax->shape;
    if (!mgx_shape_is_static(front) || !mgx_shape_is_static(&v->shape) ||
        mgx_wrap_axis(mgx_ins_int(softmax, "axis"), front->rank) != front->rank - 1 ||
        !regroups_front(front, &back->shape) || v->shape.rank != back->shape.rank ||
        memcmp(v->shape.lens, back->shape.lens,
               (size_t)(back->shape.rank - 2) * sizeof *back->shape.lens) != 0)
        return NULL;
    struct mgx_ins *reshape = find_reshape(softmax->in[0], DEEP);
    if (!reshape || !mgx_shape_same_lens(&reshape->shape, front))
        return NULL;
    struct mgx_ins *x = part(at, reshape->in[0], front, DEEP);
    x = x ? replace(at, softmax->in[0], reshape, x) : NULL;
    return x ? mgx_emit_again(at, softmax, &x, 1) : NULL;
}

// The second product of x, in the axes of `front`, in its own axes again.
static struct mgx_ins *weigh(struct mgx_ins *at, struct mgx_ins *x, const struct mgx_shape *front)
{
    struct mgx_ins *in[4] = {x, regroup(at, at->in[1], front)};
    for (int i = 2; i < at->in_count; i++)
        in[i] = at->in[i];
    struct mgx_ins *y = in[1] ? mgx_emit_again(at, at, in, at->in_count) : NULL;
    return y ? mgx_emit_reshape(at, y, at->shape.lens, at->shape.rank) : NULL;
}

static struct mgx_ins *part_attention(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    struct mgx_ins *x = part_softmax(ins, mgx_var(m, 's'));
    const struct mgx_shape front = mgx_var(m, 's')->shape;
    (void)r;
    return x ? weigh(ins, x, &front) : NULL;
}

static struct mgx_ins *part_bytes(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    const struct mgx_ins *back = ins->in[0];
    const struct mgx_ins *bytes = back->op == &mgx_op_reshape ? back->in[0] : NULL;
    (void)r, (void)m;
    if (!bytes || !mgx_used_once(back) || bytes->op != &mgx_op_quantizelinear ||
        !mgx_used_once(bytes) || bytes->in[0]->op != &mgx_op_softmax ||
        !mgx_used_once(bytes->in[0]))
        return NULL;
    struct mgx_ins *in[3] = {part_softmax(ins, bytes->in[0])};
    const struct mgx_shape front = bytes->shape;
    for (int i = 1; i < bytes->in_count; i++)
        in[i] = bytes->in[i];
    struct mgx_ins *x = in[0] ? mgx_emit_again(ins, bytes, in, bytes->in_count) : NULL;
    return x ? weigh(ins, x, &front) : NULL;
}

static const struct mgx_rule rules[] = {
    {"dot(reshape!(s:softmax!), v) ~> reshape(dot(softmax, v))", MGX_IF_FLOAT | MGX_IF_STATIC,
     .rewrite = part_attention},
    {"quant_dot ~> reshape(quant_dot(quantizelinear(softmax), v)), of bytes", MGX_IF_STATIC,
     .rewrite = part_bytes},
};

const struct mgx_pass mgx_pass_part_windows = {
    .name = "part_windows",
    .meaning = "attention within windows has windows beside images all along",
    .rules = {rules, MGX_COUNT(rules)},
};
