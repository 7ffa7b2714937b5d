// SPDX-License-Identifier: MIT
// Prints the GFLOP/s that fused multiply-adds reach on one thread of this machine, now.
#include "targets/cpu/kernel/harness.h"

int main(void)
{
    printf("%.1f\n", peak_gflops(mgx_cpu()->isa));
    return 0;
}
