// SPDX-License-Identifier: MIT
// One spelling for each kind of GELU, so that fusion and kernels see one form of it.
//
//     half x (1 + erf(x / sqrt 2)), its factors in any arrangement
//                                =>  mul(mul(x, half), add(erf(mul(x, 1 / sqrt 2)), 1))
//     half x (1 + tanh(t))       =>  mul(mul(x, half), add(tanh(t), 1))        whatever t is
//     x sigmoid(1.702 x)             has one spelling already
//
// Nothing is approximated by something else: only the arrangement of the factors changes.
#include <math.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

static struct mgx_ins *arranged(struct mgx_ins *at, struct mgx_ins *x, struct mgx_ins *half,
                                struct mgx_ins *gate)
{
    struct mgx_ins *scaled = mgx_emit_binary(at, &mgx_op_mul, x, half);
    return mgx_emit_binary(at, &mgx_op_mul, scaled, gate);
}

// m: x, h (the factor), g (the gate 1 + ...).
static struct mgx_ins *arrange(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r;
    return arranged(ins, mgx_var(m, 'x'), mgx_var(m, 'h'), mgx_var(m, 'g'));
}

// erf(x / s) => erf(x * (1 / s)), where the factors stand as they should.
static struct mgx_ins *multiply(struct mgx_rewriter *r, struct mgx_ins *ins,
                                const struct mgx_match *m)
{
    (void)r;
    double divisor, one;
    struct mgx_ins *x = mgx_var(m, 'x');
    if (!mgx_splat_value(mgx_var(m, 's'), &divisor) || !(fabs(divisor) >= 1e-3) ||
        !mgx_splat_value(mgx_var(m, 'o'), &one))
        return NULL;
    struct mgx_ins *t =
        mgx_emit_binary(ins, &mgx_op_mul, x, mgx_emit_splat(ins, &x->shape, 1 / divisor));
    struct mgx_ins *gate =
        mgx_emit_binary(ins, &mgx_op_add, mgx_emit_unary(ins, &mgx_op_erf, t), mgx_var(m, 'o'));
    return arranged(ins, x, mgx_var(m, 'h'), gate);
}

static const struct mgx_rule rules[] = {
    {"mul(mul!(x, g:add!(erf|tanh!, 1)), h#) ~> mul(mul(x, h), g)", MGX_IF_FLOAT,
     .rewrite = arrange},
    {"mul(x, mul!(g:add!(erf|tanh!, 1), h#)) ~> mul(mul(x, h), g)", MGX_IF_FLOAT,
     .rewrite = arrange},
    {"mul(mul!(x, h#), add!(erf!(div!(x, s#)), o#)) ~> mul(mul(x, h), add(erf(mul(x, 1/s)), o))",
     MGX_IF_FLOAT, .rewrite = multiply},
};

const struct mgx_pass mgx_pass_rewrite_gelu = {
    .name = "rewrite_gelu",
    .meaning = "arranges the factors of GELU in one way",
    .rules = {rules, MGX_COUNT(rules)},
};
