// SPDX-License-Identifier: MIT
// Pooling for avx512; see f32_pool.h.
#include "target/cpu/kernel/f32_pool.h"
