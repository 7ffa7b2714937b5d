// SPDX-License-Identifier: MIT
// Algebra of scalar operators, one equation a row.
//
// What is allowed: rounding may change where constants are combined ahead of time; NaN and infinity
// stay where they were, except where a row asks for fast_math (the sign of a zero is not looked
// after). So x - x is no zero for floats, log(exp(x)) no x, and combined constants must not
// overflow or vanish. Integers wrap, so their rows are exact in any order.
#include "pass/rules/rules.h"

#include <math.h>

#include "pass/engine/emit.h"

// --- guards ---

static bool variable(struct mgx_rewriter *r, const struct mgx_match *m, char letter)
{
    return !mgx_is_constant(r->module, mgx_var(m, letter));
}

// x is no constant (then folding is another pass's work) and the constants a, b combine safely.
static bool sum_ab(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    return variable(r, m, 'x') &&
           mgx_sum_is_safe(ins->shape.type, mgx_var(m, 'a'), mgx_var(m, 'b'));
}

static bool product_ab(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    return variable(r, m, 'x') &&
           mgx_product_is_safe(ins->shape.type, mgx_var(m, 'a'), mgx_var(m, 'b'));
}

static bool quotient_ab(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    return variable(r, m, 'x') &&
           mgx_quotient_is_safe(ins->shape.type, mgx_var(m, 'a'), mgx_var(m, 'b'));
}

static bool quotient_ba(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    return variable(r, m, 'x') &&
           mgx_quotient_is_safe(ins->shape.type, mgx_var(m, 'b'), mgx_var(m, 'a'));
}

static bool variable_x(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)ins;
    return variable(r, m, 'x');
}

static bool variables_xy(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    return sum_ab(r, ins, m) && variable(r, m, 'y');
}

static bool ordered_ab(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)ins;
    struct mgx_range a, b;
    return variable(r, m, 'x') && mgx_constant_range(mgx_var(m, 'a'), &a) &&
           mgx_constant_range(mgx_var(m, 'b'), &b) && a.high <= b.low;
}

// pow(-inf, 0.5) is inf, sqrt(-inf) is NaN: the base must not be negative.
static bool nonnegative_x(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)ins;
    return r->call->options->fast_math || mgx_is_nonnegative(mgx_var(m, 'x'));
}

// An unsigned number's negative wraps around, and is its own magnitude.
static bool signed_x(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return mgx_type_is_signed(ins->shape.type);
}

enum { MOST_READERS = 32 };

// Is the value rounded to whole numbers or to few bits soon, as in quantizing? A last bit of it
// then decides between two of those, which lie far apart. *left bounds how many readers are looked
// at.
static bool leads_to_rounding(const struct mgx_ins *ins, int *left)
{
    static const struct mgx_op *const between[] = {&mgx_op_add, &mgx_op_sub, &mgx_op_mul,
                                                   &mgx_op_max, &mgx_op_min, &mgx_op_clip};
    for (const struct mgx_use *use = ins->uses; use && (*left)-- > 0; use = use->next) {
        const struct mgx_ins *reader = use->user;
        const enum mgx_type type = reader->shape.type;
        const bool narrows = mgx_type_is_integral(type) || mgx_type_size(type) == 1;
        if (reader->op == &mgx_op_nearbyint || (reader->op == &mgx_op_convert && narrows))
            return true;
        bool leads = false;
        for (size_t i = 0; i < MGX_COUNT(between); i++)
            leads |= reader->op == between[i];
        if (leads && leads_to_rounding(reader, left))
            return true;
    }
    return false;
}

static bool is_rounded(const struct mgx_ins *ins)
{
    int left = MOST_READERS;
    return leads_to_rounding(ins, &left);
}

