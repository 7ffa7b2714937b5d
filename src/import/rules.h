// SPDX-License-Identifier: MIT
// A table of operators' rules, found by name.
//
// Holds: the table is in the order of the names, as strcmp orders them; the build makes it so.
// Cost: O(log rules).
#pragma once

#include "import/wire.h"

// Less than 0, 0 or more as `a` stands before, at or behind `b`.
int mgx_rules_order(struct mgx_slice a, const char *b);

// Rules of one name stand side by side from `first` on.
struct mgx_rules {
    int first, count;
};

// `name_of` is the name of a rule by its place in the table.
struct mgx_rules mgx_rules_find(const char *(*name_of)(int place), int rule_count,
                                struct mgx_slice name);
