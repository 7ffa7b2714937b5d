// SPDX-License-Identifier: MIT
// The operator rules, found by name.
//
// Holds: the build makes the table in the order of the operators' names. Cost: O(log rules) a node.
#include <string.h>

#include "base/size.h"
#include "tf/graph.h"

static const struct mgx_tf_op *const table[] = {
#define TF(name) &mgx_tf_##name,
#include "tf_list.inc"
#undef TF
};
enum { RULES = MGX_COUNT(table) };

// Of names, as strcmp orders them.
static int order(struct mgx_slice a, const char *b)
{
    const size_t size = strlen(b);
    const int by_text = memcmp(a.text, b, a.size < size ? a.size : size);
    return by_text ? by_text : (a.size > size) - (a.size < size);
}

const struct mgx_tf_op *mgx_tf_rule_find(struct mgx_slice name)
{
    int low = 0, high = RULES;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (order(name, table[middle]->name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < RULES && order(name, table[low]->name) == 0 ? table[low] : NULL;
}

int mgx_tf_operator_count(void)
{
    return RULES;
}

const char *mgx_tf_operator_name(int i)
{
    return i >= 0 && i < RULES ? table[i]->name : NULL;
}
