// SPDX-License-Identifier: MIT
// Rows of scores for generic; see f32_attention.h.
#include "targets/cpu/kernel/f32_attention.h"
