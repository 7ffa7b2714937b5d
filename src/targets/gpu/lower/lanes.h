// SPDX-License-Identifier: MIT
// Lanes: the elements of an input that are folded together, and the text of walking them.
//
//     lane 0  |t0 t1 t2 ... t127 t0 t1 ...|   a block of 128 threads takes a lane together: each
//     lane 1  |...                        |   thread folds every 128th element, then halves of the
//                                             block fold each other's partial results
#pragma once

#include "targets/gpu/emit/loop.h"
#include "targets/gpu/lower/lower.h"

enum { GPU_LANE_THREADS = 128 };

struct gpu_lanes {
    struct gpu_loop outer; // result and input, one element a lane
    int rank;              // axes of a lane
    int64_t lens[MGX_MAX_RANK], strides[MGX_MAX_RANK], out_strides[MGX_MAX_RANK];
    int64_t length;
};

void gpu_lanes_find(struct gpu_lanes *l, const struct mgx_shape *out, const struct mgx_shape *in,
                    const bool *in_lane);
// Lanes that hold something, and few enough for a grid.
bool gpu_lanes_fit(const struct gpu_lanes *l);
struct gpu_launch gpu_lanes_launch(const struct gpu_lanes *l);

// The kernel's head down to the offsets of the block's lane, with part[] for folds of `type`.
void gpu_emit_lane_begin(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_lanes *l, const char *type, const enum mgx_type *in,
                         int in_count);
// Opens a loop over the thread's elements: j in the lane, `from` in the input, `to` in the result.
void gpu_emit_lane_loop(struct mgx_str *out, const struct gpu_lanes *l);
// All threads' `acc` folded into part[0].
void gpu_emit_lane_fold(struct mgx_str *out, const char *fold);
