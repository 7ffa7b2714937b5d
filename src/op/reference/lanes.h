// SPDX-License-Identifier: MIT
// Lanes: a tensor with the axes that an operator works along moved last, as one packed block.
//
//     x {2, 3, 4} along axis 1   ->   count = 8 lanes of length 3, one after the other
//
// Reductions, softmax, scans and their like then are loops over plain arrays, whatever the strides.
// Cost: one copy of the tensor as doubles or 64-bit integers in the call's scratch memory.
#pragma once

#include "op/rule/rule.h"

struct mgx_lanes {
    int64_t count, length;
};

// The same elements with the flagged axes last, and what lanes that gives.
struct mgx_shape mgx_lanes_shape(const struct mgx_shape *s, const bool *along,
                                 struct mgx_lanes *lanes);
// Values lane by lane; NULL when out of memory (c->diag is set).
double *mgx_lanes_doubles(struct mgx_compute_call *c, const struct mgx_tensor *t, const bool *along,
                          struct mgx_lanes *lanes);
int64_t *mgx_lanes_ints(struct mgx_compute_call *c, const struct mgx_tensor *t, const bool *along,
                        struct mgx_lanes *lanes);
// The way back, into a tensor of any strides.
void mgx_lanes_write_doubles(struct mgx_tensor *t, const bool *along, const double *values);
void mgx_lanes_write_ints(struct mgx_tensor *t, const bool *along, const int64_t *values);

// Maps an integer of `type`, loaded into 64 bits, so that signed comparison orders it rightly: only
// large uint64 values need it. Its own inverse.
static inline int64_t mgx_int_order(enum mgx_type type, int64_t v)
{
    return type == MGX_UINT64 ? (int64_t)((uint64_t)v ^ (uint64_t)INT64_MIN) : v;
}
