// SPDX-License-Identifier: MIT
// Removes conversions that change nothing.
//
//     convert[t](x of type t)     =>  x
//     convert[t](convert[u](x))   =>  convert[t](x)     where u holds every value of x's type
//
// The second is exact: the value that reaches the outer conversion is the same. One trap: integers
// wrap into narrower integers, while floats saturate, so an integer's way through a float to an
// integer that does not hold it must stay.
#include "pass/engine/rewrite.h"

// Bits of significand and of exponent range a number type offers; integers have no exponent.
struct reach {
    int digits, exponent;
};

static struct reach reach_of(enum mgx_type type)
{
    switch (type) {
    case MGX_DOUBLE:
        return (struct reach){53, 11};
    case MGX_FLOAT:
        return (struct reach){24, 8};
    case MGX_HALF:
        return (struct reach){11, 5};
    case MGX_BF16:
        return (struct reach){8, 8};
    case MGX_FP8E4M3FN:
    case MGX_FP8E4M3FNUZ:
        return (struct reach){4, 4};
    case MGX_FP8E5M2:
        return (struct reach){3, 5};
    default:
        return (struct reach){0, 0};
    }
}

static int integer_bits(enum mgx_type type) // without the sign
{
    switch (type) {
    case MGX_BOOL:
        return 1;
    case MGX_INT4:
    case MGX_UINT4:
        return 4 - !mgx_type_is_unsigned(type);
    case MGX_INT2:
    case MGX_UINT2:
        return 2 - !mgx_type_is_unsigned(type);
    default:
        return (int)mgx_type_size(type) * 8 - !mgx_type_is_unsigned(type);
    }
}

static bool is_integer(enum mgx_type type)
{
    return mgx_type_is_integral(type) || type == MGX_BOOL;
}

// Is every value of `from` a value of `to`?
static bool holds_all(enum mgx_type to, enum mgx_type from)
{
    if (to == from)
        return true;
    if (is_integer(from) && is_integer(to))
        return to != MGX_BOOL && integer_bits(from) <= integer_bits(to) &&
               (mgx_type_is_unsigned(from) || from == MGX_BOOL || !mgx_type_is_unsigned(to));
    const struct reach t = reach_of(to), f = reach_of(from);
    if (is_integer(from)) // the exponents of these floats reach beyond their digits
        return t.digits >= integer_bits(from) && t.exponent >= 5;
    if (!f.digits || t.exponent < 5) // narrow targets: not worth the special cases
        return false;
    if (t.digits < f.digits)
        return false;
    // One more bit of exponent also holds the subnormal numbers. Equal exponents have equal ranges
    // in these two cases; the kinds of e4m3 differ in theirs.
    const bool same_range = from == MGX_FP8E5M2 || from == MGX_BF16;
    return t.exponent > f.exponent || (t.exponent == f.exponent && same_range);
}

static bool same_type(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    return mgx_var(m, 'x')->shape.type == ins->shape.type;
}

static bool is_widening(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    const enum mgx_type from = mgx_var(m, 'x')->shape.type, by = mgx_var(m, 'c')->shape.type,
                        to = ins->shape.type;
    if (is_integer(from) && !is_integer(by) && is_integer(to) && !holds_all(to, from))
        return false;
    return holds_all(by, from);
}

static struct mgx_ins *convert_at_once(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)r;
    return mgx_emit_before(ins, &mgx_op_convert,
                           MGX_ATTRS(mgx_int("target_type", (int64_t)ins->shape.type)),
                           MGX_IN(mgx_var(m, 'x')));
}

static const struct mgx_rule rules[] = {
    {"convert(x) => x", .guard = same_type},
    {"convert(c:convert(x)) ~> convert(x), as c loses nothing", .guard = is_widening,
     .rewrite = convert_at_once},
};

const struct mgx_pass mgx_pass_eliminate_convert = {
    .name = "eliminate_convert",
    .meaning = "removes conversions to the same type and through wider types",
    .rules = {rules, MGX_COUNT(rules)},
};
