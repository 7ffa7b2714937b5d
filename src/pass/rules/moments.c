// SPDX-License-Identifier: MIT
// Normalisations in the order of their definition, which fuse_norm knows.
//
//     x * (r * g) + (-m * (r * g) + b)  =>  (x - m) * r * g + b
//     x / wide(sqrt(v))                 =>  x * wide(rsqrt(v))
//
// Holds: m is the mean of x over its last axes, r one over a root for each such mean: layer
// normalisations as Keras writes them, with the scale on the small side of the products. The left
// side loses what x and m have in common only at the end, the right side at once. A root that is
// spread is inverted once for all that are divided by it.
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"
#include "pass/rules/rules.h"

static struct mgx_ins *straighten(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *mean = mgx_var(m, 'm');
    if (mgx_first_reduced(mean) < 1)
        return NULL;
    struct mgx_ins *wide = mgx_emit_again(ins, mgx_var(m, 'n'), &mean, 1);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_sub, mgx_var(m, 'x'), wide);
    y = mgx_emit_binary(ins, &mgx_op_mul, y, mgx_var(m, 'r'));
    y = mgx_emit_binary(ins, &mgx_op_mul, y, mgx_var(m, 'g'));
    return mgx_emit_binary(ins, &mgx_op_add, y, mgx_var(m, 'b'));
}

static struct mgx_ins *invert_root(struct mgx_rewriter *r, struct mgx_ins *ins,
                                   const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *root = mgx_emit_unary(ins, &mgx_op_rsqrt, mgx_var(m, 'v'));
    struct mgx_ins *wide = mgx_emit_again(ins, mgx_var(m, 'b'), &root, 1);
    return mgx_emit_binary(ins, &mgx_op_mul, mgx_var(m, 'x'), wide);
}

static const struct mgx_rule rules[] = {
    {"add(mul!(x, s:mul(r:multibroadcast(rsqrt), g)), "
     "add!(mul!(n:multibroadcast!(neg!(m:reduce_mean(x))), s), b)) ~> (x - m) * r * g + b",
     MGX_IF_FLOAT | MGX_IF_STATIC, .rewrite = straighten},
    {"div(x, b:multibroadcast(sqrt(v))) ~> x * multibroadcast(rsqrt(v))",
     MGX_IF_FLOAT | MGX_IF_STATIC, .rewrite = invert_root},
};

const struct mgx_rules mgx_rules_moments = {rules, MGX_COUNT(rules)};
