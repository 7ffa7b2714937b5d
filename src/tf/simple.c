// SPDX-License-Identifier: MIT
// TensorFlow operators that are one IR operator, or an expression of a few: a row each.
#include <math.h>
#include <string.h>

#include "tf/node.h"

// --- one operand ---

static enum mgx_status unary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    n->out[0] = mgx_build_unary(n, n->tf_rule->op, n->in[0]);
    return MGX_OK;
}

static enum mgx_status predicate(struct mgx_node *n)
{
    TRY(unary(n));
    n->out[0] = mgx_build_convert(n, n->out[0], MGX_BOOL);
    return MGX_OK;
}

static enum mgx_status same(struct mgx_node *n)
{
    if (n->in_count < 1)
        return mgx_node_invalid(n, "takes 1 input, given 0");
    n->out[0] = n->in[0];
    return MGX_OK;
}

static enum mgx_status same_each(struct mgx_node *n)
{
    TRY(mgx_tf_results(n, n->in_count));
    memcpy(n->out, n->in, (size_t)n->in_count * sizeof *n->out);
    return MGX_OK;
}

// Nodes that are followed for what they do, if at all.
static enum mgx_status nothing(struct mgx_node *n)
{
    return mgx_tf_results(n, 0);
}

#define EXPRESSION(name, value)                                                                    \
    static enum mgx_status name(struct mgx_node *n)                                                \
    {                                                                                              \
        TRY(mgx_node_need(n, 1, 1));                                                               \
        struct mgx_ins *x = n->in[0];                                                              \
        n->out[0] = value;                                                                         \
        return MGX_OK;                                                                             \
    }

EXPRESSION(square, mgx_build_mul(n, x, x))
EXPRESSION(erfc_, mgx_build_sub(n, mgx_build_like(n, x, 1), mgx_build_erf(n, x)))
EXPRESSION(relu6, mgx_build_clamp(n, x, 0, 6))
EXPRESSION(softplus, mgx_build_softplus(n, x))
EXPRESSION(softsign, mgx_build_div(n, x, mgx_build_with(n, &mgx_op_add, mgx_build_abs(n, x), 1)))
EXPRESSION(
    is_finite,
    mgx_build_not(n, mgx_build_logical_or(
                         n, mgx_build_convert(n, mgx_build_unary(n, &mgx_op_isnan, x), MGX_BOOL),
                         mgx_build_convert(n, mgx_build_unary(n, &mgx_op_isinf, x), MGX_BOOL))))

static struct mgx_ins *with_alpha(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x,
                                  double alpha)
{
    return mgx_build_emit(n, op, MGX_ATTRS(mgx_real("alpha", alpha)), MGX_IN(x));
}

EXPRESSION(elu, with_alpha(n, &mgx_op_elu, x, 1))

// exp(x) - 1 without losing a small x: elu(x) where x is negative, else -elu(-x) * exp(x).
static struct mgx_ins *expm1_of(struct mgx_node *n, struct mgx_ins *x)
{
    struct mgx_ins *below = with_alpha(n, &mgx_op_elu, x, 1);
    struct mgx_ins *mirrored = with_alpha(n, &mgx_op_elu, mgx_build_neg(n, x), 1);
    struct mgx_ins *above = mgx_build_neg(n, mgx_build_mul(n, mirrored, mgx_build_exp(n, x)));
    return mgx_build_where(n, mgx_build_greater(n, x, mgx_build_like(n, x, 0)), above, below);
}
EXPRESSION(expm1_, expm1_of(n, x))

// log(1 + x) without losing a small x: 2 atanh(x / (x + 2)) where x is below 1.
static struct mgx_ins *log1p_of(struct mgx_node *n, struct mgx_ins *x)
{
    struct mgx_ins *ratio = mgx_build_div(n, x, mgx_build_with(n, &mgx_op_add, x, 2));
    struct mgx_ins *small =
        mgx_build_with(n, &mgx_op_mul, mgx_build_unary(n, &mgx_op_atanh, ratio), 2);
    struct mgx_ins *large = mgx_build_log(n, mgx_build_with(n, &mgx_op_add, x, 1));
    return mgx_build_where(n, mgx_build_less(n, x, mgx_build_like(n, x, 1)), small, large);
}
EXPRESSION(log1p_, log1p_of(n, x))

