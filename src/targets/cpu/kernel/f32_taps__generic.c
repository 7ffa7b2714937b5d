// SPDX-License-Identifier: MIT
// Weighted pixels for generic; see f32_taps.h.
#include "targets/cpu/kernel/f32_taps.h"
