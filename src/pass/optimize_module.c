// SPDX-License-Identifier: MIT
// The loop of rewrites that feed each other, until nothing changes or the bounds are reached.
#include "pass/engine/walk.h"
#include "pass/pass.h"

// Rounds end as soon as nothing changes; folding is among them because rules look at values.
enum { INNER_ROUNDS = 8, OUTER_ROUNDS = 6 };

static const struct mgx_pass *const inner[] = {
    &mgx_pass_simplify_reshapes, &mgx_pass_eliminate_convert, &mgx_pass_simplify_algebra,
    &mgx_pass_propagate_constant, NULL};

static const struct mgx_pass *const outer[] = {&mgx_pass_eliminate_common_subexpression,
                                               &mgx_pass_take_parts, NULL};

static enum mgx_status repeat(struct mgx_pass_call *c, const struct mgx_pass *const *passes,
                              int rounds, bool *changed)
{
    *changed = false;
    for (int i = 0; i < rounds; i++) {
        c->changed = false;
        TRY(mgx_pass_apply_all(c, passes));
        *changed |= c->changed;
        if (!c->changed)
            break;
    }
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c)
{
    bool any = false;
    for (int i = 0; i < OUTER_ROUNDS; i++) {
        bool rewritten, merged;
        TRY(repeat(c, inner, INNER_ROUNDS, &rewritten));
        TRY(repeat(c, outer, 1, &merged));
        any |= rewritten || merged;
        if (!merged) // the inner loop ended because nothing changed, and nothing has since
            break;
    }
    c->changed = any;
    return MGX_OK;
}

const struct mgx_pass mgx_pass_optimize_module = {
    .name = "optimize_module",
    .meaning = "simplifies views, conversions and algebra, merges and folds, until nothing changes",
    .program = run,
};