// Dividing by a power of two is multiplying by another, exactly. A single value's division costs
// nothing, and is worth its last bit: it may be the scale of a whole tensor.
static bool exact_reciprocal(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    double value;
    struct mgx_range range;
    const struct mgx_ins *a = mgx_var(m, 'a');
    if (!variable(r, m, 'x') || mgx_type_size(ins->shape.type) < 2) // fp8 reaches not that far
        return false;
    const bool one = mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) == 1;
    if (r->call->options->fast_math && !one && !is_rounded(ins))
        return mgx_constant_range(a, &range) && range.low * range.high > 0 &&
               1 / range.small <= mgx_type_highest(ins->shape.type);
    int exponent;
    return mgx_splat_value(a, &value) && fabs(frexp(value, &exponent)) == 0.5 && exponent > -14 &&
           exponent < 14;
}

static bool unrounded_quotient_ab(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    return quotient_ab(r, ins, m) && !is_rounded(ins);
}

static bool unrounded_product_ab(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    return product_ab(r, ins, m) && !is_rounded(ins);
}

// --- rewrites that need more than the right side ---

static struct mgx_ins *zero(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    return mgx_emit_splat(ins, &ins->shape, 0);
}

// One order for what commutes, so that equal things look equal.
static struct mgx_ins *constant_last(struct mgx_rewriter *r, struct mgx_ins *ins,
                                     const struct mgx_match *m)
{
    (void)m;
    if (!mgx_is_constant(r->module, ins->in[0]) || mgx_is_constant(r->module, ins->in[1]))
        return NULL;
    return mgx_emit_again(ins, ins, (struct mgx_ins *const[]){ins->in[1], ins->in[0]}, 2);
}

// --- the equations ---