EXPRESSION(leaky_relu, with_alpha(n, &mgx_op_leaky_relu, x, mgx_tf_real(n, "alpha", 0.2)))

// scale * elu(x), with the constants of the paper on self-normalising networks.
EXPRESSION(selu, mgx_build_with(n, &mgx_op_mul,
                                with_alpha(n, &mgx_op_elu, x, 1.6732632423543772848170429916717),
                                1.0507009873554804934193349852946))

// --- two operands ---

static enum mgx_status binary(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    n->out[0] = mgx_build_binary(n, n->tf_rule->op, n->in[0], n->in[1]);
    return MGX_OK;
}

static enum mgx_status compare(struct mgx_node *n)
{
    TRY(binary(n));
    n->out[0] = mgx_build_convert(n, n->out[0], MGX_BOOL);
    return MGX_OK;
}

// Shapes that do not broadcast make their tensors different, where the node asks for no failure.
static bool differ_in_shape(struct mgx_node *n)
{
    int rank;
    int64_t lens[MGX_MAX_RANK];
    return n->in_count == 2 && !mgx_tf_flag(n, "incompatible_shape_error", true) &&
           mgx_build_static(n) &&
           !mgx_build_common_lens(&n->in[0]->shape, &n->in[1]->shape, &rank, lens);
}

static enum mgx_status equal(struct mgx_node *n)
{
    if (!differ_in_shape(n))
        return compare(n);
    n->out[0] = mgx_build_scalar(n, MGX_BOOL, 0);
    return MGX_OK;
}

// a >= b as (a > b) or (a == b): unlike not (a < b) it is false for NaN.
static enum mgx_status compare_or_equal(struct mgx_node *n)
{
    TRY(compare(n));
    n->out[0] = mgx_build_logical_or(n, n->out[0], mgx_build_equal(n, n->in[0], n->in[1]));
    return MGX_OK;
}

static enum mgx_status not_equal(struct mgx_node *n)
{
    TRY(equal(n));
    n->out[0] = mgx_build_not(n, n->out[0]);
    return MGX_OK;
}

// Cut towards 0, which integers are anyway.
static enum mgx_status truncate_div(struct mgx_node *n)
{
    TRY(binary(n));
    if (n->out[0] && mgx_type_is_float(n->out[0]->shape.type))
        n->out[0] = mgx_build_unary(n, &mgx_op_trunc, n->out[0]);
    return MGX_OK;
}

// Rounded down, of integers without leaving them: q - 1 where the remainder and b differ in sign.
static enum mgx_status floor_div(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    struct mgx_ins *a = n->in[0], *b = n->in[1];
    if (mgx_type_is_float(a->shape.type)) {
        n->out[0] = mgx_build_floor(n, mgx_build_div(n, a, b));
        return MGX_OK;
    }
    n->out[0] = mgx_build_div(n, mgx_build_sub(n, a, mgx_build_mod(n, a, b)), b);
    return MGX_OK;
}

#define PAIR(name, value)                                                                          \
    static enum mgx_status name(struct mgx_node *n)                                                \
    {                                                                                              \
        TRY(mgx_node_need(n, 2, 2));                                                               \
        struct mgx_ins *a = n->in[0], *b = n->in[1];                                               \
        n->out[0] = value;                                                                         \
        return MGX_OK;                                                                             \
    }

static struct mgx_ins *is_zero(struct mgx_node *n, struct mgx_ins *x)
{
    return mgx_build_equal(n, x, mgx_build_like(n, x, 0));
}

// `value` of operands, 0 where the condition holds.
static struct mgx_ins *unless(struct mgx_node *n, struct mgx_ins *condition, struct mgx_ins *value)
{
    return value ? mgx_build_where(n, condition, mgx_build_like(n, value, 0), value) : NULL;
}

PAIR(div_no_nan, unless(n, is_zero(n, b), mgx_build_div(n, a, b)))
PAIR(mul_no_nan, unless(n, is_zero(n, b), mgx_build_mul(n, a, b)))
PAIR(xlogy, unless(n, is_zero(n, a), mgx_build_mul(n, a, mgx_build_log(n, b))))
PAIR(xdivy, unless(n, is_zero(n, a), mgx_build_div(n, a, b)))

