// SPDX-License-Identifier: MIT
// The kernels' candidates as lower.h lists them; where all sizes are known the reference is the
// last.
#include "plan/reference.h"
#include "targets/cpu/lower/lower.h"

#define KERNEL(name) &cpu_kernel_##name,
// clang-format off
const struct mgx_plan_kernel *const cpu_kernels[] = {CPU_KERNELS(KERNEL) &mgx_plan_reference, NULL};
const struct mgx_plan_kernel *const cpu_late_kernels[] = {CPU_KERNELS(KERNEL) NULL};
// clang-format on
