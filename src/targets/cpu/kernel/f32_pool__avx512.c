// SPDX-License-Identifier: MIT
// Pooling for avx512; see f32_pool.h.
#include "targets/cpu/kernel/f32_pool.h"
