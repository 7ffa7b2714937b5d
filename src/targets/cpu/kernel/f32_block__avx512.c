// SPDX-License-Identifier: MIT
// Block programs for avx512; see f32_block.h.
#include "targets/cpu/kernel/f32_block.h"
