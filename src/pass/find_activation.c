// SPDX-License-Identifier: MIT
// find_activation: what a model spells with several operators becomes the one that says it, so that
// every target's epilogues and bodies match an operator. The equations are in rules/activation.c.
//
// A target runs it when the algebra is done and fusion begins: programs that people print, save or
// hand on before that keep the operators they came with.
#include "pass/rules/rules.h"

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    const struct mgx_rules *const tables[] = {&mgx_rules_activation};
    return mgx_apply_tables(c, m, tables, MGX_COUNT(tables));
}

const struct mgx_pass mgx_pass_find_activation = {
    .name = "find_activation",
    .meaning = "gelu, silu, hard_swish and their kind as one operator each",
    .module = run,
};
