// SPDX-License-Identifier: MIT
// Attention between bytes, or fp8, as exporters of quantized models write it:
//
//     quant_dot(quantizelinear(g(softmax(f(quant_dot(q, k, p, z))))), v, lowest or 0, y)
//
// f and g element-wise, zero points known, of fp8 none. A target that has a kernel for it gets
// it as one group, with its zero points and its softmax as they are (fuse_attention), so
// passes that would take it apart ask first.
#pragma once

#include "pass/engine/pass.h"

struct mgx_byte_attention {
    struct mgx_ins *scores, *softmax, *weigh;
};

// Is the instruction the scores, the softmax or the weighing of one that the target takes
// ("byte_attention" of both products)? O(the length of f and g).
bool mgx_find_byte_attention(const struct mgx_pass_options *options, struct mgx_ins *ins,
                             struct mgx_byte_attention *out);
// The same, where nobody asks which.
bool mgx_in_byte_attention(const struct mgx_pass_options *options, struct mgx_ins *ins);
