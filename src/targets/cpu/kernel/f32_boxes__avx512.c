// SPDX-License-Identifier: MIT
// Overlap of boxes for avx512; see f32_boxes.h.
#include "targets/cpu/kernel/f32_boxes.h"
