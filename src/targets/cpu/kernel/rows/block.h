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

#include "op/pointwise.h"
#include "targets/cpu/kernel/kernel.h"

// What a line computes, over operands x, y, z: a scalar operator's row (its MGX_PW_ code), or one
// of these. DEQUANT is (x - z) * y, QUANT_* is round(x / y) + z within the type; of QUANT_F8 b is
// the kind (enum mgx_fp8), and there is no z but 0. ROUND_* is x to so many bits and back.
enum mgx_block_code {
    MGX_BLOCK_COPY = MGX_PW_COUNT,
    MGX_BLOCK_DEQUANT,
    MGX_BLOCK_QUANT_U8,
    MGX_BLOCK_QUANT_S8,
    MGX_BLOCK_QUANT_U16,
    MGX_BLOCK_QUANT_S16,
    MGX_BLOCK_QUANT_F8,
    MGX_BLOCK_ROUND_F16,
    MGX_BLOCK_ROUND_BF16,
    MGX_BLOCK_CODES
};
_Static_assert(MGX_BLOCK_CODES <= UINT8_MAX, "a line holds its code in a byte");

enum {
    MGX_BLOCK = 256,        // floats in a block
    MGX_BLOCK_OPERANDS = 48 // inputs, constants and temporaries
};

struct mgx_block_line {
    uint8_t code;
    uint8_t out;   // operand number
    uint8_t in[3]; // operand numbers
    float a, b;    // the row's attributes; of QUANT_* a = 1: there is no z
};

// Operands are numbered: inputs, then constants, then temporaries, then outputs.
struct mgx_block {
    int in_count, constant_count, temporary_count, out_count, line_count;
    const float *constants;
    const struct mgx_block_line *lines;
    const struct mgx_block_kernel *kernel;
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

// One loop: out[i] = f(x[i], y[i], z[i]). Rows for integers alone have none: NULL.
typedef void (*mgx_block_fn)(float *out, const struct mgx_block_operand *x, float a, float b,
                             int n);

struct mgx_block_kernel {
    struct mgx_kernel base;
    mgx_block_fn table[MGX_BLOCK_CODES];
};

MGX_KERNEL_KIND(block)