// The quotient's arc tangent, turned by half a circle where x is negative.
static struct mgx_ins *atan2_of(struct mgx_node *n, struct mgx_ins *y, struct mgx_ins *x)
{
    struct mgx_ins *zero = mgx_build_like(n, x, 0);
    struct mgx_ins *right = mgx_build_unary(n, &mgx_op_atan, mgx_build_div(n, y, x));
    struct mgx_ins *up = mgx_build_not(n, mgx_build_less(n, y, zero));
    struct mgx_ins *turn =
        mgx_build_where(n, up, mgx_build_like(n, x, M_PI), mgx_build_like(n, x, -M_PI));
    struct mgx_ins *left = mgx_build_add(n, right, turn);
    struct mgx_ins *angle = mgx_build_where(n, mgx_build_less(n, x, zero), left, right);
    struct mgx_ins *both = mgx_build_logical_and(n, is_zero(n, x), is_zero(n, y));
    return mgx_build_where(n, both, zero, angle);
}
PAIR(atan2_, atan2_of(n, a, b))

// One to any number of operands.
static enum mgx_status add_all(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    n->out[0] = n->in[0];
    for (int i = 1; i < n->in_count; i++)
        n->out[0] = mgx_build_add(n, n->out[0], n->in[i]);
    return MGX_OK;
}

static enum mgx_status clip_by_value(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 3, 3));
    n->out[0] = mgx_build_min(n, mgx_build_max(n, n->in[0], n->in[1]), n->in[2]);
    return MGX_OK;
}

#define ANY (MGX_TF_TEXTS | MGX_TF_HANDLES | MGX_TF_COMPLEX)

