// SPDX-License-Identifier: MIT
// Algebra on instructions. The rules are tables in rules/: scalar.c combines constants and removes
// what is neutral, linear.c goes through convolutions and products, branches.c adds convolutions of
// one input, backwards.c makes transposed ones plain, hoist.c moves work before broadcasts,
// reduce.c shortens reductions, moments.c puts normalisations in order, and horizontal.c joins
// products that share an input.
#include "pass/rules/rules.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    const struct mgx_rules *const tables[] = {
        &mgx_rules_scalar, &mgx_rules_linear, &mgx_rules_branches, &mgx_rules_backwards,
        &mgx_rules_hoist,  &mgx_rules_reduce, &mgx_rules_moments};
    TRY(mgx_apply_tables(c, m, tables, MGX_COUNT(tables)));
    return mgx_join_products(c, m);
}

const struct mgx_pass mgx_pass_simplify_algebra = {
    .name = "simplify_algebra",
    .meaning = "combines constants, removes neutral operations, joins products that share an input",
    .module = run,
};
