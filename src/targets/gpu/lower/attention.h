// SPDX-License-Identifier: MIT
// What the texts of attention share (attention.c, attention_bytes.c): where q, k, v and the result
// lie, and f, what scores are combined with before their softmax.
//
// f is any element-wise instruction of the scores: masks and biases of any strides are read for two
// scores at a time, and once for two rows that share them; repeated constants are written as numbers.
#pragma once

#include "targets/gpu/lower/lower.h"

struct gpu_attention {
    const struct mgx_ins *scores, *between, *weigh; // between: f, or NULL
    int q, k, v;                                    // inputs of the group
    int extra[GPU_CALL_INPUTS], extra_count;        // of f, in its order, but for the scores
    int place;                                      // of the scores among the inputs of f
    bool guarded;                                   // rows that see nothing are zeros
    // Where weights are quantized: behind the softmax, and what the sums become (NULL: nothing).
    const struct mgx_ins *softmax, *narrow, *after;
    bool bare; // nothing but a factor is between the softmax and fp8
};

// Q_ROW, Q_COLUMN, Q_LINES and q_at(batch), of another letter too.
void gpu_attention_operand(struct mgx_str *out, char letter, const struct mgx_shape *s, int row,
                           int column);
// PARAMS and ARGS, between(), struct beside and what reads it. Behind the text of f's body, whose
// integers of 32 bits come as floats where `real` says so (gpu_real_operands).
void gpu_attention_between(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct gpu_attention *a, uint64_t real);
// Operands of a function of one value (`value`, which is called s) and numbers; false where there are others.
bool gpu_attention_numbers(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct mgx_ins *ins, const struct mgx_ins *value, uint64_t real);
// The parts of group[tag=attention_bytes], of bytes or fp8 (attention_bytes.c).
bool gpu_attention_bytes_read(const struct mgx_plan_offer *c, struct gpu_attention *a);
