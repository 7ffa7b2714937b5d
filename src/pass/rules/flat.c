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
//     transpose(reshape(dot(view(x), w)))  =>  reshape(dot(view'(x), w))
//
// Holds: the transpose keeps columns last, and view moves values anyway (heads of an attention that
// are joined, say), in no fewer steps than view'. What reads the result then lies as it does.
#include "pass/engine/emit.h"
#include "pass/engine/view.h"
#include "pass/rules/rules.h"

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
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dot, x, w);
    return mgx_emit_reshape(ins, y, ins->shape.lens, rank);
}

// The view of `ins` and of what it reads, up to its source; false where there is no normal form.
static bool describe(struct mgx_ins *ins, struct mgx_view *v, struct mgx_ins **source)
{
    enum { MOST = 8 };
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

static struct mgx_ins *order_rows(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct mgx_ins *dot = mgx_var(m, 'd'), *view = mgx_var(m, 'v'), *source;
    struct mgx_view v;
    struct mgx_view_plan before, after;
    const int last = view->shape.rank - 1;
    int64_t lens[MGX_MAX_RANK];
    const int64_t k = dot->in[0]->shape.lens[1], rows = dot->shape.lens[0];
    const struct mgx_ints order = mgx_ins_ints(ins, "permutation");
    if (dot->shape.rank != 2 || dot->in_count != 2 || last < 1 || order.v[last] != last ||
        view->shape.lens[last] != dot->shape.lens[1])
        return NULL;
    if (!describe(dot->in[0], &v, &source) || source->owner != r->module ||
        !mgx_view_plan(&v, &before) || !mgx_view_copies(&before))
        return NULL;
    for (int i = 0; i < last; i++)
        lens[i] = view->shape.lens[i];
    lens[last] = k;
    if (!mgx_view_reshape(&v, lens, last + 1) || !mgx_view_apply(&v, ins) ||
        !mgx_view_reshape(&v, (int64_t[]){rows, k}, 2) || !mgx_view_plan(&v, &after) ||
        after.steps > before.steps)
        return NULL;
    struct mgx_ins *x = mgx_view_emit(ins, source, &v, &after);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_dot, x, dot->in[1]);
    return mgx_emit_reshape(ins, y, ins->shape.lens, ins->shape.rank);
}

static const struct mgx_rule rules[] = {
    {"dot(x, w:multibroadcast|broadcast) => reshape(dot(reshape(x), w))", MGX_IF_STATIC,
     .rewrite = flatten},
    {"transpose(v:reshape!(d:dot!(x, w))) => reshape(dot(view(x), w))", MGX_IF_STATIC,
     .rewrite = order_rows},
};

const struct mgx_rules mgx_rules_flat = {rules, MGX_COUNT(rules)};
