// SPDX-License-Identifier: MIT
// Parts of constants: what one card keeps of weights (part.h).
//
//     literal, along an axis         the same with the ranges that are kept
//     transpose(c), convert(c)       of the part of c
//     reshape(literal)               of the literal under the other lengths
//     multibroadcast(c)              of the part of c, or of c where it is repeated along the axis
//     dequantize_blocks(q, s, z)     of parts of all three: rows, or whole blocks of columns
//
//     other bytes (zero points)      slices, joined, which folding makes a literal of
//
// A range of the first axis is a view of the literal; others are copied.
#pragma once

#include "ir/module.h"

enum { MGX_CUT_RANGES = 8 };

struct mgx_cut { // what is kept of an axis: ranges in order, apart from each other
    int axis, count;
    struct mgx_cut_range {
        int64_t from, to;
    } range[MGX_CUT_RANGES];
};

int64_t mgx_cut_length(const struct mgx_cut *cut); // what is kept, all together
// The same ranges times by / over, of another axis; false where one does not divide so.
bool mgx_cut_scale(const struct mgx_cut *cut, int axis, int64_t by, int64_t over,
                   struct mgx_cut *out);

bool mgx_part_of_constant_can(const struct mgx_ins *ins, const struct mgx_cut *cut);
// Emitted before `at`; the constant stays as it is, for others.
struct mgx_ins *mgx_part_of_constant(struct mgx_ins *at, struct mgx_ins *ins,
                                     const struct mgx_cut *cut);
