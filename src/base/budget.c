// SPDX-License-Identifier: MIT
// See budget.h.
#include "base/budget.h"

#include <assert.h>

static _Thread_local struct mgx_budget *current;

void mgx_budget_enter(struct mgx_budget *budget)
{
    budget->outer = current;
    current = budget;
}

void mgx_budget_leave(struct mgx_budget *budget)
{
    assert(current == budget);
    current = budget->outer;
}

bool mgx_budget_take(size_t bytes)
{
    struct mgx_budget *b = current;
    if (!b)
        return true;
    if (bytes > b->limit - b->used) {
        b->refused = true;
        return false;
    }
    b->used += bytes;
    return true;
}

void mgx_budget_give(size_t bytes)
{
    struct mgx_budget *b = current;
    if (b)
        b->used -= bytes < b->used ? bytes : b->used;
}
