// SPDX-License-Identifier: MIT
// What rules of ONNX operators build with: the pieces that all importers share, and what only old
// ONNX models need.
#pragma once

#include "import/build.h"
#include "onnx/node.h"

// Opset 1 to 6, and newer models that still say so: with broadcast=1 the axes of *b match those of
// the first input from `axis` on (by default the last ones); *b gets trailing axes of length 1 to
// say so.
enum mgx_status mgx_onnx_align(struct mgx_node *n, struct mgx_ins **b) MGX_NODISCARD;
