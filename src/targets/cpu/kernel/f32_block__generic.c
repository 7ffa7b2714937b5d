// SPDX-License-Identifier: MIT
// Block programs for generic; see f32_block.h.
#include "targets/cpu/kernel/f32_block.h"
