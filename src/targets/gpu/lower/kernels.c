// SPDX-License-Identifier: MIT
// The GPU target's kernels in order of trial (lower.h lists them); the reference takes what they
// leave, on the host.
#include "plan/reference.h"
#include "targets/gpu/lower/lower.h"

// clang-format off
#define X(name) &gpu_kernel_##name,
const struct mgx_plan_kernel *const gpu_kernels[] = {GPU_KERNELS(X) &mgx_plan_reference, NULL};
#undef X
