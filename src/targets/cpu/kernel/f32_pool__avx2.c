// SPDX-License-Identifier: MIT
// Pooling for avx2; see f32_pool.h.
#include "targets/cpu/kernel/f32_pool.h"
