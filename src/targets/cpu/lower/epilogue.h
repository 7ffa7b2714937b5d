// SPDX-License-Identifier: MIT
// What a matrix multiplication or convolution does to its tiles before they leave the cache: from
// the body of a fused group to the kernels' epilogue.
//
//     group body:  y = pointwise(main(x, w), ...)
//     becomes      act(sum + bias[column] + residual)     where the body says just that, with
//                  a constant factor and term per column behind it,
//     else         a block program run over the rows of every tile.
//
// The body of a convolution may begin with a product: main(x * factor[channel], w).
#pragma once

#include "pass/engine/product.h"
#include "targets/cpu/kernel/end/end.h"
#include "targets/cpu/lower/body.h"

enum { CPU_EPILOGUE_INPUTS = 12, CPU_EPILOGUE_AXES = 6 };

// Where an operand of floats is added, or multiplied with; one of bytes is mixed in (cpu_bytes).
enum cpu_operand_place {
    CPU_OPERAND_NONE,
    CPU_OPERAND_FIRST, // before the activation (ResNet)
    CPU_OPERAND_AFTER, // (YOLO)
    CPU_OPERAND_TIMES  // multiplied (gates: Llama's silu(a) * b)
};

// What is done to floats, as far as it is none of a block program: matched in pieces, then a list.
struct cpu_floats_end {
    enum mgx_act act;
    float a, b;
    const float *a_column;
    const float *factor, *term; // by column, both or none
    enum cpu_operand_place place;
    enum mgx_kernel_type operand;
    mgx_tile_hook block;
};

// The steps that make bytes of floats, or of floats what bytes have been.
struct cpu_bytes_end {
    bool is_signed;
    float divisor, low, high;
    int zero;
    bool residual, residual_signed, rounds, floats, rounds_last;
    float keep, share, low2, high2, unit;
    int residual_zero;
    const float *term;     // by column; NULL: none
    const uint8_t *middle; // [256]; NULL: none
    int middle_low, middle_zero;
    const uint8_t *table;           // NULL: none
    bool saturates, saturates_last; // the clamps are spare
};

static inline bool cpu_bytes_has_second(const struct cpu_bytes_end *q)
{
    return q->residual || q->term || q->middle || q->floats;
}

struct cpu_epilogue {
    struct cpu_floats_end floats;
    int main_in[4], main_count; // the group's inputs that the main operator reads
    int bias, residual;         // the group's inputs, -1: none
    int factor; // the group's input that multiplies the main operator's first one, -1: none
    // Of sums of integers: they become floats times the group's input `scale`, or a number where
    // that is -1; with `bytes` they end as such, and the residual may be of bytes.
    bool integer;
    int scale;
    int64_t scale_step; // from column to column
    float scale_value;
    struct cpu_bytes_end *bytes; // NULL: none are made
    // For the block program; NULL otherwise:
    const struct cpu_body *body;
    int operand_count;
    struct cpu_epilogue_operand {
        int input; // of the group; -1: the sums themselves
        enum mgx_type type;
        int64_t row, col; // distances in elements
        // Of a broadcast whose rows do not lie at one distance: the rows' axes, innermost first.
        int rank;
        int64_t len[CPU_EPILOGUE_AXES], stride[CPU_EPILOGUE_AXES];
    } operand[CPU_EPILOGUE_INPUTS];
    size_t scratch_floats, scratch_offset; // per thread; byte offset in the step's workspace
};

struct cpu_epilogue_run {
    const struct cpu_epilogue *epilogue;
    const float *bias;
    const void *residual;
    const struct mgx_plan_args *args;
};

// Takes an instruction that is `op` itself, or that of integers, or a group of it and one
// element-wise instruction after it. The columns of the result are axis 1 of a convolution, the
// last axis of a product. False: not such a thing (c->why may say why).
bool cpu_epilogue_match(struct mgx_plan_offer *c, const struct mgx_op *op, struct cpu_epilogue *out,
                        const struct mgx_ins **main);
// mgx_pass_target.takes.
bool cpu_takes(void *user, const struct mgx_product_roles *roles);
// The list that the match came to.
struct mgx_end cpu_epilogue_list(const struct cpu_epilogue *e);
// `detail` and the list's steps, for explanations.
const char *cpu_epilogue_detail(const struct mgx_plan_offer *c, const struct mgx_end *end,
                                const char *detail);
// Adds the block program's scratch behind the kernel's own workspace; call last.
void cpu_epilogue_finish(struct mgx_plan_offer *c, struct cpu_epilogue *e);
void cpu_epilogue_start(const struct cpu_epilogue *e, const struct mgx_plan_args *args,
                        struct cpu_epilogue_run *run);
