// SPDX-License-Identifier: MIT
// What this processor can do, found out once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/machine/isa.h"

struct mgx_cpu {
    mgx_isa isa;       // all its features that isa.h knows
    size_t l1, l2, l3; // data cache bytes: per core, per core, shared; 0 where unknown
    char name[49];
};

// Never fails; the first call detects, later ones cost one load.
const struct mgx_cpu *mgx_cpu(void);
// What kernels may count on: l1 and l2, or what is usual where that is unknown.
int64_t mgx_cpu_l1(void);
int64_t mgx_cpu_l2(void);
