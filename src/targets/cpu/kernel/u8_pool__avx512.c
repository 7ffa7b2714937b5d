// SPDX-License-Identifier: MIT
// Pooling of bytes for AVX-512; see byte_pool.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/u8_pool.h"
#endif
