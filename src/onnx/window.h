// SPDX-License-Identifier: MIT
// The sliding window of convolutions and poolings: kernel_shape, strides, dilations, pads and
// auto_pad of a node, checked and with their defaults, for every spatial axis.
#pragma once

#include "onnx/node.h"

struct mgx_onnx_window {
    int spatial; // axes
    int64_t kernel[MGX_MAX_RANK], strides[MGX_MAX_RANK], dilations[MGX_MAX_RANK];
    int64_t pads[2 * MGX_MAX_RANK]; // all begins, then all ends
    int64_t padding_mode; // of the IR: 0; 1 same_lower, 2 same_upper where a length is unknown
};

// `kernel` gives the kernel's lengths where the attribute is absent (NULL: it is required).
// auto_pad becomes pads unless a length it depends on is unknown.
enum mgx_status mgx_onnx_window_read(struct mgx_node *n, const struct mgx_ins *x,
                                     const int64_t *kernel,
                                     struct mgx_onnx_window *w) MGX_NODISCARD;
// A window over all of x's spatial axes (lengths 0 where unknown).
void mgx_onnx_window_global(const struct mgx_ins *x, struct mgx_onnx_window *w);
