// SPDX-License-Identifier: MIT
// What products and convolutions of bytes need beside their operands: zero points, the factor that
// makes floats of sums, and the two folded into the step to bytes where everything is constant.
//
//     sum (a - p)(b - q)[n]  =  start[n] + sum a (b - q)[n],   start[n] = -p sum (b - q)[n]
//
// A constant p is part of what is packed, and q is taken off when B is; of a p that is known only
// when it runs (DynamicQuantizeLinear), the columns' sums are packed beside B and `start` is made
// before each run, n products.
#pragma once

#include "pass/engine/pass.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/lower/epilogue.h"

struct cpu_integer {
    int zero;    // of the left operand, where that is constant
    int zero_in; // the group's input that holds it; -1: it is constant
    bool zero_signed;
    const int32_t *b_zero;     // [columns] or NULL
    const void *b_zero_source; // the constant that they are
    const float *scale,
        *bias;           // [columns], constant; NULL: made before each run, the epilogue's own
    const int32_t *sums; // of every column, packed; with zero_in
    int64_t columns;
    const struct mgx_byte_range_kernel *kernel;
    int shift;                 // what the kernel makes bytes of A larger by
    size_t scale_at, start_at; // in the step's workspace
};

// Which products of bytes the kernels take: the passes ask, and what is prepared obeys.
bool cpu_integer_takes(struct mgx_bytes_known known);
// Reads types and zero points of a product of bytes, whose right operand has `columns`, and makes
// constants of what is constant, folded into the step to bytes where that can be. False: not one
// for the kernels (c->why says so). Nothing to do, here and below, where sums are of floats.
bool cpu_integer_prepare(struct mgx_plan_offer *c, struct cpu_epilogue *e,
                         const struct mgx_ins *main, int64_t columns, struct cpu_integer *out);
// Room behind the kernel's own workspace; packs the columns' sums of B, [depth][columns] by strides
// of elements. Call when the kernel is known.
bool cpu_integer_finish(struct mgx_plan_offer *c, const struct cpu_epilogue *e,
                        const struct mgx_gemm_kernel *kernel, int64_t depth, int64_t b_row,
                        int64_t b_col, struct cpu_integer *x);

// The bytes of a constant input, for kernels that are chosen by what is in them; NULL: it is none.
const void *cpu_integer_weights(struct mgx_plan_offer *c, int input);

struct cpu_integer_run {
    int zero; // of the left operand, where it is not constant
    const float *scale, *bias;
    const int32_t *start;
};
// `raw`: sums stay as they are.
void cpu_integer_start(const struct cpu_integer *x, const struct cpu_epilogue_run *run, bool raw,
                       struct cpu_integer_run *out);
