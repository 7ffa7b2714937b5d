// SPDX-License-Identifier: MIT
// Products whose batches share one matrix are one product.
//
//     dot(x {b.., m, k}, multibroadcast(w {k, n}))
//         =>  reshape(dot(reshape(x, {b*m, k}), w), {b.., m, n})
//
// Holds: x is row-major, so that its reshape is a view. One product of b*m rows instead of b of m;
// weights lose their broadcast, so whoever packs them finds them at once.
//
// And rows that are put in order twice are so once, before the product:
//
//     transpose(reshape(f(dot(view(x), w))))  =>  reshape(f(dot(view'(x), w)))
//
// Holds: the transpose keeps columns last, and view moves values anyway (heads of an attention that
// are joined, say), in no fewer steps than view'. What reads the result then lies as it does. f is
// element-wise and the same for all rows: a bias, an activation.
//
// Where a view does nothing but exchange two axes of rows, batches and tokens, the product takes
// them as they come, and what reads its result does the exchange; an attention does it for nothing:
//
//     dot(reshape(transpose(x)), w)  =>  reshape(transpose(reshape(dot(reshape(x), w))))
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/rules/rules.h"

enum { MOST = 8 }; // of anything in a row

// The matrix behind the broadcast; NULL if batches differ.
static bool is_shared(struct mgx_ins *w, struct mgx_spread *s)
{
    const int rank = w->shape.rank;
    if (!mgx_spread_of(w, s) || s->core->shape.rank < 2)
        return false;
    for (int d = 0; d < rank - 2; d++)
        if (s->axis[d] >= 0 && w->shape.lens[d] != 1)
            return false;
    const int last = s->core->shape.rank - 1;
    return s->axis[rank - 1] == last && s->axis[rank - 2] == last - 1;
}

static struct mgx_ins *flatten(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x'), *w = mgx_var(m, 'w');
    struct mgx_spread s;
    const int rank = ins->shape.rank;
    if (rank < 3 || !mgx_shape_is_static(&x->shape) || !mgx_shape_is_standard(&x->shape) ||
        !mgx_shape_elements(&x->shape) || !is_shared(w, &s))
        return NULL;
    const int64_t k = x->shape.lens[rank - 1], n = ins->shape.lens[rank - 1];
    const int64_t rows = mgx_shape_elements(&ins->shape) / n;
    w = mgx_emit_reshape(ins, s.core, (int64_t[]){k, n}, 2);
    x = mgx_emit_reshape(ins, x, (int64_t[]){rows, k}, 2);
    struct mgx_ins *y = mgx_emit_binary(ins, ins->op, x, w);
    return mgx_emit_reshape(ins, y, ins->shape.lens, rank);
}

// The view of `ins` and of what it reads, up to its source; false where there is no normal form.
static bool describe(struct mgx_ins *ins, struct mgx_view *v, struct mgx_ins **source)
{
    struct mgx_ins *link[MOST];
    int count = 0;
    for (; count < MOST && mgx_is_reshaper(ins) && ins->owner; ins = ins->in[0])
        link[count++] = ins;
    *source = ins;
    bool ok = count > 0 && mgx_view_start(v, &ins->shape);
    while (ok && count > 0)
        ok = mgx_view_apply(v, link[--count]);
    return ok;
}

// The operand that differs from row to row, when it is the only one; -1 if it is not.
static int find_rows(struct mgx_ins *ins)
{
    int at = -1;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_is_along(ins->in[i], 1)) {
            if (at >= 0)
                return -1;
            at = i;
        }
    return at;
}

// What is done to every row alike between a product and `last`, which is the end of it.
struct alike {
    struct mgx_ins *ins[MOST]; // the last one first
    int count;
    struct mgx_ins *dot; // NULL if there is none
};

static bool is_product(const struct mgx_ins *ins)
{
    return (mgx_is(ins, &mgx_op_dot) || mgx_is(ins, &mgx_op_quant_dot)) && ins->in_count == 2;
}

static void look_for_product(struct mgx_ins *last, struct alike *out)
{
    out->count = 0;
    out->dot = NULL;
    while (last->shape.rank == 2 && mgx_used_once(last)) {
        if (is_product(last)) {
            out->dot = last;
            return;
        }
        const bool plain = (last->op->flags & MGX_OP_POINTWISE) && !last->mod_count &&
                           last->in_count <= MOST && !mgx_field_find(last->op, "axis");
        const int at = plain && out->count < MOST ? find_rows(last) : -1;
        if (at < 0)
            return;
        out->ins[out->count++] = last;
        last = last->in[at];
    }
}

