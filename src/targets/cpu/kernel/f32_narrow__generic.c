// SPDX-License-Identifier: MIT
// Narrow weights for generic; see f32_narrow.h.
#include "targets/cpu/kernel/f32_narrow.h"
