// SPDX-License-Identifier: MIT
// The sliding window of convolutions and poolings, for its spatial axes: what the importers make of
// their formats' attributes, and the arithmetic that both need.
#pragma once

#include "import/node.h"

struct mgx_import_window {
    int spatial; // axes
    int64_t kernel[MGX_MAX_RANK], strides[MGX_MAX_RANK], dilations[MGX_MAX_RANK];
    int64_t pads[2 * MGX_MAX_RANK]; // all begins, then all ends
    int64_t padding_mode; // of the IR: 0; 1 same_lower, 2 same_upper where a length is unknown
    bool channels_last;   // of the node's tensors, before the importer reorders them
};

// An attribute's values, each within [low, 2^31).
enum mgx_status mgx_import_window_check(struct mgx_node *n, const char *name, const int64_t *v,
                                        int count, int64_t low) MGX_NODISCARD;
// Pads of axis i so that `length` values give ceil(length / stride) places; where the number is
// odd, the end gets the one more, or with `lower` the beginning.
void mgx_import_window_same(struct mgx_import_window *w, int i, int64_t length, bool lower);
