// SPDX-License-Identifier: MIT
// Rows of scores for avx512; see f32_attention.h.
#include "target/cpu/kernel/f32_attention.h"
