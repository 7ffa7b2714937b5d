// SPDX-License-Identifier: MIT
// Candidates in order of trial: the most specific first, `ref` last. Order is meaning, so this list
// is explicit.
#include "targets/cpu/cpu.h"

// clang-format off
const struct cpu_kernel *const cpu_kernels[] = {
    &cpu_kernel_copy,
    &cpu_kernel_conv,
    &cpu_kernel_gemm,
    &cpu_kernel_attention,
    &cpu_kernel_norm,
    &cpu_kernel_softmax,
    &cpu_kernel_reduce,
    &cpu_kernel_pooling,
    &cpu_kernel_rnn,
    &cpu_kernel_gather,
    &cpu_kernel_gathernd,
    &cpu_kernel_scatter,
    &cpu_kernel_resize,
    &cpu_kernel_pad,
    &cpu_kernel_roialign,
    &cpu_kernel_pointwise,
    &cpu_kernel_ref,
    NULL,
};
// clang-format on
