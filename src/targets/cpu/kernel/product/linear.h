// SPDX-License-Identifier: MIT
// Attention without softmax: a state per head, which keys and values are added to step by step and
// queries read (op/linear_attention.c has the equations).
//
//     unit: 32 columns of one state, which do not depend on the others
//
//              columns                    for each step:
//            +---------+                    seen = S' (by k)        where there is a delta rule
//      rows  |    S    |  in the cache      S    = by S + k d'      d = beta (v - seen), or v
//            +---------+                    y    = scale S' q       in the same walk over S
//
// Everything is float. Cost: one walk over the state a step, two with the delta rule, and one for
// each further query head that shares it; the state comes from memory once and goes there once,
// whatever the number of steps. The result does not depend on the number of threads.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/machine/pool.h"

enum { MGX_LINEAR_COLUMNS = 32 };

// Strides are in elements, of batch, heads, and steps or rows in this order; what comes last is
// contiguous. Those of what has one head for all are 0.
struct mgx_linear_desc {
    mgx_isa isa;
    int threads;                                       // the pool's
    int64_t batch, heads, share, steps, rows, columns; // share: query heads of one state
    int64_t q[3], k[3], v[3], decay[3], beta[3], past[3], y[3], state[3];
    bool decay_each; // of each row, not of all of them
    bool delta;
    float scale;
};

struct mgx_linear_args {
    const float *q, *k, *v;
    const float *decay, *beta, *past; // NULL: none
    float *y, *state;                 // state may be past
    void *workspace;                  // mgx_linear_workspace() bytes, aligned to 64
};

size_t mgx_linear_workspace(const struct mgx_linear_desc *desc);
void mgx_linear_run(const struct mgx_linear_desc *desc, const struct mgx_linear_args *args,
                    struct mgx_pool *pool);

// --- the loops, per instruction set ---

// Some columns of one state, through all steps.
struct mgx_linear_part {
    float *s; // rows of MGX_LINEAR_COLUMNS, zeros behind `columns` of them; in and out
    int columns;
    int64_t rows, steps, share;
    const float *q, *k, *v, *decay, *beta;
    int64_t q_head, q_step, k_step, v_step, decay_step, beta_step;
    float *y;
    int64_t y_head, y_step;
    float *by, *seen_by; // room for `rows` each: powers of the decay, and these times k
    float scale;
    bool decay_each, delta;
};

struct mgx_linear_kernel {
    struct mgx_kernel base;
    void (*run)(const struct mgx_linear_part *part);
};

MGX_KERNEL_KIND(linear)
