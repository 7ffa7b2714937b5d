// SPDX-License-Identifier: MIT
// Pooling for avx2; see f32_pool.h.
#include "target/cpu/kernel/f32_pool.h"