static struct mgx_ins *emit_alike(struct mgx_ins *at, const struct alike *a, struct mgx_ins *y)
{
    struct mgx_ins *in[MOST], *old = a->dot;
    for (int i = a->count - 1; i >= 0; i--) {
        for (int k = 0; k < a->ins[i]->in_count; k++)
            in[k] = a->ins[i]->in[k] == old ? y : a->ins[i]->in[k];
        y = mgx_emit_again(at, a->ins[i], in, a->ins[i]->in_count);
        old = a->ins[i];
    }
    return y;
}

static struct mgx_ins *order_rows(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *view = mgx_var(m, 'v'), *source;
    struct mgx_view v;
    struct mgx_view_plan before, after;
    struct alike a;
    int64_t lens[MGX_MAX_RANK];
    const int last = view->shape.rank - 1;
    const struct mgx_ints order = mgx_ins_ints(ins, "permutation");
    look_for_product(view->in[0], &a);
    if (!a.dot || last < 1 || order.v[last] != last ||
        view->shape.lens[last] != a.dot->shape.lens[1])
        return NULL;
    if (!describe(a.dot->in[0], &v, &source) || source->owner != r->module ||
        !mgx_view_plan(&v, &before) || !mgx_view_copies(&before))
        return NULL;
    const int64_t k = a.dot->in[0]->shape.lens[1], rows = a.dot->shape.lens[0];
    for (int i = 0; i < last; i++)
        lens[i] = view->shape.lens[i];
    lens[last] = k;
    if (!mgx_view_reshape(&v, lens, last + 1) || !mgx_view_apply(&v, ins) ||
        !mgx_view_reshape(&v, (int64_t[]){rows, k}, 2) || !mgx_view_plan(&v, &after) ||
        after.steps > before.steps)
        return NULL;
    struct mgx_ins *x = mgx_view_emit(ins, source, &v, &after);
    struct mgx_ins *y = mgx_emit_binary(ins, a.dot->op, x, a.dot->in[1]);
    return mgx_emit_reshape(ins, emit_alike(ins, &a, y), ins->shape.lens, ins->shape.rank);
}

// Rows of `k` values along two axes of a row-major source, exchanged, and nothing else.
static bool exchanges_rows(struct mgx_ins *x, int64_t k, struct mgx_view *v,
                           struct mgx_ins **source)
{
    const int rank = x->shape.rank, last = rank - 1;
    if (!mgx_used_once(x) || !describe(x, v, source) || !mgx_shape_is_standard(&(*source)->shape) ||
        v->begin[rank] != 3 || v->begin[last] != 2)
        return false;
    const struct mgx_factor *f = v->factor;
    return f[2].length == k && f[2].stride == 1 && f[0].stride == k &&
           f[1].stride == k * f[0].length;
}

static struct mgx_ins *pass_rows(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    struct mgx_ins *x = mgx_var(m, 'x'), *w = ins->in[1], *source;
    const int rank = ins->shape.rank;
    struct mgx_view v;
    struct mgx_spread s = {.core = w};
    if (!is_product(ins) || rank < 2 || (rank > 2 && !is_shared(w, &s)) ||
        !exchanges_rows(x, x->shape.lens[rank - 1], &v, &source) || source->owner != r->module)
        return NULL;
    const int64_t k = x->shape.lens[rank - 1], n = ins->shape.lens[rank - 1];
    const int64_t inner = v.factor[0].length, outer = v.factor[1].length;
    w = mgx_emit_reshape(ins, s.core, (int64_t[]){k, n}, 2);
    struct mgx_ins *y = mgx_emit_reshape(ins, source, (int64_t[]){outer * inner, k}, 2);
    y = mgx_emit_binary(ins, ins->op, y, w);
    y = mgx_emit_reshape(ins, y, (int64_t[]){outer, inner, n}, 3);
    y = mgx_emit_transpose(ins, y, (int[]){1, 0, 2}, 3);
    return mgx_emit_reshape(ins, y, ins->shape.lens, rank);
}

static const struct mgx_rule rules[] = {
    {"dot|quant_dot(x, w:multibroadcast|broadcast) ~> reshape(dot(reshape(x), w))", MGX_IF_STATIC,
     .rewrite = flatten},
    {"transpose(v:reshape!) ~> reshape(f(dot(view(x), w)))", MGX_IF_STATIC, .rewrite = order_rows},
    {"dot|quant_dot(x:reshape|transpose, w) ~> reshape(transpose(reshape(dot(reshape(x), w))))",
     MGX_IF_STATIC, .rewrite = pass_rows},
};

const struct mgx_rules mgx_rules_flat = {rules, MGX_COUNT(rules)};