static const struct mgx_rule rules[] = {
    // Neutral elements.
    {"add(x, 0) => x"},
    {"sub(x, 0) => x"},
    {"mul(x, 1) => x"},
    {"div(x, 1) => x"},
    {"pow(x, 1) => x"},
    {"logical_and(x, 1) => x"},
    {"logical_or(x, 0) => x"},
    {"logical_xor(x, 0) => x"},
    {"max|min|logical_and|logical_or(x, x) => x"},
    {"where(c, x, x) => x"},
    {"mul(x, 0) ~> 0", MGX_IF_INTEGRAL | MGX_IF_STATIC, .rewrite = zero},
    {"sub(x, x) ~> 0", MGX_IF_INTEGRAL | MGX_IF_STATIC, .rewrite = zero},

    // Signs.
    {"sub(0, x) => neg(x)", MGX_IF_NUMBER},
    {"mul(x, -1) => neg(x)", MGX_IF_NUMBER},
    {"div(x, -1) => neg(x)", MGX_IF_FLOAT},
    {"neg(neg(x)) => x", MGX_IF_NUMBER},
    {"abs(neg(x)) => abs(x)", MGX_IF_NUMBER, .guard = signed_x},
    {"add(x, neg(y)) => sub(x, y)", MGX_IF_NUMBER},
    {"sub(x, neg(y)) => add(x, y)", MGX_IF_NUMBER},
    {"mul(neg(x), neg(y)) => mul(x, y)", MGX_IF_NUMBER},
    {"div(neg(x), neg(y)) => div(x, y)", MGX_IF_FLOAT},
    {"neg(sub!(x, y)) => sub(y, x)", MGX_IF_NUMBER},
    {"neg(mul!(x, a#)) => mul(x, neg(a))", MGX_IF_NUMBER, .guard = variable_x},

    // Twice is once.
    {"abs(abs(x)) => abs(x)"},
    {"relu(relu(x)) => relu(x)"},
    {"relu(abs(x)) => abs(x)", MGX_IF_FLOAT},
    {"not(not(x)) => x"},
    {"floor(floor(x)) => floor(x)"},
    {"ceil(ceil(x)) => ceil(x)"},
    {"nearbyint(nearbyint(x)) => nearbyint(x)"},
    {"sign(sign(x)) => sign(x)"},

    // Powers and roots.
    {"pow(x, 2) => mul(x, x)"},
    {"pow(x, 3) => mul(mul(x, x), x)"},
    {"pow(x, -1) => recip(x)", MGX_IF_FLOAT},
    {"pow(x, 0.5) => sqrt(x)", MGX_IF_FLOAT, .guard = nonnegative_x},
    {"pow(x, -0.5) => rsqrt(x)", MGX_IF_FLOAT, .guard = nonnegative_x},
    {"div(1, x) => recip(x)", MGX_IF_FLOAT},
    {"recip(sqrt(x)) => rsqrt(x)", MGX_IF_FLOAT},
    {"recip(rsqrt(x)) => sqrt(x)", MGX_IF_FLOAT},
    {"div(x, sqrt(y)) => mul(x, rsqrt(y))", MGX_IF_FLOAT},
    {"recip(recip(x)) => x", MGX_IF_FLOAT | MGX_IF_FAST},
    {"log(exp(x)) => x", MGX_IF_FLOAT | MGX_IF_FAST},
    {"exp(log(x)) => x", MGX_IF_FLOAT | MGX_IF_FAST},

    // Activations as exporters spell them.
    {"max(x, 0) => relu(x)", .guard = variable_x},
    {"recip(add(exp(neg(x)), 1)) => sigmoid(x)", MGX_IF_FLOAT},
    {"div(x, add!(exp!(neg!(x)), 1)) => mul(x, sigmoid(x))", MGX_IF_FLOAT},
    {"min(max!(x, a#), b#) => clip(x, a, b)", .guard = ordered_ab},
    {"max(min!(x, b#), a#) => clip(x, a, b)", .guard = ordered_ab},

    // Constants go to the right ...
    {"add|mul|max|min|equal|sqdiff|logical_and|logical_or(x, a#) ~> op(x, a) for op(a, x)",
     .rewrite = constant_last},

    // ... and meet.
    {"add(add!(x, a#), b#) => add(x, add(a, b))", .guard = sum_ab},
    {"add(sub!(x, a#), b#) => add(x, sub(b, a))", .guard = sum_ab},
    {"add(sub!(a#, x), b#) => sub(add(a, b), x)", .guard = sum_ab},
    {"sub(add!(x, a#), b#) => add(x, sub(a, b))", .guard = sum_ab},
    {"sub(sub!(x, a#), b#) => sub(x, add(a, b))", .guard = sum_ab},
    {"sub(sub!(a#, x), b#) => sub(sub(a, b), x)", .guard = sum_ab},
    {"sub(a#, add!(x, b#)) => sub(sub(a, b), x)", .guard = sum_ab},
    {"sub(a#, sub!(x, b#)) => sub(add(a, b), x)", .guard = sum_ab},
    {"sub(a#, sub!(b#, x)) => add(x, sub(a, b))", .guard = sum_ab},
    {"add(add!(x, a#), add!(y, b#)) => add(add(x, y), add(a, b))", .guard = variables_xy},
    {"mul(mul!(x, a#), b#) => mul(x, mul(a, b))", .guard = product_ab},
    {"mul(div!(x, a#), b#) => mul(x, div(b, a))", MGX_IF_FLOAT, .guard = quotient_ba},
    {"mul(div!(a#, x), b#) => div(mul(a, b), x)", MGX_IF_FLOAT, .guard = product_ab},
    {"div(mul!(x, a#), b#) => mul(x, div(a, b))", MGX_IF_FLOAT, .guard = unrounded_quotient_ab},
    {"div(div!(x, a#), b#) => div(x, mul(a, b))", MGX_IF_FLOAT, .guard = unrounded_product_ab},
    {"div(a#, mul!(x, b#)) => div(div(a, b), x)", MGX_IF_FLOAT, .guard = quotient_ab},
    {"div(x, a#) => mul(x, recip(a))", MGX_IF_FLOAT, .guard = exact_reciprocal},
    {"max(max!(x, a#), b#) => max(x, max(a, b))", .guard = variable_x},
    {"min(min!(x, a#), b#) => min(x, min(a, b))", .guard = variable_x},
    {"add(mul!(x, a#), mul!(x, b#)) => mul(x, add(a, b))", MGX_IF_FAST, .guard = sum_ab},
};

const struct mgx_rules mgx_rules_scalar = {rules, MGX_COUNT(rules)};
