// SPDX-License-Identifier: MIT
// Products whose batches share one matrix are one product.
//
//     dot(x {b.., m, k}, multibroadcast(w {k, n}))
//         =>  reshape(dot(reshape(x, {b*m, k}), w), {b.., m, n})
//
// Holds: x is row-major, so that its reshape is a view. One product of b*m rows instead of b of m;
// weights lose their broadcast, so whoever packs them finds them at once.
#include "pass/engine/emit.h"
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

static const struct mgx_rule rules[] = {
    {"dot(x, w:multibroadcast|broadcast) => reshape(dot(reshape(x), w))", MGX_IF_STATIC,
     .rewrite = flatten},
};

const struct mgx_rules mgx_rules_flat = {rules, MGX_COUNT(rules)};
