// SPDX-License-Identifier: MIT
// One loop over all elements of several arrays that lie each in its own way.
//
// Axes are put in the result's order of memory, so that neighbouring threads write neighbouring
// elements; those that follow each other without a jump in every array become one. A kernel gets
// the number of its element and works out the offsets from constants.
#pragma once

#include "base/str.h"
#include "ir/shape.h"

enum { GPU_LOOP_ARRAYS = 40 };

struct gpu_loop {
    int rank, count; // axes left, arrays
    int64_t elements;
    int64_t lens[MGX_MAX_RANK];
    int64_t strides[GPU_LOOP_ARRAYS][MGX_MAX_RANK];
};

// shapes[0] is the result. All have the same lengths; asserted.
void gpu_loop_make(struct gpu_loop *loop, const struct mgx_shape *const *shapes, int count);

// Statements that declare `at0`, `at1`, ...: the offset of element `i` (an i64 or int in scope) in
// each array.
void gpu_emit_offsets(struct mgx_str *out, const struct gpu_loop *loop);
