// SPDX-License-Identifier: MIT
// An instruction with the element-wise instruction that reads it, as a kernel that computes one
// element after the other sees the pair: group[tag=epilogue] or the instruction alone.
#pragma once

#include "op/reference/window.h"
#include "targets/gpu/lower/lower.h"

enum { GPU_TAIL_OPERANDS = 2 };

struct gpu_tail {
    const struct mgx_ins *ins, *last;        // what is computed, and what reads it (NULL: nothing)
    const struct mgx_ins *pad;               // what puts bytes around its image; NULL: nothing
    int64_t padding[2 * MGX_MAX_RANK];       // of the instruction's window, with those
    int operand[GPU_TAIL_OPERANDS];          // numbers of the instruction's inputs in the offer
    int extra[GPU_CALL_INPUTS], extra_count; // of the other inputs of `last`, in its order
    int place;                               // of the instruction among the inputs of `last`
    int off;       // 1 + the extra that kernels take off themselves, and is 0 here; 0: none is
    bool near;     // extras that are one number come as values e0, e1 ..., not as places
    bool ranged;   // results widen *low and *high (ranged.h)
    bool alone;    // they are stored where there is a place for them
    bool apart;    // results are stored one by one: they begin at no multiple of their number
    uint64_t real; // operands of `last` that come as floats, though they are integers: a bit each
};

// The operands of `last` around `ins`, which it reads once: their inputs, in order, and the place of
// `ins`. `most` bounds them. False where one is no parameter, or `ins` is read twice or not at all.
bool gpu_body_around(const struct mgx_ins *last, const struct mgx_ins *ins, int most, int *extra,
                     int *extra_count, int *place);
// Does `last` take its input `input` off the instruction, which is `place`, and read it nowhere else?
bool gpu_takes_off(const struct mgx_ins *last, int place, int input);
// Is the extra one number for all results, and read?
bool gpu_tail_is_number(const struct mgx_plan_offer *c, const struct gpu_tail *t, int e);
// False when the offer is no such pair around `op`.
bool gpu_tail_read(const struct mgx_plan_offer *c, const struct mgx_op *op, struct gpu_tail *t);
// The window of the instruction, a convolution; its padding is that of the pad before it, if there is
// one, and lives in `t`.
struct mgx_window_attr gpu_tail_window(struct gpu_tail *t);
// What lies there.
int gpu_tail_beside(const struct gpu_tail *t);
// Why the last instruction cannot be written; NULL when it can: its function is written then.
const char *gpu_emit_tail_body(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_tail *t);
// "KERNEL void run(out, in0, in1, e0, ...)".
void gpu_emit_tail_head(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_tail *t);
// Statements that store `sum`, v[k] of them along result axis `axis` for k below v, at place o<axis>
// of the result (at0).
void gpu_emit_tail(struct mgx_str *out, const struct mgx_plan_offer *c, const struct gpu_tail *t,
                   int axis, int v);
// Inputs of the kernel in order; their number.
int gpu_tail_inputs(const struct gpu_tail *t, int *in);
