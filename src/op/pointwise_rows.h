// SPDX-License-Identifier: MIT
// The table of scalar operators, one row each: the expression is the meaning.
//
// Whoever includes this file says what a row becomes, by defining the eight macros below; it may
// be included any number of times. From one row come, and so cannot disagree:
//
//     MGX_PW_<name>                          op/pointwise.h
//     mgx_op_<name>, reference and meaning   op/pointwise.c
//     text for code generators               op/source.h
//     loops over floats on the CPU           targets/cpu/kernel/rows/f32_block.h
//     loops over integers and doubles        targets/cpu/kernel/rows/x_typed.h
//
//     PRELUDE(functions)                              C functions that the texts call
//     ROW_REAL(name, n, real)                         integers are computed in double, converted
//     ROW_ALL(name, n, order, result, real, s, u)     a text for each class of numbers
//     ROW_WRAP(name, n, order, text)                  one for all; integers modulo 2^64
//     ROW_INT(name, n, order, s, u)                   integers and bool only
//     ROW_ALPHA(name, alpha, real)                    one operand, `a` an attribute's value
//     ROW_LINE(name, alpha, beta, real)               the same with `b` besides; both by default
//     ROW_WHERE(name, real)                           reads a condition of another type
//
// x, y, z are the operands, n their number; of two a row says whether they may be swapped: SWAPS,
// ORDERED. TRUTH: it gives 0 or 1; STEP: it jumps. The result is of the operands' type or bool:
// SAME, BOOL. The texts keep to what C, CUDA C and OpenCL C share.
//
// Holds: NaN passes through selections as in numpy (write the comparison so that NaN falls into the
// branch that hands it on); integers wrap; dividing an integer by zero gives 0 and never traps.
// `|` and `&` between comparisons, not `||` and `&&`: vectors have no branches.

