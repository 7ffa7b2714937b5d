// SPDX-License-Identifier: MIT
// What all kernels have in common: a name, and the set of features that they need. Kernels that do
// the same are a kind; the best that a machine can run is chosen by the set that a plan is made
// for.
//
//     struct mgx_pool_kernel               the kind: functions behind a common head
//     MGX_KERNEL_KIND(pool)                its list, which the build makes; mgx_pool_kernel(isa)
//     KERNEL_FOR(GENERIC, AVX2, AVX512)    in f32_pool.h: compile the file for each of these sets
//     const struct mgx_pool_kernel NAME(mgx_f32_pool) = {KERNEL_BASE("f32_pool"), ...};
//
// A kernel that is written for one set alone is a file of its own, whose object states the set:
//
//     f32_gemm__avx2.c:  const struct mgx_gemm_kernel mgx_f32_gemm_6x16__avx2 = {
//                            .base = {"f32_gemm_6x16__avx2", .needs = MGX_ISA_AVX2}, ...
//
// tool/kernels.sh finds both. Lists are best first; choosing costs a few nanoseconds.
#pragma once

#include <stdbool.h>

#include "targets/cpu/machine/isa.h"

struct mgx_kernel { // first member of every kernel
    const char *name;
    mgx_isa needs;
};

// The first of a list, which ends with NULL, that runs on a machine with this set. Every kind has
// one for any machine, or says what it means that there is none.
const struct mgx_kernel *mgx_kernel_find(const struct mgx_kernel *const *list, mgx_isa isa);

// The sets that kernels of this build need, each once, the least first: set number i, if there are
// so many and this machine has it.
bool mgx_kernel_isa(int i, mgx_isa *isa);

#define MGX_KERNEL_KIND(kind)                                                                      \
    extern const struct mgx_kernel *const mgx_##kind##_kernels[];                                  \
    static inline const struct mgx_##kind##_kernel *mgx_##kind##_kernel(mgx_isa isa)               \
    {                                                                                              \
        return (const struct mgx_##kind##_kernel *)mgx_kernel_find(mgx_##kind##_kernels, isa);     \
    }

// --- for the bodies of kernels ---

// The build compiles the file once per named set, with KERNEL_SET (a name's end) and KERNEL_NEEDS
// defined.
#define KERNEL_FOR(...)

#define KERNEL_PASTE(x, set) x##__##set
#define KERNEL_JOIN(x, set) KERNEL_PASTE(x, set)
#define KERNEL_QUOTE(set) #set
#define KERNEL_TEXT(set) KERNEL_QUOTE(set)
#define NAME(x) KERNEL_JOIN(x, KERNEL_SET)
#define KERNEL_BASE(stem)                                                                          \
    {                                                                                              \
        stem "__" KERNEL_TEXT(KERNEL_SET), KERNEL_NEEDS                                            \
    }
