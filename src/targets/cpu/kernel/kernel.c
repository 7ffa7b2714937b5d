// SPDX-License-Identifier: MIT
// The kernels that this build has; see kernel.h.
#include "targets/cpu/kernel/kernel.h"

#include <stddef.h>

#include "targets/cpu/machine/cpuid.h"

// Every kind's list, and the list of the lists.
#include "kernel_list.inc"

const struct mgx_kernel *mgx_kernel_find(const struct mgx_kernel *const *list, mgx_isa isa)
{
    while (*list && !mgx_isa_holds(isa, (*list)->needs))
        list++;
    return *list;
}

// The least set that a kernel needs and this machine has, from `least` on; false: there is none.
static bool least_set(mgx_isa least, mgx_isa *out)
{
    bool found = false;
    for (const struct mgx_kernel *const *const *kind = kinds; *kind; kind++)
        for (const struct mgx_kernel *const *k = *kind; *k; k++) {
            const mgx_isa needs = (*k)->needs;
            if (needs >= least && mgx_isa_holds(mgx_cpu()->isa, needs) &&
                (!found || needs < *out)) {
                *out = needs;
                found = true;
            }
        }
    return found;
}

bool mgx_kernel_isa(int i, mgx_isa *isa)
{
    bool found = least_set(0, isa);
    while (found && i-- > 0)
        found = least_set(*isa + 1, isa);
    return found;
}
