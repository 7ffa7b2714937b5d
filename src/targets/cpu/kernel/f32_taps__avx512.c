// SPDX-License-Identifier: MIT
// Weighted pixels for avx512; see f32_taps.h.
#include "targets/cpu/kernel/f32_taps.h"
