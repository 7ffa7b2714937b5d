// SPDX-License-Identifier: MIT
// How much memory a run may hold at a time: values, scratch, room for intermediate strings.
//
// A budget is attached to the thread that runs, as a flag that ends calls is (cancel.h): memory is
// asked for under many layers that have nothing to say about it. What asks for blocks takes them
// from the budget and gives them back with the block; threads that help do neither, for only the
// thread of the run makes values.
//
// Holds: a block that a run takes and another thread frees stays counted, so a budget errs towards
// refusing. One that was there before the run and is freed by it counts for nothing. Without a
// budget a block costs one load of thread-local memory more.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mgx_budget {
    size_t limit, used; // bytes
    bool refused;       // something was
    struct mgx_budget *outer;
};

// What this thread takes from here on is counted, until leave; a budget within one replaces it.
void mgx_budget_enter(struct mgx_budget *budget);
void mgx_budget_leave(struct mgx_budget *budget);

// False when that would be more than the limit.
bool mgx_budget_take(size_t bytes);
void mgx_budget_give(size_t bytes);
