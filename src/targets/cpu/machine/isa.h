// SPDX-License-Identifier: MIT
// Instruction sets as sets of features: what a processor has, what a kernel needs, what a user
// allows. A kernel runs where its set is part of the machine's; of several the best runs.
//
//     machine                        avx f16c fma avx2 avx_vnni
//     f32_gemm_6x16__avx2    needs   avx f16c fma avx2
//     s8_gemm_6x16__avx_vnni needs   avx f16c fma avx2 avx_vnni      better than __avx2: it is more
//
// The build reads the tables below too (tool/kernels.sh): a kernel's set decides how its file is
// compiled. A feature that is not here costs one row.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// A set of features. Of two kernels the one whose set is the larger number is the better one:
// features stand in order of worth, and a set is larger than its parts.
typedef uint64_t mgx_isa;

// One row: enumerator, name, option of the compiler; then where cpuid tells, leaf, subleaf,
// register and bit, and the registers that the operating system has to save for it.
// clang-format off
#define MGX_X86_FEATURES(X) \
    X(AVX,         "avx",         "-mavx",        1, 0, c, 28, YMM) \
    X(F16C,        "f16c",        "-mf16c",       1, 0, c, 29, YMM) \
    X(FMA,         "fma",         "-mfma",        1, 0, c, 12, YMM) \
    X(AVX2,        "avx2",        "-mavx2",       7, 0, b,  5, YMM) \
    X(AVX_VNNI,    "avx_vnni",    "-mavxvnni",    7, 1, a,  4, YMM) \
    X(AVX512F,     "avx512f",     "-mavx512f -mprefer-vector-width=512", 7, 0, b, 16, ZMM) \
    X(AVX512DQ,    "avx512dq",    "-mavx512dq",   7, 0, b, 17, ZMM) \
    X(AVX512BW,    "avx512bw",    "-mavx512bw",   7, 0, b, 30, ZMM) \
    X(AVX512VL,    "avx512vl",    "-mavx512vl",   7, 0, b, 31, ZMM) \
    X(AVX512_VNNI, "avx512_vnni", "-mavx512vnni", 7, 0, c, 11, ZMM) \
    X(AVX512_BF16, "avx512_bf16", "-mavx512bf16", 7, 1, a,  5, ZMM) \
    X(AVX512_FP16, "avx512_fp16", "-mavx512fp16", 7, 0, d, 23, ZMM) \
    X(AMX_TILE,    "amx_tile",    "-mamx-tile",   7, 0, d, 24, TILES) \
    X(AMX_BF16,    "amx_bf16",    "-mamx-bf16",   7, 0, d, 22, TILES) \
    X(AMX_INT8,    "amx_int8",    "-mamx-int8",   7, 0, d, 25, TILES)

// The same for 64-bit ARM: an extension of -march=armv8-a; the bit of a word that the kernel hands
// to every process.
#define MGX_ARM_FEATURES(X) \
    X(NEON,    "neon",    "+simd",    AT_HWCAP,   1) \
    X(FP16,    "fp16",    "+fp16",    AT_HWCAP,  10) \
    X(DOTPROD, "dotprod", "+dotprod", AT_HWCAP,  20) \
    X(BF16,    "bf16",    "+bf16",    AT_HWCAP2, 14) \
    X(I8MM,    "i8mm",    "+i8mm",    AT_HWCAP2, 13) \
    X(SVE,     "sve",     "+sve",     AT_HWCAP,  22)

enum mgx_feature {
#define X(name, ...) MGX_FEATURE_##name,
    MGX_X86_FEATURES(X) MGX_ARM_FEATURES(X)
#undef X
    MGX_FEATURE_COUNT
};
// clang-format on

#define MGX_HAS(feature) ((mgx_isa)1 << MGX_FEATURE_##feature)

// Sets with a name, which users may ask for; what a compiler assumes of any machine is not counted.
#define MGX_ISA_GENERIC ((mgx_isa)0)
#define MGX_ISA_AVX2 (MGX_HAS(AVX) | MGX_HAS(F16C) | MGX_HAS(FMA) | MGX_HAS(AVX2))
#define MGX_ISA_AVX_VNNI (MGX_ISA_AVX2 | MGX_HAS(AVX_VNNI))
#define MGX_ISA_AVX512                                                                             \
    (MGX_ISA_AVX2 | MGX_HAS(AVX512F) | MGX_HAS(AVX512DQ) | MGX_HAS(AVX512BW) | MGX_HAS(AVX512VL))
#define MGX_ISA_AVX512_VNNI (MGX_ISA_AVX512 | MGX_HAS(AVX512_VNNI))
#define MGX_ISA_AVX512_BF16 (MGX_ISA_AVX512_VNNI | MGX_HAS(AVX512_BF16))
#define MGX_ISA_AMX                                                                                \
    (MGX_ISA_AVX512_BF16 | MGX_HAS(AMX_TILE) | MGX_HAS(AMX_BF16) | MGX_HAS(AMX_INT8))
#define MGX_ISA_NEON MGX_HAS(NEON)
#define MGX_ISA_DOTPROD (MGX_ISA_NEON | MGX_HAS(DOTPROD))

#define MGX_ISA_LIST(X)                                                                            \
    X(GENERIC, "generic")                                                                          \
    X(AVX2, "avx2")                                                                                \
    X(AVX_VNNI, "avx_vnni")                                                                        \
    X(AVX512, "avx512")                                                                            \
    X(AVX512_VNNI, "avx512_vnni")                                                                  \
    X(AVX512_BF16, "avx512_bf16")                                                                  \
    X(AMX, "amx")                                                                                  \
    X(NEON, "neon")                                                                                \
    X(DOTPROD, "dotprod")

static inline bool mgx_isa_holds(mgx_isa isa, mgx_isa needs)
{
    return (needs & ~isa) == 0;
}

// "avx2", "avx512+avx_vnni": the largest named set in it, then the features that it has besides.
struct mgx_isa_text {
    char text[192];
};
struct mgx_isa_text mgx_isa_text(mgx_isa isa);
#define mgx_isa_name(isa) (mgx_isa_text(isa).text) // until the end of the full expression

// All that any kernel of this build needs.
mgx_isa mgx_isa_needed(void);

// The set to compile for. `name`: NULL for all that this machine has and a kernel of this build
// needs; else a named set or "native", then features that come to it or go: "avx512-avx512vl",
// "native-avx2", "avx2+avx_vnni". What nobody knows is MGX_INVALID, what the machine lacks
// MGX_UNSUPPORTED.
enum mgx_status mgx_isa_require(const char *name, mgx_isa *out,
                                struct mgx_diag *diag) MGX_NODISCARD;
