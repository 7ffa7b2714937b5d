// SPDX-License-Identifier: MIT
// What exporters put behind a softmax whose rows may be masked as a whole: NaN becomes 0.
//
//     pointwise(x) { where(isnan(x), 0, x) }
//
// Such a row is 0 / 0 to a softmax. Kernels of attention know it by its sum (a row of nothing but
// minus infinity adds up to 0) and write zeros where a group has the guard.
#pragma once

#include "ir/module.h"

bool mgx_is_nan_guard(const struct mgx_ins *ins);
