// SPDX-License-Identifier: MIT
// What this processor can do, found out once. Kernels exist per level; a compiled program carries
// the level it was compiled for, so tests ask for a lower one and one machine tries them all.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Weakest first; each level contains those before it. One row: enumerator, name, meaning.
#define MGX_ISA_LIST(X)                                                                            \
    X(MGX_ISA_GENERIC, "generic", "what the compiler assumes; 128-bit vectors where it has them")  \
    X(MGX_ISA_AVX2, "avx2", "AVX2, FMA, F16C")                                                     \
    X(MGX_ISA_AVX512, "avx512", "AVX-512 F, DQ, BW, VL")                                           \
    X(MGX_ISA_AVX512_VNNI, "avx512_vnni", "and vpdpbusd")                                          \
    X(MGX_ISA_AVX512_BF16, "avx512_bf16", "and vdpbf16ps")

enum mgx_isa {
#define X(name, text, meaning) name,
    MGX_ISA_LIST(X)
#undef X
        MGX_ISA_COUNT
};

struct mgx_cpu {
    enum mgx_isa isa;  // the highest level
    size_t l1, l2, l3; // data cache bytes: per core, per core, shared; 0 where unknown
    char name[49];
};

// Never fails; the first call detects, later ones cost one load.
const struct mgx_cpu *mgx_cpu(void);
// What kernels may count on: l2, or what is usual where that is unknown.
int64_t mgx_cpu_l2(void);

const char *mgx_isa_name(enum mgx_isa isa);

// The level to compile for: `name` (NULL: the best there is) if this machine has it. An unknown
// name is MGX_INVALID, a level above the machine's MGX_UNSUPPORTED.
enum mgx_status mgx_isa_require(const char *name, enum mgx_isa *out,
                                struct mgx_diag *diag) MGX_NODISCARD;
