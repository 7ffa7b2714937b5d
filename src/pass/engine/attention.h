// SPDX-License-Identifier: MIT
// Attention by the roles of its instructions, read upwards from the product that weighs:
//
//     dot(guard(softmax(f(dot(q, k)))), v)
//
// f is one element-wise instruction or nothing; the guard turns rows that see nothing into zeros
// (guard.h), or is not there. Of bfloat16 the products are quant_dot, and what the softmax leaves
// is rounded before or behind the guard. Passes read programs so, and targets the bodies of groups.
#pragma once

#include "ir/module.h"

struct mgx_attention_roles {
    struct mgx_ins *scores, *between, *softmax; // between: f, or NULL
    struct mgx_ins *rounded, *guard;            // behind the softmax; NULL where they are not there
    const struct mgx_ins *weigh;
};

// False where it is none. O(inputs of f).
bool mgx_read_attention(const struct mgx_ins *weigh, struct mgx_attention_roles *out);
