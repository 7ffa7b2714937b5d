// SPDX-License-Identifier: MIT
// Whether the bytes of a tensor are those of its storage; for assertions and the verifier's kind.
#pragma once

#include "ir/tensor.h"

// All that the shape spans lies inside the storage. What is borrowed lies wherever it does; members
// and strings are their storage's business.
bool mgx_tensor_lies_inside(const struct mgx_tensor *t);
