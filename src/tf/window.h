// SPDX-License-Identifier: MIT
// Reading the sliding window of convolutions and poolings: strides, dilations, padding and ksize of
// a node, checked, for the spatial axes alone.
#pragma once

#include "import/window.h"
#include "tf/node.h"

// `lens` are the input's spatial lengths, `kernel` the kernel's (NULL: attribute ksize gives them).
// Strides, dilations and ksize list all axes in the order of data_format.
enum mgx_status mgx_tf_window_read(struct mgx_node *n, int rank, bool last, const int64_t *kernel,
                                   struct mgx_import_window *w) MGX_NODISCARD;
// Padding by the attribute, for an input of these spatial lengths.
enum mgx_status mgx_tf_window_pad(struct mgx_node *n, const int64_t *lens,
                                  struct mgx_import_window *w) MGX_NODISCARD;
