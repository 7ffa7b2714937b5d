// SPDX-License-Identifier: MIT
// Operators whose results have as many rows as the values say, as lists of fixed length: all that
// there may be, one part behind the other, zeros where there is nothing, and last how many there
// are.
//
//     nonzero {rank, k}  ->  nonzero_list {rank * elements + 1}:  row, zeros, row, zeros, ..., k
//
// So a target whose kernels write results of fixed sizes computes them; `shorten` cuts them off.
#pragma once

#include "op/rule/rule.h"

// The shape of a list of so many numbers and their count; open where they are.
enum mgx_status mgx_listed_shape(struct mgx_shape_call *c, int64_t least, int64_t most,
                                 struct mgx_shape *out) MGX_NODISCARD;
// What the operator that is listed gives for this call's inputs and attributes.
enum mgx_status mgx_listed_value(struct mgx_compute_call *c, const struct mgx_op *op,
                                 struct mgx_tensor *out) MGX_NODISCARD;
// Writes lines of `length` numbers of int64, of a tensor of int64, `pitch` apart.
void mgx_listed_put(int64_t *to, const struct mgx_tensor *from, int64_t lines, int64_t length,
                    int64_t pitch);
