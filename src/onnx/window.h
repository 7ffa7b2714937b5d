// SPDX-License-Identifier: MIT
// Reading the sliding window of convolutions and poolings: kernel_shape, strides, dilations, pads
// and auto_pad of a node, checked and with their defaults, for every spatial axis.
#pragma once

#include "import/window.h"
#include "onnx/node.h"

// `kernel` gives the kernel's lengths where the attribute is absent (NULL: it is required).
// auto_pad becomes pads unless a length it depends on is unknown.
enum mgx_status mgx_onnx_window_read(struct mgx_node *n, const struct mgx_ins *x,
                                     const int64_t *kernel,
                                     struct mgx_import_window *w) MGX_NODISCARD;
// A window over all of x's spatial axes (lengths 0 where unknown).
void mgx_onnx_window_global(const struct mgx_ins *x, struct mgx_import_window *w);
