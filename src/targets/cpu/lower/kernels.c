// SPDX-License-Identifier: MIT
// The kernels in order of trial, as their files say it (lower.h); where all sizes are known the
// reference is the last.
#include "plan/reference.h"
#include "targets/cpu/lower/lower.h"

#define KERNEL(name) &cpu_kernel_##name,
const struct mgx_plan_kernel *const cpu_kernels[] = {
#include "cpu_kernel_list.inc"
    &mgx_plan_reference, NULL};
const struct mgx_plan_kernel *const cpu_late_kernels[] = {
#include "cpu_kernel_list.inc"
    NULL};
