// SPDX-License-Identifier: MIT
// The sliding window of convolutions and poolings: strides, dilations, padding and ksize of a node,
// checked, for the spatial axes alone.
#pragma once

#include "tf/node.h"

struct mgx_tf_window {
    int spatial; // axes
    bool last;   // channels come last
    int64_t kernel[MGX_MAX_RANK], strides[MGX_MAX_RANK], dilations[MGX_MAX_RANK];
    int64_t pads[2 * MGX_MAX_RANK]; // all begins, then all ends
};

// `lens` are the input's spatial lengths, `kernel` the kernel's (NULL: attribute ksize gives them).
// Strides, dilations and ksize list all axes in the order of data_format.
enum mgx_status mgx_tf_window_read(struct mgx_node *n, int rank, bool last, const int64_t *kernel,
                                   struct mgx_tf_window *w) MGX_NODISCARD;
// Padding by the attribute, for an input of these spatial lengths.
enum mgx_status mgx_tf_window_pad(struct mgx_node *n, const int64_t *lens,
                                  struct mgx_tf_window *w) MGX_NODISCARD;
