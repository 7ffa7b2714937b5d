// SPDX-License-Identifier: MIT
// Views: chains of them as short as can be (chain.c), views past other work so that opposite ones
// meet (sink.c), slice and concat that undo each other (join.c), gathers that are views (index.c),
// products whose batches share a matrix (flat.c).
#include "pass/rules/rules.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    const struct mgx_rules *const tables[] = {&mgx_rules_chain, &mgx_rules_join, &mgx_rules_index,
                                              &mgx_rules_flat, &mgx_rules_sink};
    TRY(mgx_cut_concats(c, m));
    return mgx_apply_tables(c, m, tables, MGX_COUNT(tables));
}

const struct mgx_pass mgx_pass_simplify_reshapes = {
    .name = "simplify_reshapes",
    .meaning = "shortens chains of views and moves them to where they cancel",
    .module = run,
};