// clang-format off
PRELUDE(
PW_FN i64 pw_neg(i64 x) { return (i64)(0 - (u64)x); }
PW_FN i64 pw_div(i64 x, i64 y) { return y == 0 ? 0 : y == -1 ? pw_neg(x) : x / y; }
PW_FN i64 pw_rem(i64 x, i64 y) { return y == 0 || y == -1 ? 0 : x % y; }
PW_FN i64 pw_mod(i64 x, i64 y)
{
    i64 r = pw_rem(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
PW_FN u64 pw_upow(u64 x, u64 y)
{
    u64 r = 1;
    for (; y; y >>= 1) {
        if (y & 1)
            r *= x;
        x *= x;
    }
    return r;
}
PW_FN i64 pw_pow(i64 x, i64 y)
{
    if (y >= 0)
        return (i64)pw_upow((u64)x, (u64)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
}
)

// Short forms of rows, by the number of operands.
#define UNARY(name, e) ROW_REAL(name, 1, e)
#define UNARY_ALL(name, e, s, u) ROW_ALL(name, 1, ORDERED, SAME, e, s, u)
#define UNARY_STEP(name, e, s, u) ROW_ALL(name, 1, STEP, SAME, e, s, u)
#define UNARY_BOOL(name, e, s, u) ROW_ALL(name, 1, TRUTH, BOOL, e, s, u)
#define UNARY_INT(name, s, u) ROW_INT(name, 1, ORDERED, s, u)
#define UNARY_ALPHA(name, alpha, e) ROW_ALPHA(name, alpha, e)
#define UNARY_LINE(name, alpha, beta, e) ROW_LINE(name, alpha, beta, e)
#define BINARY_ALL(name, order, e, s, u) ROW_ALL(name, 2, order, SAME, e, s, u)
#define BINARY_SAME(name, order, e) ROW_ALL(name, 2, order, SAME, e, e, e)
#define BINARY_BOOL(name, order, e) ROW_ALL(name, 2, order | TRUTH, BOOL, e, e, e)
#define BINARY_WRAP(name, order, e) ROW_WRAP(name, 2, order, e)
#define BINARY_INT(name, order, s, u) ROW_INT(name, 2, order, s, u)
#define TERNARY_SAME(name, e) ROW_ALL(name, 3, ORDERED, SAME, e, e, e)
#define TERNARY_WHERE(name, e) ROW_WHERE(name, e)

UNARY_ALL(abs, fabs(x), x < 0 ? pw_neg(x) : x, x)
UNARY(acos, acos(x))
UNARY(acosh, acosh(x))
UNARY(asin, asin(x))
UNARY(asinh, asinh(x))
UNARY(atan, atan(x))
UNARY(atanh, atanh(x))
UNARY_INT(bitwise_not, ~x, ~x)
UNARY_STEP(ceil, ceil(x), x, x)
UNARY(cos, cos(x))
UNARY(cosh, cosh(x))
UNARY(erf, erf(x))
UNARY(exp, exp(x))
UNARY_STEP(floor, floor(x), x, x)
UNARY_BOOL(isinf, (x == x) & (x - x != 0), 0, 0)
UNARY_BOOL(isnan, x != x, 0, 0)
UNARY(log, log(x))
UNARY(log2, log2(x))
UNARY_STEP(nearbyint, rint(x), x, x)
UNARY_ALL(neg, -x, pw_neg(x), 0 - x)
UNARY_BOOL(not, x == 0, x == 0, x == 0)
UNARY(recip, 1 / x)
UNARY_ALL(relu, x < 0 ? 0 : x, x < 0 ? 0 : x, x)
UNARY(rsqrt, 1 / sqrt(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY_STEP(sign, x != x ? x : (x > 0) - (x < 0), (x > 0) - (x < 0), x > 0)
UNARY(sin, sin(x))
UNARY(sinh, sinh(x))
UNARY(sqrt, sqrt(x))
UNARY(tan, tan(x))
UNARY(tanh, tanh(x))
UNARY_STEP(trunc, trunc(x), x, x)

// Activations that models spell with several operators; pass/rules/activation.c finds them.
UNARY(gelu, x * 0.5 * (1 + erf(x * 0.70710678118654752)))
UNARY(gelu_tanh, x * 0.5 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
UNARY(mish, x * tanh((x > 0 ? x : 0) + log1p(exp(-fabs(x)))))
UNARY(silu, x / (1 + exp(-x)))
UNARY(softplus, (x > 0 ? x : 0) + log1p(exp(-fabs(x))))
UNARY_ALPHA(elu, 1, x > 0 ? x : a * expm1(x))
UNARY_ALPHA(leaky_relu, 0.01, x > 0 ? x : a * x)
UNARY_ALPHA(swish, 1, x / (1 + exp(-a * x)))
UNARY_LINE(hard_sigmoid, 0.2, 0.5, a * x + b < 0 ? 0 : a * x + b > 1 ? 1 : a * x + b)
UNARY_LINE(hard_swish, 1.0 / 6, 0.5, x * (a * x + b < 0 ? 0 : a * x + b > 1 ? 1 : a * x + b))

BINARY_WRAP(add, SWAPS, x + y)
BINARY_INT(bit_shift_left, ORDERED, y < 0 || y > 63 ? 0 : (i64)((u64)x << y), y > 63 ? 0 : x << y)
BINARY_INT(bit_shift_right, ORDERED, y < 0 || y > 63 ? (x < 0 ? -1 : 0) : x >> y,
           y > 63 ? 0 : x >> y)
BINARY_INT(bitwise_and, SWAPS, x & y, x & y)
BINARY_INT(bitwise_or, SWAPS, x | y, x | y)
BINARY_INT(bitwise_xor, SWAPS, x ^ y, x ^ y)
BINARY_ALL(div, ORDERED, x / y, pw_div(x, y), y == 0 ? 0 : x / y)
BINARY_SAME(equal, SWAPS | TRUTH, x == y)
BINARY_ALL(fmod, STEP, fmod(x, y), pw_rem(x, y), y == 0 ? 0 : x % y)
BINARY_SAME(greater, TRUTH, x > y)
BINARY_SAME(less, TRUTH, x < y)
BINARY_BOOL(logical_and, SWAPS, (x != 0) & (y != 0))
BINARY_BOOL(logical_or, SWAPS, (x != 0) | (y != 0))
BINARY_BOOL(logical_xor, SWAPS, (x != 0) ^ (y != 0))
BINARY_SAME(max, SWAPS, (x != x) | (x > y) ? x : y)
BINARY_SAME(min, SWAPS, (x != x) | (x < y) ? x : y)
BINARY_ALL(mod, STEP,
           fmod(x, y) == 0                ? copysign(fmod(x, y), y)
           : (fmod(x, y) < 0) != (y < 0)  ? fmod(x, y) + y
                                          : fmod(x, y),
           pw_mod(x, y), y == 0 ? 0 : x % y)
BINARY_WRAP(mul, SWAPS, x * y)
BINARY_ALL(pow, ORDERED, pow(x, y), pw_pow(x, y), pw_upow(x, y))
BINARY_ALL(prelu, ORDERED, x < 0 ? x * y : x, x < 0 ? (i64)((u64)x * (u64)y) : x, x)
BINARY_WRAP(sqdiff, SWAPS, (x - y) * (x - y))
BINARY_WRAP(sub, ORDERED, x - y)

TERNARY_SAME(clip, (x < y ? y : x) > z ? z : x < y ? y : x)
TERNARY_WHERE(where, x != 0 ? y : z)

#undef UNARY
#undef UNARY_ALL
#undef UNARY_STEP
#undef UNARY_BOOL
#undef UNARY_INT
#undef UNARY_ALPHA
#undef UNARY_LINE
#undef BINARY_ALL
#undef BINARY_SAME
#undef BINARY_BOOL
#undef BINARY_WRAP
#undef BINARY_INT
#undef TERNARY_SAME
#undef TERNARY_WHERE
#undef PRELUDE
#undef ROW_REAL
#undef ROW_ALL
#undef ROW_WRAP
#undef ROW_INT
#undef ROW_ALPHA
#undef ROW_LINE
#undef ROW_WHERE
// clang-format on
