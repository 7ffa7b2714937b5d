// SPDX-License-Identifier: MIT
// The operator rules, found by name; one has one rule.
#include <assert.h>

#include "base/size.h"
#include "import/rules.h"
#include "tf/graph.h"

static const struct mgx_tf_op *const table[] = {
#define TF(name) &mgx_tf_##name,
#include "tf_list.inc"
#undef TF
};
enum { RULES = MGX_COUNT(table) };

static const char *name_of(int place)
{
    return table[place]->name;
}

const struct mgx_tf_op *mgx_tf_rule_find(struct mgx_slice name)
{
    const struct mgx_rules rules = mgx_rules_find(name_of, RULES, name);
    assert(rules.count <= 1);
    return rules.count ? table[rules.first] : NULL;
}

int mgx_tf_operator_count(void)
{
    return RULES;
}

const char *mgx_tf_operator_name(int i)
{
    assert(i >= 0 && i < mgx_tf_operator_count());
    return i >= 0 && i < RULES ? table[i]->name : NULL;
}
