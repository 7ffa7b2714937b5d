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
// The same with other names: element `index`, offsets `at`0, ...
void gpu_emit_offsets_of(struct mgx_str *out, const struct gpu_loop *loop, const char *index,
                         const char *at);

// How many neighbours along the last axis one thread may take, at most `most`, a power of two: they
// lie side by side in every array, or are one element there, all groups of them start at a multiple
// of their number, and none is wider than 16 bytes. sizes: bytes of an element of each array.
int gpu_loop_vector(const struct gpu_loop *loop, const size_t *sizes, int64_t most);
