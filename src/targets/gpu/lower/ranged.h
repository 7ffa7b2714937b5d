// SPDX-License-Identifier: MIT
// Kernels that leave the range of their results beside them, where a byte_range reads all of those.
//
//     y = ...                 each block leaves the lowest and the highest of its y's, two floats (extremes.gpu)
//     r = byte_range(y)  =>   one block joins them: nothing is read once more
//
// What they leave has room of its own in a run's block on the card, from the step that leaves it to the one
// that joins it (range_bundle.c); one by one each step does what it does else. Two producers of one value,
// parts of a concat, have one join.
#pragma once

#include "targets/gpu/lower/lower.h"

enum { GPU_RANGES_MOST = 1 << 16 }; // that one block joins

// Does a range that somebody wants follow from the offer's results?
bool gpu_is_ranged(const struct mgx_plan_offer *c);
// The same, and nobody reads the results else: such a kernel stores none where it is given the ranges' place for them.
bool gpu_is_range_alone(const struct mgx_plan_offer *c);

// Of a kernel of so many threads a block, 0: it leaves no range, and the text stays as it is. The kernel's
// head (gpu_emit_head) and what stands before it; its beginning; where `value` is stored; and its end, which
// all threads reach.
void gpu_emit_range_head(struct mgx_str *out, int width, enum mgx_type result,
                         const enum mgx_type *in, int in_count);
void gpu_emit_range_begin(struct mgx_str *out, int width);
// The same, opened, of kernels whose thread has `each` neighbouring results: i, the first one. With a
// range what threads do that have some is a block of its own, which the kernel closes.
void gpu_emit_range_threads(struct mgx_str *out, int width, int each, int64_t results);
void gpu_emit_range_value(struct mgx_str *out, int width, const char *value);
void gpu_emit_range_end(struct mgx_str *out, int width);

// Of templates, whose results go to `out`: RANGE_BEGIN() at the kernel's beginning, RANGE_END() where all its threads end, whose blocks are of two
// axes; `low` and `high` are places between them, handed on as GPU_RANGE_PARAMS.
#define GPU_RANGE_PARAMS ", float *low, float *high"
void gpu_emit_range_macros(struct mgx_str *out, int width);

// The offer was taken by a kernel that leaves so many, in its workspace behind what else is there: its last
// parameter, GLOBAL float *ranges. Where they are all that is read, no results are asked for.
void gpu_leave_ranges(struct mgx_plan_offer *c, int64_t count);

// Makes bundles of steps and the ranges that follow from them; their kernels.
enum mgx_status gpu_range_bundles(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_range_bundles_finish(struct mgx_plan *plan,
                                         struct mgx_diag *diag) MGX_NODISCARD;
