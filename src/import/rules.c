// SPDX-License-Identifier: MIT
// Finding rules by name; see rules.h.
#include "import/rules.h"

#include <assert.h>
#include <string.h>

int mgx_rules_order(struct mgx_slice a, const char *b)
{
    assert(b && (a.text || !a.size));
    const size_t size = strlen(b);
    const int by_text = memcmp(a.text, b, a.size < size ? a.size : size);
    return by_text ? by_text : (a.size > size) - (a.size < size);
}

struct mgx_rules mgx_rules_find(const char *(*name_of)(int place), int rule_count,
                                struct mgx_slice name)
{
    int low = 0, high = rule_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (mgx_rules_order(name, name_of(middle)) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct mgx_rules found = {low, 0};
    assert(low == 0 || mgx_rules_order(name, name_of(low - 1)) > 0); // the table is sorted
    while (low + found.count < rule_count && mgx_rules_order(name, name_of(low + found.count)) == 0)
        found.count++;
    return found;
}
