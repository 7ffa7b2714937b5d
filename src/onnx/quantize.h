// SPDX-License-Identifier: MIT
// Scales and zero points of quantized ONNX operators.
#pragma once

#include "onnx/node.h"

// Makes *v broadcast against x: one value as it is, one per index of `axis`, or one per block along
// it (block 0: as many as come out even). x and *v must have known ranks.
enum mgx_status mgx_quantize_spread(struct mgx_node *n, const struct mgx_ins *x, int64_t axis,
                                    int64_t block, struct mgx_ins **v) MGX_NODISCARD;
// x dequantized by this scale and zero point (NULL: none).
struct mgx_ins *mgx_quantize_undo(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *scale,
                                  struct mgx_ins *zero, int axis);
// x by the scale at input i and the zero point at i + 1 (which may be absent): dequantized, or
// quantized to the zero point's type. NULL with a recorded failure if they do not fit.
struct mgx_ins *mgx_quantize_from(struct mgx_node *n, struct mgx_ins *x, int i, int axis);
struct mgx_ins *mgx_quantize_to(struct mgx_node *n, struct mgx_ins *x, int i, int axis);
