// SPDX-License-Identifier: MIT
// Block programs: a fused element-wise body, run over blocks of up to 256 floats that stay in the
// L1 cache.
//
//     in[0] in[1] ...         operands, one block each, or one value for the whole block
//       |     |
//     t0 = add in0, in1       each line is one vector loop over the block; temporaries live in
//     t1 = mul t0, 0.5        a few kilobytes of scratch, allotted by liveness
//     out0 = tanh t1
//
// The dispatch costs a few nanoseconds per line and block, the loops run at L1 speed. The same
// program serves element-wise instructions and, row by row, tiles of other kernels before they
// leave the cache.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/machine/cpuid.h"

// clang-format off
// X(code, number of operands): what a line computes, over x, y, z; `a`, `b` are its constants.
// DEQUANT is (x - z) * y, QUANT_* is round(x / y) + z within the type.
#define MGX_BLOCK_LIST(X) \
    X(COPY, 1) X(ADD, 2) X(SUB, 2) X(MUL, 2) X(DIV, 2) X(MIN, 2) X(MAX, 2) X(POW, 2) \
    X(FMOD, 2) X(MOD, 2) X(SQDIFF, 2) X(PRELU, 2) X(EQUAL, 2) X(GREATER, 2) X(LESS, 2) \
    X(AND, 2) X(OR, 2) X(XOR, 2) X(WHERE, 3) X(CLIP, 3) X(ABS, 1) X(NEG, 1) X(EXP, 1) \
    X(LOG, 1) X(LOG2, 1) X(SQRT, 1) X(RSQRT, 1) X(RECIP, 1) X(RELU, 1) X(SIGMOID, 1) \
    X(TANH, 1) X(ERF, 1) X(SIGN, 1) X(FLOOR, 1) X(CEIL, 1) X(ROUND, 1) X(TRUNC, 1) X(NOT, 1) \
    X(ISNAN, 1) X(ISINF, 1) X(SIN, 1) X(COS, 1) X(TAN, 1) X(ASIN, 1) X(ACOS, 1) X(ATAN, 1) \
    X(SINH, 1) X(COSH, 1) X(ASINH, 1) X(ACOSH, 1) X(ATANH, 1) X(ELU, 1) X(LEAKY_RELU, 1) \
    X(DEQUANT, 3) X(QUANT_U8, 3) X(QUANT_S8, 3)
// clang-format on

enum mgx_block_code {
#define X(name, arity) MGX_BLOCK_##name,
    MGX_BLOCK_LIST(X)
#undef X
        MGX_BLOCK_CODES
};

enum {
    MGX_BLOCK = 256,
    MGX_BLOCK_OPERANDS = 48
}; // floats in a block; inputs, constants and temporaries

struct mgx_block_line {
    uint8_t code;
    uint8_t out;   // operand number
    uint8_t in[3]; // operand numbers
    float a;       // alpha of elu and leaky_relu; of QUANT_* 1: there is no z
};

// Operands are numbered: inputs, then constants, then temporaries, then outputs.
struct mgx_block {
    int in_count, constant_count, temporary_count, out_count, line_count;
    const float *constants;
    const struct mgx_block_line *lines;
    enum mgx_isa isa;
};

struct mgx_block_operand {
    float *data;
    bool scalar; // one value for the whole block
};

// Floats of scratch that a run needs, per thread.
static inline int mgx_block_scratch(const struct mgx_block *b)
{
    return b->temporary_count * MGX_BLOCK;
}

// One block of n <= MGX_BLOCK elements. `in` has in_count entries, `out` out_count; outputs may be
// inputs.
void mgx_block_run(const struct mgx_block *b, const struct mgx_block_operand *in, float *const *out,
                   int n, float *scratch);

// One loop: y[i] = f(x[i], y[i], z[i]).
typedef void (*mgx_block_fn)(float *out, const struct mgx_block_operand *x, float a, int n);

extern const mgx_block_fn mgx_block_table__generic[MGX_BLOCK_CODES];
extern const mgx_block_fn mgx_block_table__avx2[MGX_BLOCK_CODES];
extern const mgx_block_fn mgx_block_table__avx512[MGX_BLOCK_CODES];
