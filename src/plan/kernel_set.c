// SPDX-License-Identifier: MIT
// The name of this set of kernels, which the build makes from the sources.
#include "plan/kernel_set.h"

const char *mgx_kernel_set(void)
{
    return
#include "kernel_set.inc"
        ;
}
