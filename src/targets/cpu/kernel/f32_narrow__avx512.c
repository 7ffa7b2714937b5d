// SPDX-License-Identifier: MIT
// Narrow weights for avx512; see f32_narrow.h.
#include "targets/cpu/kernel/f32_narrow.h"
