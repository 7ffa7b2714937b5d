// SPDX-License-Identifier: MIT
// The features that kernels of this build need, as the build found them (tool/kernels.sh).
#include "targets/cpu/machine/isa.h"

mgx_isa mgx_isa_needed(void)
{
    return 0
#include "kernel_needs.inc"
        ;
}
