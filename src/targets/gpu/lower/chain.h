// SPDX-License-Identifier: MIT
// Steps of several kernels, one after the other: what one leaves in the workspace the next one reads.
//
//     KERNEL void run0(GLOBAL Y *out, GLOBAL u8 *work, const GLOBAL A *in0, ...)
//     KERNEL void run1(the same)
//
// A kernel sees everything that those before it wrote; blocks of one kernel see nothing of each other.
#pragma once

#include "targets/gpu/lower/lower.h"

enum { GPU_CHAIN_MOST = 4 };

struct gpu_chain { // state of a step
    struct gpu_call base;
    int count;
    struct gpu_launch how[GPU_CHAIN_MOST];
    void *kernel[GPU_CHAIN_MOST]; // set by finish
};

// "KERNEL void run<number>(...)\n"
void gpu_emit_chain_head(struct mgx_str *out, int number, enum mgx_type result,
                         const enum mgx_type *in, int in_count);
// As gpu_take, with the launches of run0 .. run<count - 1>. The offer's workspace is set before, and
// not 0.
enum mgx_plan_answer gpu_take_chain(struct mgx_plan_offer *c, struct mgx_str *text,
                                    const struct gpu_launch *how, int count, const int *in,
                                    int in_count);
enum mgx_status gpu_run_chain(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                              struct mgx_diag *diag);
extern const struct gpu_family gpu_chain_family; // of kernels that run so
