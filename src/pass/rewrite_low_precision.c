// SPDX-License-Identifier: MIT
// Squares that are scaled down are scaled down first, where a square leaves the range of the type.
//
//     x x / c      =>  x (x / c)        in half
//     x^2 / c      =>  x (x / c)
//     x x c        =>  x (x c)          |c| < 1
//
// In half 300 x 300 is infinite already, the mean of squares of a normalisation is not. bfloat16
// has the range of float and is left alone. As many operations as before.
//
// No pipeline of ours runs it; a caller asks for it by name (the driver's --apply-pass).
#include <math.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static bool is_half(const struct mgx_ins *ins)
{
    return ins->shape.type == MGX_HALF;
}

static bool divides_half(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return is_half(ins);
}

// The factor makes things smaller; a larger one could overflow where the square does not.
static bool shrinks_half(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    double factor;
    (void)r;
    return is_half(ins) && mgx_splat_value(mgx_var(m, 'c'), &factor) && fabs(factor) < 1;
}

static struct mgx_ins *divide_first(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x');
    return mgx_emit_binary(ins, &mgx_op_mul, x,
                           mgx_emit_binary(ins, &mgx_op_div, x, mgx_var(m, 'c')));
}

static struct mgx_ins *scale_first(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x');
    return mgx_emit_binary(ins, &mgx_op_mul, x,
                           mgx_emit_binary(ins, &mgx_op_mul, x, mgx_var(m, 'c')));
}

static const struct mgx_rule rules[] = {
    {"div(mul!(x, x), c) ~> mul(x, div(x, c))", .guard = divides_half, .rewrite = divide_first},
    {"div(pow!(x, 2), c) ~> mul(x, div(x, c))", .guard = divides_half, .rewrite = divide_first},
    {"mul(mul!(x, x), c#) ~> mul(x, mul(x, c))", .guard = shrinks_half, .rewrite = scale_first},
    {"mul(pow!(x, 2), c#) ~> mul(x, mul(x, c))", .guard = shrinks_half, .rewrite = scale_first},
};

const struct mgx_pass mgx_pass_rewrite_low_precision = {
    .name = "rewrite_low_precision",
    .meaning = "keeps scaled squares of half in range",
    .rules = {rules, MGX_COUNT(rules)},
};
