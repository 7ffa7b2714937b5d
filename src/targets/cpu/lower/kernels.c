// SPDX-License-Identifier: MIT
// Candidates in order of trial: the most specific first, the reference last. Order is meaning, so
// this list is explicit.
#include "plan/reference.h"
#include "targets/cpu/lower/lower.h"

// clang-format off
#define KERNELS                                                                                    \
    &cpu_kernel_copy,                                                                              \
    &cpu_kernel_conv,                                                                              \
    &cpu_kernel_gemm,                                                                              \
    &cpu_kernel_attention,                                                                         \
    &cpu_kernel_norm,                                                                              \
    &cpu_kernel_softmax,                                                                           \
    &cpu_kernel_reduce,                                                                            \
    &cpu_kernel_pooling,                                                                           \
    &cpu_kernel_rnn,                                                                               \
    &cpu_kernel_gather,                                                                            \
    &cpu_kernel_gathernd,                                                                          \
    &cpu_kernel_scatter,                                                                           \
    &cpu_kernel_resize,                                                                            \
    &cpu_kernel_pad,                                                                               \
    &cpu_kernel_roialign,                                                                          \
    &cpu_kernel_pointwise

const struct mgx_plan_kernel *const cpu_kernels[] = {KERNELS, &mgx_plan_reference, NULL};
const struct mgx_plan_kernel *const cpu_late_kernels[] = {KERNELS, NULL};
// clang-format on
