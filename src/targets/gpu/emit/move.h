// SPDX-License-Identifier: MIT
// Kernels that only move elements, one thread for an element of the result or for a few neighbours:
// everything but the line that says where an element comes from.
//
//     out[at0(o0, o1, ...)] = from >= 0 ? in0[from] : fill
//
// Elements move as integers of their size. Neighbouring threads take neighbouring places of the
// result's memory.
#pragma once

#include "base/str.h"
#include "ir/shape.h"

// "u8" to "u64"; NULL for elements that are no machine word.
const char *gpu_word(size_t size);

// `    const int o<axis> = ...;` for the element `i` (in scope) of the result's memory, and its
// offset `at0`.
void gpu_emit_place(struct mgx_str *out, const struct mgx_shape *s);
// "prefix0 * stride + ...", an i64: the offset of such coordinates in a shape's axes first .. end.
void gpu_emit_sum(struct mgx_str *out, const struct mgx_shape *s, int first, int end,
                  const char *prefix);

// The function `name`: where the entry of that number of an array's axes 0 .. end - 1 begins, but for
// axis `skip` (-1: none), the last one fastest.
void gpu_emit_entry(struct mgx_str *out, const char *name, const struct mgx_shape *s, int end,
                    int skip);

// How many neighbours a thread may move, when along result axis `to_axis` and input axis `from_axis`
// both lie side by side, and no other coordinate of the input breaks groups of them; else 1. `most`
// bounds it.
int gpu_move_vector(const struct mgx_shape *to, int to_axis, const struct mgx_shape *from,
                    int from_axis, int64_t most);
// The text's end: moves v words from `from` on, or stores `fill` (an expression; NULL: `from` is
// never negative). Closes the function.
void gpu_emit_move(struct mgx_str *out, size_t size, int v, const char *fill);
