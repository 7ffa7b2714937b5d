// SPDX-License-Identifier: MIT
// Which operators read inputs in any order of memory: what auto_contiguous and eliminate_contiguous
// agree on.
#pragma once

#include "pass/pass.h"

// Does the operator read inputs of any strides as well as row-major ones? Then a copy in front of
// it is not needed. Bodies and @return are not among them.
bool mgx_reads_any_stride(const struct mgx_op *op);
