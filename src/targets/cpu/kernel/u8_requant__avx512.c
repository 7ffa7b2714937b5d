// SPDX-License-Identifier: MIT
// Tiles to bytes for AVX-512; see requant.h.
#if defined(__x86_64__)
#include "targets/cpu/kernel/u8_requant.h"
#endif
