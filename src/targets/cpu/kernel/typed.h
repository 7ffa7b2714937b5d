// SPDX-License-Identifier: MIT
// Loops over blocks of values of any number type, for element-wise bodies that are not float alone.
//
// A block lives in lanes: int64 for bool and all integers, float for float, half and bfloat16,
// double for double. Loading widens, an operation works on whole lanes, and what it made is cut
// back to the value's own type, so that results are those of the reference bit for bit. The table
// holds one entry per instruction set.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ir/type.h"
#include "targets/cpu/machine/cpuid.h"

// What has a loop of its own; everything else goes through the row's functions.
// clang-format off
#define MGX_TYPED_LIST(X) \
    X(ADD) X(SUB) X(MUL) X(MIN) X(MAX) X(EQUAL) X(GREATER) X(LESS) X(LOGICAL_AND) X(LOGICAL_OR) \
    X(LOGICAL_XOR) X(NOT) X(ABS) X(NEG) X(RELU) X(SIGN) X(CLIP) X(BITWISE_AND) X(BITWISE_OR) \
    X(BITWISE_XOR) X(BITWISE_NOT) X(DIV) X(SQRT) X(RECIP) X(SQDIFF)
// clang-format on

enum mgx_typed_code {
#define X(name) MGX_TYPED_##name,
    MGX_TYPED_LIST(X)
#undef X
        MGX_TYPED_CODES
};

typedef void (*mgx_typed_fn)(void *out, const void *x, const void *y, const void *z, int n);

struct mgx_typed_kernel {
    mgx_typed_fn ints[MGX_TYPED_CODES], doubles[MGX_TYPED_CODES]; // NULL: none
    // n values side by side of a type into its lanes and back; NULL: none. Stores cut back.
    void (*load[MGX_TYPE_COUNT])(const void *from, void *lanes, int n);
    void (*store[MGX_TYPE_COUNT])(const void *lanes, void *to, int n);
    // z = x != 0 ? y : z over lanes of 4 or 8 bytes; x in int64.
    void (*where4)(void *out, const int64_t *x, const void *y, const void *z, int n);
    void (*where8)(void *out, const int64_t *x, const void *y, const void *z, int n);
};

extern const struct mgx_typed_kernel mgx_typed__generic, mgx_typed__avx2, mgx_typed__avx512;

static inline const struct mgx_typed_kernel *mgx_typed_of(enum mgx_isa isa)
{
    return isa >= MGX_ISA_AVX512 ? &mgx_typed__avx512
           : isa >= MGX_ISA_AVX2 ? &mgx_typed__avx2
                                 : &mgx_typed__generic;
}
