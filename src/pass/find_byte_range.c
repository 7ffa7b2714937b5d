// SPDX-License-Identifier: MIT
// The range of what is quantized while it runs, as importers write it, becomes one operator.
//
//     d = (max(reduce_max(x), 0) - min(reduce_min(x), 0)) / 255
//     s = where(d == 0, 1, d)                            =>  byte_range(x)[0]
//     clip(nearbyint(-min(reduce_min(x), 0) / s), 0, 255)  =>  byte_range(x)[1]
//                                                        or 0 where x is never negative
//
// Both over all of x, which is then read once instead of twice. The GPU target runs it, before
// anything else has written them in another way; spread_byte_range carries both to who reads them.
// Where a zero point is known to be 0 products have nothing to take off, and images no padding.
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

#define LOW "min(squeeze(l:reduce_min(x)), 0)"
#define WIDTH "d:div(sub(max(squeeze(h:reduce_max(x)), 0), " LOW "), 255)"

static bool sees_all(const struct mgx_ins *reduce)
{
    return !reduce || (reduce->in[0]->shape.type == MGX_FLOAT &&
                       mgx_shape_elements(&reduce->in[0]->shape) > 0 &&
                       mgx_shape_elements(&reduce->shape) == 1);
}

static bool is_range(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    return mgx_shape_elements(&ins->shape) == 1 && sees_all(mgx_var(m, 'l')) &&
           sees_all(mgx_var(m, 'h'));
}

static struct mgx_ins *part(struct mgx_ins *at, struct mgx_ins *x, int number)
{
    struct mgx_ins *range = mgx_emit_unary(at, &mgx_op_byte_range, x);
    range = mgx_emit_slice(at, range, 0, number, number + 1);
    return mgx_emit_reshape(at, range, at->shape.lens, at->shape.rank);
}

static struct mgx_ins *scale(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    return part(ins, mgx_var(m, 'x'), 0);
}

// The scale that it was divided by is the first part of the same range by now.
static struct mgx_ins *zero(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    const struct mgx_ins *range = mgx_var(m, 's');
    (void)r;
    while (range->op == &mgx_op_reshape || range->op == &mgx_op_slice ||
           range->op == &mgx_op_squeeze || range->op == &mgx_op_unsqueeze)
        range = range->in[0];
    struct mgx_ins *x = mgx_var(m, 'x');
    if (range->op != &mgx_op_byte_range || range->in[0] != x)
        return NULL;
    return mgx_is_nonnegative(x) ? mgx_emit_splat(ins, &ins->shape, 0) : part(ins, x, 1);
}

static const struct mgx_rule rules[] = {
    {"where(convert(equal(" WIDTH ", 0)), 1, d) ~> byte_range(x)[0]", MGX_IF_FLOAT | MGX_IF_STATIC,
     .guard = is_range, .rewrite = scale},
    {"clip(nearbyint(div(neg(" LOW "), s)), 0, 255) ~> byte_range(x)[1]",
     MGX_IF_FLOAT | MGX_IF_STATIC, .guard = is_range, .rewrite = zero},
};

const struct mgx_pass mgx_pass_find_byte_range = {
    .name = "find_byte_range",
    .meaning = "the range of what is quantized while it runs becomes one operator",
    .rules = {rules, MGX_COUNT(rules)},
};
