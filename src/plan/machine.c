// SPDX-License-Identifier: MIT
// See machine.h.
#include "plan/machine.h"

#include "plan/plan.h"

void mgx_plan_spread(const struct mgx_plan_machine *machine, int tasks, mgx_plan_task fn,
                     void *user)
{
    if (machine->target->spread) {
        machine->target->spread(machine, tasks, fn, user);
        return;
    }
    for (int i = 0; i < tasks; i++)
        fn(user, i, 0);
}