// clang-format off
const struct mgx_tf_op mgx_tf_abs = {.name = "Abs", .import = unary, .op = &mgx_op_abs};
const struct mgx_tf_op mgx_tf_acos = {.name = "Acos", .import = unary, .op = &mgx_op_acos};
const struct mgx_tf_op mgx_tf_acosh = {.name = "Acosh", .import = unary, .op = &mgx_op_acosh};
const struct mgx_tf_op mgx_tf_add = {.name = "Add", .import = binary, .op = &mgx_op_add};
const struct mgx_tf_op mgx_tf_add_n = {.name = "AddN", .import = add_all};
const struct mgx_tf_op mgx_tf_add_v2 = {.name = "AddV2", .import = binary, .op = &mgx_op_add};
const struct mgx_tf_op mgx_tf_asin = {.name = "Asin", .import = unary, .op = &mgx_op_asin};
const struct mgx_tf_op mgx_tf_asinh = {.name = "Asinh", .import = unary, .op = &mgx_op_asinh};
const struct mgx_tf_op mgx_tf_assert = {.name = "Assert", .import = nothing, .no_inputs = true};
const struct mgx_tf_op mgx_tf_atan = {.name = "Atan", .import = unary, .op = &mgx_op_atan};
const struct mgx_tf_op mgx_tf_atan2 = {.name = "Atan2", .import = atan2_};
const struct mgx_tf_op mgx_tf_atanh = {.name = "Atanh", .import = unary, .op = &mgx_op_atanh};
const struct mgx_tf_op mgx_tf_bitwise_and = {.name = "BitwiseAnd", .import = binary, .op = &mgx_op_bitwise_and};
const struct mgx_tf_op mgx_tf_bitwise_or = {.name = "BitwiseOr", .import = binary, .op = &mgx_op_bitwise_or};
const struct mgx_tf_op mgx_tf_bitwise_xor = {.name = "BitwiseXor", .import = binary, .op = &mgx_op_bitwise_xor};
const struct mgx_tf_op mgx_tf_ceil = {.name = "Ceil", .import = unary, .op = &mgx_op_ceil};
const struct mgx_tf_op mgx_tf_check_numerics = {.name = "CheckNumerics", .import = same};
const struct mgx_tf_op mgx_tf_clip_by_value = {.name = "ClipByValue", .import = clip_by_value};
const struct mgx_tf_op mgx_tf_control_trigger = {.name = "ControlTrigger", .import = nothing, .takes = ANY};
const struct mgx_tf_op mgx_tf_cos = {.name = "Cos", .import = unary, .op = &mgx_op_cos};
const struct mgx_tf_op mgx_tf_cosh = {.name = "Cosh", .import = unary, .op = &mgx_op_cosh};
const struct mgx_tf_op mgx_tf_div = {.name = "Div", .import = binary, .op = &mgx_op_div};
const struct mgx_tf_op mgx_tf_div_no_nan = {.name = "DivNoNan", .import = div_no_nan};
const struct mgx_tf_op mgx_tf_elu = {.name = "Elu", .import = elu};
const struct mgx_tf_op mgx_tf_ensure_shape = {.name = "EnsureShape", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_equal = {.name = "Equal", .import = equal, .op = &mgx_op_equal, .takes = MGX_TF_TEXTS};
const struct mgx_tf_op mgx_tf_erf = {.name = "Erf", .import = unary, .op = &mgx_op_erf};
const struct mgx_tf_op mgx_tf_erfc = {.name = "Erfc", .import = erfc_};
const struct mgx_tf_op mgx_tf_exp = {.name = "Exp", .import = unary, .op = &mgx_op_exp};
const struct mgx_tf_op mgx_tf_expm1 = {.name = "Expm1", .import = expm1_};
const struct mgx_tf_op mgx_tf_floor = {.name = "Floor", .import = unary, .op = &mgx_op_floor};
const struct mgx_tf_op mgx_tf_floor_div = {.name = "FloorDiv", .import = floor_div};
const struct mgx_tf_op mgx_tf_floor_mod = {.name = "FloorMod", .import = binary, .op = &mgx_op_mod};
const struct mgx_tf_op mgx_tf_greater = {.name = "Greater", .import = compare, .op = &mgx_op_greater};
const struct mgx_tf_op mgx_tf_greater_equal = {.name = "GreaterEqual", .import = compare_or_equal, .op = &mgx_op_greater};
const struct mgx_tf_op mgx_tf_identity = {.name = "Identity", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_identity_n = {.name = "IdentityN", .import = same_each, .takes = ANY};
const struct mgx_tf_op mgx_tf_inv = {.name = "Inv", .import = unary, .op = &mgx_op_recip};
const struct mgx_tf_op mgx_tf_invert = {.name = "Invert", .import = unary, .op = &mgx_op_bitwise_not};
const struct mgx_tf_op mgx_tf_is_finite = {.name = "IsFinite", .import = is_finite};
const struct mgx_tf_op mgx_tf_is_inf = {.name = "IsInf", .import = predicate, .op = &mgx_op_isinf};
const struct mgx_tf_op mgx_tf_is_nan = {.name = "IsNan", .import = predicate, .op = &mgx_op_isnan};
const struct mgx_tf_op mgx_tf_leaky_relu = {.name = "LeakyRelu", .import = leaky_relu};
const struct mgx_tf_op mgx_tf_left_shift = {.name = "LeftShift", .import = binary, .op = &mgx_op_bit_shift_left};
const struct mgx_tf_op mgx_tf_less = {.name = "Less", .import = compare, .op = &mgx_op_less};
const struct mgx_tf_op mgx_tf_less_equal = {.name = "LessEqual", .import = compare_or_equal, .op = &mgx_op_less};
const struct mgx_tf_op mgx_tf_log = {.name = "Log", .import = unary, .op = &mgx_op_log};
const struct mgx_tf_op mgx_tf_log1p = {.name = "Log1p", .import = log1p_};
const struct mgx_tf_op mgx_tf_logical_and = {.name = "LogicalAnd", .import = compare, .op = &mgx_op_logical_and};
const struct mgx_tf_op mgx_tf_logical_not = {.name = "LogicalNot", .import = predicate, .op = &mgx_op_not};
const struct mgx_tf_op mgx_tf_logical_or = {.name = "LogicalOr", .import = compare, .op = &mgx_op_logical_or};
const struct mgx_tf_op mgx_tf_loop_cond = {.name = "LoopCond", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_maximum = {.name = "Maximum", .import = binary, .op = &mgx_op_max};
const struct mgx_tf_op mgx_tf_minimum = {.name = "Minimum", .import = binary, .op = &mgx_op_min};
const struct mgx_tf_op mgx_tf_mod = {.name = "Mod", .import = binary, .op = &mgx_op_fmod};
const struct mgx_tf_op mgx_tf_mul = {.name = "Mul", .import = binary, .op = &mgx_op_mul};
const struct mgx_tf_op mgx_tf_mul_no_nan = {.name = "MulNoNan", .import = mul_no_nan};
const struct mgx_tf_op mgx_tf_neg = {.name = "Neg", .import = unary, .op = &mgx_op_neg};
const struct mgx_tf_op mgx_tf_no_op = {.name = "NoOp", .import = nothing, .takes = ANY};
const struct mgx_tf_op mgx_tf_not_equal = {.name = "NotEqual", .import = not_equal, .op = &mgx_op_equal, .takes = MGX_TF_TEXTS};
const struct mgx_tf_op mgx_tf_placeholder_with_default = {.name = "PlaceholderWithDefault", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_pow = {.name = "Pow", .import = binary, .op = &mgx_op_pow};
const struct mgx_tf_op mgx_tf_prevent_gradient = {.name = "PreventGradient", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_print = {.name = "Print", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_print_v2 = {.name = "PrintV2", .import = nothing, .no_inputs = true};
const struct mgx_tf_op mgx_tf_real_div = {.name = "RealDiv", .import = binary, .op = &mgx_op_div};
const struct mgx_tf_op mgx_tf_reciprocal = {.name = "Reciprocal", .import = unary, .op = &mgx_op_recip};
const struct mgx_tf_op mgx_tf_relu = {.name = "Relu", .import = unary, .op = &mgx_op_relu};
const struct mgx_tf_op mgx_tf_relu6 = {.name = "Relu6", .import = relu6};
const struct mgx_tf_op mgx_tf_right_shift = {.name = "RightShift", .import = binary, .op = &mgx_op_bit_shift_right};
const struct mgx_tf_op mgx_tf_rint = {.name = "Rint", .import = unary, .op = &mgx_op_nearbyint};
const struct mgx_tf_op mgx_tf_round = {.name = "Round", .import = unary, .op = &mgx_op_nearbyint};
const struct mgx_tf_op mgx_tf_rsqrt = {.name = "Rsqrt", .import = unary, .op = &mgx_op_rsqrt};
const struct mgx_tf_op mgx_tf_selu = {.name = "Selu", .import = selu};
const struct mgx_tf_op mgx_tf_sigmoid = {.name = "Sigmoid", .import = unary, .op = &mgx_op_sigmoid};
const struct mgx_tf_op mgx_tf_sign = {.name = "Sign", .import = unary, .op = &mgx_op_sign};
const struct mgx_tf_op mgx_tf_sin = {.name = "Sin", .import = unary, .op = &mgx_op_sin};
const struct mgx_tf_op mgx_tf_sinh = {.name = "Sinh", .import = unary, .op = &mgx_op_sinh};
const struct mgx_tf_op mgx_tf_snapshot = {.name = "Snapshot", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_softplus = {.name = "Softplus", .import = softplus};
const struct mgx_tf_op mgx_tf_softsign = {.name = "Softsign", .import = softsign};
const struct mgx_tf_op mgx_tf_sqrt = {.name = "Sqrt", .import = unary, .op = &mgx_op_sqrt};
const struct mgx_tf_op mgx_tf_square = {.name = "Square", .import = square};
const struct mgx_tf_op mgx_tf_squared_difference = {.name = "SquaredDifference", .import = binary, .op = &mgx_op_sqdiff};
const struct mgx_tf_op mgx_tf_stop_gradient = {.name = "StopGradient", .import = same, .takes = ANY};
const struct mgx_tf_op mgx_tf_sub = {.name = "Sub", .import = binary, .op = &mgx_op_sub};
const struct mgx_tf_op mgx_tf_tan = {.name = "Tan", .import = unary, .op = &mgx_op_tan};
const struct mgx_tf_op mgx_tf_tanh = {.name = "Tanh", .import = unary, .op = &mgx_op_tanh};
const struct mgx_tf_op mgx_tf_truncate_div = {.name = "TruncateDiv", .import = truncate_div, .op = &mgx_op_div};
const struct mgx_tf_op mgx_tf_truncate_mod = {.name = "TruncateMod", .import = binary, .op = &mgx_op_fmod};
const struct mgx_tf_op mgx_tf_xdivy = {.name = "Xdivy", .import = xdivy};
const struct mgx_tf_op mgx_tf_xlogy = {.name = "Xlogy", .import = xlogy};
// clang-format on
