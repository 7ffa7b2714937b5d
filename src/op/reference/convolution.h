// SPDX-License-Identifier: MIT
// What convolution and its transpose have in common: attributes, and how their window unfolds.
#pragma once

#include "op/reference/unfold.h"

struct mgx_convolution {
    struct mgx_ints padding, stride, dilation;
    int64_t group, padding_mode;
    bool use_dynamic_same_auto_pad; // printed for older programs; padding_mode says it all
};

extern const struct mgx_convolution mgx_convolution_defaults;

// Words of unfolded rows at a time.
enum { MGX_CONVOLUTION_ROWS = 1 << 20 };

struct mgx_window_attr mgx_convolution_window(const struct mgx_convolution *a);
// Checks both operands' ranks, the window and the group's range.
enum mgx_status mgx_convolution_check(struct mgx_shape_call *c) MGX_NODISCARD;
// The window of a convolution's result, or of the one whose result is our input (`back`).
struct mgx_unfold mgx_convolution_unfold(const struct mgx_compute_call *c, bool back);
