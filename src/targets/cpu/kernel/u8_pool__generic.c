// SPDX-License-Identifier: MIT
// Pooling of bytes for any machine; see byte_pool.h.
#include "targets/cpu/kernel/u8_pool.h"
