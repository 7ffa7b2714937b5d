// SPDX-License-Identifier: MIT
// Pooling for generic; see f32_pool.h.
#include "targets/cpu/kernel/f32_pool.h"
