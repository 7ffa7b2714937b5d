// SPDX-License-Identifier: MIT
// Activations as models spell them, one equation a row: the operator that says the same.
//
// A model that came in 16 bits has constants rounded to them; they are taken for what they are
// meant to be, that is the nearest value, or one over it. Nothing else is approximated.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "op/pointwise.h"
#include "pass/engine/emit.h"
#include "pass/rules/rules.h"

// --- constants ---

enum { ROUNDINGS = 3 };

static double rounded(int bits, double value)
{
    return bits == 0   ? value
           : bits == 1 ? (double)mgx_half_to_float(mgx_half_from_double(value))
                       : (double)mgx_bf16_to_float(mgx_bf16_from_double(value));
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

// Is it `value`, or the nearest of 16 bits to that or to what it divides by?
static bool means(double given, double value)
{
    for (int bits = 0; bits < ROUNDINGS; bits++)
        if (is_near(given, rounded(bits, value)) || is_near(given, 1 / rounded(bits, 1 / value)))
            return true;
    return false;
}

// --- gelu ---

// Is it x / sqrt 2?
static bool is_erf_of_gelu(const struct mgx_ins *arg, const struct mgx_ins *x)
{
    double value;
    if (arg->op == &mgx_op_div)
        return arg->in[0] == x && mgx_splat_value(arg->in[1], &value) && means(value, M_SQRT2);
    if (arg->op != &mgx_op_mul)
        return false;
    for (int i = 0; i < 2; i++)
        if (arg->in[i] == x && mgx_splat_value(arg->in[1 - i], &value) && means(value, M_SQRT1_2))
            return true;
    return false;
}

// A polynomial of third degree in x: coefficients from the constant one on.
enum { CUBIC = 4 };

// out = a * b; false where that has a higher degree.
static bool multiply(const double *a, const double *b, double *out)
{
    memset(out, 0, CUBIC * sizeof *out);
    for (int i = 0; i < CUBIC; i++)
        for (int k = 0; k < CUBIC; k++) {
            if (i + k < CUBIC)
                out[i + k] += a[i] * b[k];
            else if (a[i] * b[k] != 0)
                return false;
        }
    return true;
}

// x to a constant power.
static bool read_power(const struct mgx_ins *node, const struct mgx_ins *x, double *c)
{
    double power;
    if (node->in[0] != x || !mgx_splat_value(node->in[1], &power))
        return false;
    for (int i = 0; i < CUBIC; i++)
        c[i] = power == i;
    return power == 2 || power == 3;
}

// Sums and products of x and constants, in any grouping.
static bool read_polynomial(const struct mgx_ins *node, const struct mgx_ins *x, int depth,
                            double *c)
{
    assert(depth >= 0);
    double a[CUBIC], b[CUBIC], value;
    if (node == x || mgx_splat_value(node, &value)) {
        memset(c, 0, CUBIC * sizeof *c);
        c[node == x] = node == x ? 1 : value;
        return true;
    }
    if (node->op == &mgx_op_pow)
        return read_power(node, x, c);
    if ((node->op != &mgx_op_mul && node->op != &mgx_op_add) || depth == 0 ||
        !read_polynomial(node->in[0], x, depth - 1, a) ||
        !read_polynomial(node->in[1], x, depth - 1, b))
        return false;
    if (node->op == &mgx_op_mul)
        return multiply(a, b, c);
    for (int i = 0; i < CUBIC; i++)
        c[i] = a[i] + b[i];
    return true;
}

// Are these the factors of x and of x^3, once each?
static bool are_factors(double of_one, double of_three)
{
    const double root = 0.79788456, cubic = 0.044715;
    for (int bits = 0; bits < ROUNDINGS; bits++) {
        const double r = rounded(bits, root);
        if (is_near(of_one, r) && is_near(of_three, r * rounded(bits, cubic)))
            return true;
    }
    return false;
}

// Is it sqrt(2 / pi) * (x + 0.044715 * x^3), however that is written?
static bool is_tanh_of_gelu(const struct mgx_ins *arg, const struct mgx_ins *x)
{
    enum { DEPTH = 6 };
    double c[CUBIC];
    return read_polynomial(arg, x, DEPTH, c) && c[0] == 0 && c[2] == 0 && are_factors(c[1], c[3]);
}

// m: x, g (the gate 1 + ...).
static struct mgx_ins *gelu(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x');
    const struct mgx_ins *gate = mgx_var(m, 'g');
    for (int i = 0; i < 2; i++) {
        if (gate->in[i]->op == &mgx_op_erf && is_erf_of_gelu(gate->in[i]->in[0], x))
            return mgx_emit_unary(ins, &mgx_op_gelu, x);
        if (gate->in[i]->op == &mgx_op_tanh && is_tanh_of_gelu(gate->in[i]->in[0], x))
            return mgx_emit_unary(ins, &mgx_op_gelu_tanh, x);
    }
    return NULL;
}

// --- those with attributes ---

static struct mgx_ins *emit_line(struct mgx_ins *at, const struct mgx_op *op, struct mgx_ins *x,
                                 double alpha, double beta)
{
    return mgx_emit_before(at, op, MGX_ATTRS(mgx_real("alpha", alpha), mgx_real("beta", beta)),
                           MGX_IN(x));
}

static struct mgx_ins *hard_sigmoid(struct mgx_rewriter *r, struct mgx_ins *ins,
                                    const struct mgx_match *m)
{
    (void)r;
    double alpha, beta;
    if (!mgx_splat_value(mgx_var(m, 'a'), &alpha) || !mgx_splat_value(mgx_var(m, 'b'), &beta))
        return NULL;
    return emit_line(ins, &mgx_op_hard_sigmoid, mgx_var(m, 'x'), alpha, beta);
}

static struct mgx_ins *hard_swish(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r;
    const struct mgx_line_attr *attr = mgx_var(m, 's')->attr;
    return emit_line(ins, &mgx_op_hard_swish, mgx_var(m, 'x'), attr->alpha, attr->beta);
}

// clip(x + b, 0, h) / h, the quotient as a product.
static bool is_part(const struct mgx_match *m, double *alpha, double *beta)
{
    double high, share;
    if (!mgx_splat_value(mgx_var(m, 'b'), beta) || !mgx_splat_value(mgx_var(m, 'h'), &high) ||
        !mgx_splat_value(mgx_var(m, 's'), &share) || !(high > 0) || !means(share, 1 / high))
        return false;
    *alpha = 1 / high;
    *beta /= high;
    return true;
}

static struct mgx_ins *whole_swish(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    double alpha, beta;
    return is_part(m, &alpha, &beta)
               ? emit_line(ins, &mgx_op_hard_swish, mgx_var(m, 'x'), alpha, beta)
               : NULL;
}

static struct mgx_ins *whole_sigmoid(struct mgx_rewriter *r, struct mgx_ins *ins,
                                     const struct mgx_match *m)
{
    (void)r;
    double alpha, beta;
    return is_part(m, &alpha, &beta)
               ? emit_line(ins, &mgx_op_hard_sigmoid, mgx_var(m, 'x'), alpha, beta)
               : NULL;
}

static struct mgx_ins *swish(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    double alpha;
    if (!mgx_splat_value(mgx_var(m, 'a'), &alpha))
        return NULL;
    return mgx_emit_before(ins, &mgx_op_swish, MGX_ATTRS(mgx_real("alpha", alpha)),
                           MGX_IN(mgx_var(m, 'x')));
}

// max(x, 0) + min(a (e^x - 1), 0) with a > 0
static struct mgx_ins *elu(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r;
    double alpha;
    if (!mgx_splat_value(mgx_var(m, 'a'), &alpha) || !(alpha > 0))
        return NULL;
    return mgx_emit_before(ins, &mgx_op_elu, MGX_ATTRS(mgx_real("alpha", alpha)),
                           MGX_IN(mgx_var(m, 'x')));
}

// --- the equations ---

static const struct mgx_rule rules[] = {
    // x / 2 * (1 + erf(x / sqrt 2)), or with tanh; the factors in any grouping.
    {"mul(mul!(x, 0.5), g:add!(erf|tanh!, 1)) ~> gelu|gelu_tanh(x)", MGX_IF_FLOAT, .rewrite = gelu},
    {"mul(x, mul!(g:add!(erf|tanh!, 1), 0.5)) ~> gelu|gelu_tanh(x)", MGX_IF_FLOAT, .rewrite = gelu},
    {"mul(mul!(x, g:add!(erf|tanh!, 1)), 0.5) ~> gelu|gelu_tanh(x)", MGX_IF_FLOAT, .rewrite = gelu},

    {"mul(x, sigmoid!(x)) => silu(x)", MGX_IF_FLOAT},
    {"mul(x, sigmoid!(mul!(x, a#))) ~> swish[alpha=a](x)", MGX_IF_FLOAT, .rewrite = swish},

    // An importer writes clip(a x + b, 0, 1), frameworks clip(x + 3, 0, 6) / 6.
    {"clip(add!(mul!(x, a#), b#), 0, 1) ~> hard_sigmoid[alpha=a,beta=b](x)", MGX_IF_FLOAT,
     .rewrite = hard_sigmoid},
    {"mul(x, s:hard_sigmoid!(x)) ~> hard_swish[attributes of s](x)", MGX_IF_FLOAT,
     .rewrite = hard_swish},
    {"mul(mul!(x, clip!(add!(x, b#), 0, h#)), s#) ~> hard_swish[alpha=1/h,beta=b/h](x)",
     MGX_IF_FLOAT, .rewrite = whole_swish},
    {"mul(clip!(add!(x, b#), 0, h#), s#) ~> hard_sigmoid[alpha=1/h,beta=b/h](x)", MGX_IF_FLOAT,
     .rewrite = whole_sigmoid},

    {"add(relu(x), log!(add!(exp!(neg!(abs!(x))), 1))) => softplus(x)", MGX_IF_FLOAT},
    {"mul(x, tanh!(softplus!(x))) => mish(x)", MGX_IF_FLOAT},
    {"add(relu(x), min!(mul!(sub!(exp!(x), 1), a#), 0)) ~> elu[alpha=a](x)", MGX_IF_FLOAT,
     .rewrite = elu},
};

const struct mgx_rules mgx_rules_activation = {rules, MGX_COUNT(rules)};
