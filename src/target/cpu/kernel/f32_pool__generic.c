// SPDX-License-Identifier: MIT
// Pooling for generic; see f32_pool.h.
#include "target/cpu/kernel/f32_pool.h"
